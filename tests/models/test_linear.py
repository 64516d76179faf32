import math
from pathlib import Path

import pytest
import torch

from spherule import Grid, models, ops
from spherule.models import (
    Linear,
    LinearConfig,
    SegformerConfig,
    TransformerConfig,
    VisionTransformerConfig,
    fit_linear,
    fit_zonal,
)
from spherule.ops.equivariance import equivariance_error
from spherule.pde import ShallowWater

GRID = Grid.gauss(12, 24)
TINY = {"width": 8, "depth": 1}
SEGFORMER = {"widths": (4, 8), "depths": (1, 1), "heads": (1, 2)}


def fields(samples: int, channels: int, grid: Grid = GRID, lmax: int = 8) -> torch.Tensor:
    spectrum = torch.ones(lmax + 1, dtype=torch.float64)
    return ops.isht(ops.random_coeffs(spectrum, (samples, channels)), grid)


def mixed(x: torch.Tensor, weight: torch.Tensor, grid: Grid = GRID) -> torch.Tensor:
    coeffs = ops.sht(x, grid, weight.shape[0] - 1)
    return ops.isht(torch.einsum("loi,bilm->bolm", weight.to(coeffs.dtype), coeffs), grid)


def batches(x: torch.Tensor, y: torch.Tensor, size: int = 5):
    return zip(x.split(size), y.split(size), strict=True)


@pytest.mark.parametrize("grid", [GRID, Grid.clenshaw_curtis(13, 24), Grid.octahedral(8)], ids=repr)
def test_the_fit_recovers_a_linear_map(grid: Grid) -> None:
    """With a static channel more in the input than in the output."""
    weight = torch.randn(9, 2, 3, dtype=torch.float64)
    x = fields(20, 3, grid)
    x[:, 2] = x[0, 2]
    fit = fit_linear(batches(x, mixed(x, weight, grid)), grid, 8)
    torch.testing.assert_close(fit.weight[1:], weight[1:], rtol=0, atol=1e-10)
    assert fit.deviation.max() < 1e-6
    # One static value cannot tell its own part in the means: they come out right all the same.
    expected = mixed(x, weight, grid)
    torch.testing.assert_close(mixed(x, fit.weight, grid), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("grid", [GRID, Grid.clenshaw_curtis(13, 24)], ids=repr)
def test_the_zonal_fit_recovers_a_map_that_knows_the_axis(grid: Grid) -> None:
    known = Linear(LinearConfig(lmax=8, reach=2), grid, 3, 2).double()
    torch.nn.init.normal_(known.mix.weight)
    orders = torch.tril_indices(9, 9)[1]
    known.mix.weight[orders == 0, ..., 1] = 0  # as of all maps of real fields
    x = fields(60, 3, grid)
    model = Linear(LinearConfig(lmax=8, reach=2), grid, 3, 2).double()
    fit = model.fit(batches(x, known(x)))
    assert fit.deviation.max() < 1e-6
    new = fields(5, 3, grid)
    torch.testing.assert_close(model(new), known(new), rtol=0, atol=1e-8)


def test_the_zonal_fit_finds_the_waves_of_a_rotating_sphere() -> None:
    """The solver about a state of rest, an hour ahead: waves of gravity and of Rossby."""
    grid = Grid.gauss(16, 32)
    solver = ShallowWater(grid, lmax=10)
    state = ops.random_coeffs(torch.ones(11, dtype=torch.float64), (120, 3))
    size = torch.tensor([1e2, 1e-6, 1e-6], dtype=torch.float64).view(3, 1, 1)
    rest = torch.zeros(3, 11, 11, dtype=torch.complex128)
    rest[0, 0, 0] = 1e5 * math.sqrt(4 * math.pi)
    state = 1e-4 * size * state
    state[..., 0, 0] = 0
    later = solver.advance(rest + state, 150.0, 24) - rest
    scale = 1e4 / size
    x, y = (ops.isht(u * scale, grid) for u in (state, later))
    errors = {}
    for reach in (None, 0, 1, 3):
        model = Linear(LinearConfig(lmax=10, reach=reach), grid, 3, 3).double()
        model.fit(batches(x[:100], y[:100], 25))
        errors[reach] = ((model(x[100:]) - y[100:]).norm() / y[100:].norm()).item()
    assert errors[3] < 0.003 < errors[1] < errors[0]
    assert errors[0] < 1.2 * errors[None]


@pytest.mark.parametrize("fit", [fit_linear, fit_zonal], ids=["linear", "zonal"])
def test_means_that_are_rounding_explain_nothing(fit) -> None:
    """Vorticity has no mean but that of float32; noise on it must not become a forecast."""
    x = fields(80, 2)
    x[:, 1] -= ops.isht(ops.sht(x[:, 1], GRID, 0), GRID)
    x = x.float()
    weight = fit(batches(x, x.roll(1, 0)), GRID, 8).weight
    assert weight.abs().max() < 2


def test_too_few_samples_for_a_zonal_fit_are_named() -> None:
    with pytest.raises(ValueError, match="20 samples are too few for 21 numbers an equation"):
        fit_zonal([(fields(20, 3), fields(20, 3))], GRID, 8)


def test_the_deviation_is_what_the_map_leaves() -> None:
    weight = torch.randn(9, 2, 2, dtype=torch.float64)
    x = fields(40, 2)
    noise = torch.tensor([0.5, 2.0]).view(2, 1, 1) * fields(40, 2)
    beyond = fields(40, 2, lmax=10)  # the degree of the fit
    model = Linear(LinearConfig(lmax=8), GRID, 2, 2).double()
    zonal = Linear(LinearConfig(lmax=8, reach=1), GRID, 2, 2).double()
    for y in (mixed(x, weight) + noise, mixed(x, weight) + noise + beyond):
        for fitted in (model, zonal):
            deviation = fitted.fit(batches(x, y)).deviation
            left = ops.integrate((fitted(x) - y).square(), GRID).mean(0) / (4 * math.pi)
            torch.testing.assert_close(deviation, left.sqrt(), rtol=1e-6, atol=0)


def test_degrees_that_the_data_do_not_have_stay_as_they_are() -> None:
    x = fields(6, 2, lmax=4)
    x = x - ops.integrate(x, GRID)[..., None, None] / (4 * math.pi)
    fit = fit_linear([(x.float(), -x.float())], GRID, 8)
    identity = torch.eye(2, dtype=torch.float64)
    for l, sign in enumerate([1, -1, -1, -1, -1, 1, 1, 1, 1]):
        torch.testing.assert_close(fit.weight[l], sign * identity, rtol=0, atol=0.1)


def test_batches_are_only_seen_once() -> None:
    x, y = fields(10, 2), fields(10, 2)
    whole = fit_linear([(x, y)], GRID, 8)
    streamed = fit_linear(iter(list(batches(x, y, 3))), GRID, 8)
    for a, b in zip(whole, streamed, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


def test_linear_is_persistence_until_it_is_fitted() -> None:
    model = Linear(LinearConfig(lmax=8), "gauss:12x24", 3, 2)
    x = fields(2, 3).float()
    torch.testing.assert_close(model(x), x[:, :2], rtol=0, atol=1e-4)
    weight = torch.randn(9, 2, 3, dtype=torch.float64)
    fit = model.fit(batches(fields(20, 3), mixed(fields(20, 3), weight)))
    assert torch.equal(model.mix.weight, fit.weight.float())
    assert model.on("O8").mix.weight is model.mix.weight
    assert model.on("O8").grid == Grid.octahedral(8)


def test_linear_saves_and_loads(tmp_path: Path) -> None:
    model = Linear(LinearConfig(), "O8", 2, 2)
    assert model.config.lmax == 8
    model.fit([(fields(8, 2, Grid.octahedral(8)), fields(8, 2, Grid.octahedral(8)))])
    x = torch.randn(1, 2, *model.grid.shape)
    for where in (model, model.on("gauss:24x48"), model.on("gauss:6x12")):
        where.save_pretrained(tmp_path)
        again = models.from_pretrained(tmp_path)
        assert isinstance(again, Linear)
        x = torch.randn(1, 2, *where.grid.shape)
        assert torch.equal(again(x), where(x))


SPECTRAL = {
    "transformer": TransformerConfig(skip="spectral", **TINY),
    "transformer, bandlimit": TransformerConfig(skip="spectral", bandlimit=6, **TINY),
    "transformer, all": TransformerConfig(skip="spectral", bandlimit=6, keep_mean=True, **TINY),
    "segformer": SegformerConfig(skip="spectral", bandlimit=6, **SEGFORMER),
    "zonal": TransformerConfig(skip="zonal", skip_reach=0, **TINY),
    "zonal, all": TransformerConfig(
        skip="zonal", skip_reach=1, bandlimit=6, keep_mean=True, **TINY
    ),
    "zonal segformer": SegformerConfig(skip="zonal", skip_reach=1, bandlimit=6, **SEGFORMER),
}


def trained(config: models.ModelConfig, channels: tuple[int, int] = (3, 2), grid=GRID):
    """A model whose branch has something to say."""
    model = models.build(config, grid, *channels).eval()
    last = model.head if isinstance(model, models.Segformer) else model.decoder
    torch.nn.init.normal_(last.weight)
    return model


@pytest.mark.parametrize("name", SPECTRAL)
def test_a_network_starts_from_its_fitted_skip(name: str) -> None:
    weight = torch.randn(7, 2, 3, dtype=torch.float64)
    x = fields(20, 3, lmax=6)
    y = mixed(x, weight)
    if SPECTRAL[name].keep_mean:
        means = [ops.integrate(u, GRID)[..., None, None] / (4 * math.pi) for u in (x[:, :2], y)]
        y = y + means[0] - means[1]
    model = models.build(SPECTRAL[name], GRID, 3, 2)
    assert not model.branch(x.float()).any()
    fit = model.fit(batches(x, y))
    scale = y.abs().max().item()
    torch.testing.assert_close(model(x.float()).double(), y, rtol=0, atol=1e-5 * scale)
    assert model.skip.scale.min() > 0
    torch.testing.assert_close(model.skip.scale, fit.deviation.clamp(min=1e-6).float())


@pytest.mark.parametrize("name", SPECTRAL)
def test_every_parameter_learns_beside_a_skip(name: str) -> None:
    model = trained(SPECTRAL[name]).train()
    model(torch.randn(2, 3, 12, 24)).square().mean().backward()
    for parameter, p in model.named_parameters():
        assert (p.grad is not None) == p.requires_grad, parameter
        assert p.grad is None or p.grad.abs().max() > 0, parameter


def test_the_branch_is_scaled_and_added() -> None:
    for bandlimit in (None, 6):
        model = trained(TransformerConfig(skip="spectral", bandlimit=bandlimit, **TINY))
        model.skip.scale.copy_(torch.tensor([0.5, 2.0]))
        torch.nn.init.normal_(model.skip.mix.weight)
        x = torch.randn(1, 3, 12, 24)
        branch = torch.tensor([0.5, 2.0]).view(2, 1, 1) * model.branch(x)
        if bandlimit is not None:
            branch = ops.isht(ops.sht(branch, GRID, bandlimit), GRID)
        expected = model.skip.mix(x) + branch
        torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("skip", ["none", "identity", "spectral", "zonal"])
@pytest.mark.parametrize("bandlimit", [None, 6])
@pytest.mark.parametrize("keep_mean", [False, True])
def test_bandlimit_and_mean_hold(skip: str, bandlimit: int | None, keep_mean: bool) -> None:
    config = TransformerConfig(skip=skip, bandlimit=bandlimit, keep_mean=keep_mean, **TINY)
    model = trained(config)
    x = 1 + torch.randn(2, 3, 12, 24)
    with torch.no_grad():
        y = model(x)
    coeffs, size = ops.sht(y.double(), GRID, 11), y.abs().max().item()
    means = [ops.integrate(u.double(), GRID) / (4 * math.pi) for u in (x[:, :2], y)]
    assert (coeffs[..., 7:, :].abs().max() < 1e-6 * size) == (bandlimit is not None)
    assert ((means[0] - means[1]).abs().max() < 1e-6 * size) == keep_mean


@pytest.mark.parametrize("grid", ["O8", "H8"])
def test_means_hold_on_reduced_grids_too(grid: str) -> None:
    model = trained(SPECTRAL["transformer, all"], grid=grid)
    x = torch.randn(2, 3, *model.grid.shape)
    means = [ops.integrate(u, model.grid) / (4 * math.pi) for u in (x[:, :2], model(x))]
    torch.testing.assert_close(*means, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", SPECTRAL)
def test_spectral_skips_move_and_are_saved(name: str, tmp_path: Path) -> None:
    model = trained(SPECTRAL[name])
    torch.nn.init.normal_(model.skip.mix.weight)
    model.skip.scale.fill_(0.25)
    moved = model.on("clenshaw_curtis:17x32")
    model.skip.mix.weight.requires_grad_(True)
    assert moved.skip.mix.weight is model.skip.mix.weight
    moved.save_pretrained(tmp_path)
    again = models.from_pretrained(tmp_path).eval()
    assert again.config == moved.config
    x = torch.randn(1, 3, 17, 32)
    assert torch.equal(again(x), moved(x))
    assert again.skip.scale.tolist() == [0.25, 0.25]


def test_with_isotropic_filters_a_spectral_model_is_equivariant() -> None:
    config = TransformerConfig(
        skip="spectral", bandlimit=12, keep_mean=True, position="none", angles=1, **TINY
    )
    model = trained(config, (2, 2), Grid.gauss(32, 64))
    torch.nn.init.normal_(model.skip.mix.weight)
    model.skip.scale.fill_(0.1)
    assert equivariance_error(model, model.grid, 2, lmax=12, samples=2) < 0.02


def test_compiles_and_exports_whole(unchecked) -> None:
    model = trained(SPECTRAL["transformer, all"])
    x = torch.randn(1, 3, 12, 24)
    torch._dynamo.reset()
    exported = torch.export.export(model, (x,)).module()(x)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(exported, model(x))
    torch.testing.assert_close(compiled, model(x))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TransformerConfig.planar(skip="spectral"), "skip='spectral' needs to know the"),
        (lambda: TransformerConfig(attention="planar", keep_mean=True), "keep_mean=True needs to"),
        (lambda: SegformerConfig.planar(bandlimit=8), "bandlimit=8 needs to know the sphere"),
        (lambda: VisionTransformerConfig(bandlimit=8), "which a VisionTransformer does not"),
        (lambda: TransformerConfig(skip="identity", skip_lmax=8), "skip_lmax=8 means nothing"),
        (lambda: TransformerConfig(skip="spectral", skip_reach=8), "skip_reach=8 means nothing"),
        (lambda: TransformerConfig(skip="zonal", skip_reach=-1), "skip_reach=-1"),
        (lambda: TransformerConfig.planar(skip="zonal"), "skip='zonal' needs to know the"),
        (
            lambda: TransformerConfig(skip="spectral", skip_lmax=8, bandlimit=9),
            "skip_lmax=8 must be bandlimit=9",
        ),
        (lambda: TransformerConfig(bandlimit=-1), "bandlimit=-1"),
        (lambda: LinearConfig(lmax=-1), "lmax=-1"),
        (lambda: models.build(TransformerConfig(keep_mean=True), "O8", 1, 2), "keep_mean=True"),
        (lambda: fit_linear([], GRID, 4), "at least one pair"),
        (lambda: fit_linear([(fields(1, 2) * torch.nan,) * 2], GRID, 4), "got NaN"),
        (
            lambda: Linear(LinearConfig(lmax=4), GRID, 2, 2).fit([(fields(1, 3), fields(1, 2))]),
            "expected 2 channels and 2 of the target, got 3 and 2",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
