import math
import warnings

import pytest
import torch

from spherule import Grid, ops
from spherule.nn import ISHT, SHT, Harmonics, SpectralMix, ZonalMix
from spherule.nn.spectral import default_lmax
from spherule.ops.equivariance import equivariance_error
from spherule.ops.sht_operators import isht_adjoint, isht_operator, sht_adjoint, sht_operator

GRIDS = ["gauss:12x24", "clenshaw_curtis:13x24", "fejer:13x27@0.5", "O8", "H4"]
# The share of a transform of degree 5 that these grids get wrong; two corrections are made.
APPROXIMATE = {"H4": 1e-3}


def close(grid: str) -> dict[str, float]:
    return {"rtol": 0, "atol": APPROXIMATE.get(grid, 1e-12)}


def random_mix(grid: Grid, channels: tuple[int, int] = (3, 2), lmax: int = 5) -> SpectralMix:
    mix = SpectralMix(*channels, grid, lmax).double()
    torch.nn.init.normal_(mix.weight)
    return mix


def coefficients(*shape: int, lmax: int = 5) -> torch.Tensor:
    return ops.random_coeffs(torch.ones(lmax + 1, dtype=torch.float64), shape)


@pytest.mark.parametrize("name", ["gauss:6x12", "clenshaw_curtis:5x8", "fejer:7x9@0.5", "O4", "H2"])
def test_operators_are_the_transforms_with_their_adjoints(name: str) -> None:
    grid = Grid.from_name(name)
    lmax = min(grid.lmax, 4)
    u = torch.randn(2, *grid.shape, dtype=torch.float64, requires_grad=True)
    c = torch.randn(2, lmax + 1, lmax + 1, 2, dtype=torch.float64, requires_grad=True)
    assert torch.equal(sht_operator(u, name, lmax), torch.view_as_real(ops.sht(u, grid, lmax)))
    assert torch.equal(isht_operator(c, name), ops.isht(torch.view_as_complex(c), grid))
    for operator, x in (
        (lambda u: sht_operator(u, name, lmax), u),
        (lambda c: isht_operator(c, name), c),
        (lambda c: sht_adjoint(c, name), c),
        (lambda u: isht_adjoint(u, name, lmax), u),
    ):
        assert torch.autograd.gradcheck(operator, x)
        assert torch.autograd.gradgradcheck(operator, x)


@pytest.mark.parametrize("name", GRIDS)
def test_each_degree_has_its_matrix(name: str) -> None:
    grid = Grid.from_name(name)
    mix, coeffs = random_mix(grid), coefficients(2, 3)
    expected = torch.einsum("loi,bilm->bolm", mix.weight.to(coeffs.dtype), coeffs)
    y = mix(ops.isht(coeffs, grid))
    scale = expected.abs().max()
    torch.testing.assert_close(y / scale, ops.isht(expected, grid) / scale, **close(name))


@pytest.mark.parametrize("name", GRIDS)
def test_at_first_it_is_the_identity_up_to_its_degree(name: str) -> None:
    grid = Grid.from_name(name)
    x = ops.isht(coefficients(1, 3), grid)
    y = SpectralMix(3, 2, grid, 5).double()(x)
    torch.testing.assert_close(y, x[:, :2], **close(name))
    # What is above is dropped; on a tiny HEALPix grid, some of it aliases.
    above = torch.zeros(1, 2, 8, 8, dtype=torch.complex128)
    above[..., 6:, :6] = 1
    x = ops.isht(above, grid)
    assert Harmonics(grid, 5)(x).abs().max() < (0.1 if name == "H4" else 1e-10) * x.abs().max()


def test_it_commutes_with_rotations() -> None:
    grid = Grid.gauss(20, 40)
    mix = random_mix(grid, (2, 2), 12)
    assert equivariance_error(mix, grid, 2, lmax=12, dtype=torch.float64) < 1e-10


def test_on_another_grid_it_is_the_same_operator() -> None:
    here = Grid.gauss(12, 24)
    mix, coeffs = random_mix(here, lmax=8), coefficients(1, 3, lmax=8)
    there = mix(ops.isht(coeffs, here))
    for grid in (Grid.clenshaw_curtis(21, 40), Grid.octahedral(12), Grid.gauss(40, 80)):
        moved = mix.on(grid)
        assert moved.weight is mix.weight
        y = ops.sht(moved(ops.isht(coeffs, grid)), grid, 8)
        torch.testing.assert_close(ops.isht(y, here), there, rtol=0, atol=1e-10)
    coarse = Grid.gauss(6, 12)  # resolves degree 5, and uses these matrices only
    low = coeffs[..., :6, :6]
    y = ops.sht(mix.on(coarse)(ops.isht(low, coarse)), coarse, 5)
    expected = ops.sht(mix(ops.isht(low, here)), here, 5)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-10)


def random_zonal(grid: Grid, lmax: int = 5, reach: int = 2) -> ZonalMix:
    mix = ZonalMix(3, 2, grid, lmax, reach=reach).double()
    torch.nn.init.normal_(mix.weight)
    return mix


def zonally_mixed(mix: ZonalMix, coeffs: torch.Tensor) -> torch.Tensor:
    """Coefficient by coefficient. Order 0 of a real field is real."""
    lmax, reach = coeffs.shape[-1] - 1, mix.reach
    weight = torch.view_as_complex(mix.weight.detach())
    y = coeffs.new_zeros(coeffs.shape[0], 2, lmax + 1, lmax + 1)
    for l in range(lmax + 1):
        for m in range(l + 1):
            for other in range(max(m, l - reach), min(lmax, l + reach) + 1):
                matrix = weight[l * (l + 1) // 2 + m, :, :, other - l + reach]
                y[..., l, m] += coeffs[..., other, m] @ matrix.T
    y[..., 0] = y[..., 0].real.to(y.dtype)
    return y


@pytest.mark.parametrize("name", GRIDS)
def test_each_degree_and_order_has_its_matrices_over_near_degrees(name: str) -> None:
    grid = Grid.from_name(name)
    mix, coeffs = random_zonal(grid), coefficients(2, 3)
    expected = ops.isht(zonally_mixed(mix, coeffs), grid)
    scale = expected.abs().max()
    y = mix(ops.isht(coeffs, grid))
    torch.testing.assert_close(y / scale, expected / scale, **close(name))
    assert not mix.weight.requires_grad


def test_at_first_a_zonal_mix_is_the_identity_up_to_its_degree() -> None:
    grid = Grid.gauss(12, 24)
    x = ops.isht(coefficients(1, 3), grid)
    torch.testing.assert_close(ZonalMix(3, 2, grid, 5).double()(x), x[:, :2], rtol=0, atol=1e-12)


def test_a_zonal_mix_commutes_with_turns_about_the_axis_and_tells_north_from_south() -> None:
    grid = Grid.gauss(12, 24)
    mix, x = random_zonal(grid), ops.isht(coefficients(1, 3), grid)
    torch.testing.assert_close(mix(x.roll(5, -1)), mix(x).roll(5, -1), rtol=0, atol=1e-10)
    flipped = mix(x.flip(-2))
    assert (flipped - mix(x).flip(-2)).abs().max() > 0.1 * flipped.abs().max()


def test_on_another_grid_a_zonal_mix_is_the_same_operator() -> None:
    here = Grid.gauss(12, 24)
    mix, coeffs = random_zonal(here, lmax=8), coefficients(1, 3, lmax=8)
    there = mix(ops.isht(coeffs, here))
    for grid in (Grid.clenshaw_curtis(21, 40), Grid.octahedral(12), Grid.gauss(40, 80)):
        moved = mix.on(grid)
        assert moved.weight is mix.weight
        y = ops.sht(moved(ops.isht(coeffs, grid)), grid, 8)
        torch.testing.assert_close(ops.isht(y, here), there, rtol=0, atol=1e-9)
    coarse = Grid.gauss(6, 12)  # resolves degree 5, and uses these matrices only
    y = mix.on(coarse)(ops.isht(coeffs[..., :6, :6], coarse))
    expected = zonally_mixed(mix, coeffs[..., :6, :6])
    torch.testing.assert_close(y, ops.isht(expected, coarse), rtol=0, atol=1e-10)


def test_another_field_can_pass_the_same_transform() -> None:
    grid = Grid.gauss(12, 24)
    mix = random_mix(grid)
    x, added = (torch.randn(2, c, 12, 24, dtype=torch.float64) for c in (3, 2))
    torch.testing.assert_close(mix(x, added), mix(x) + Harmonics(grid, 5)(added))


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("kind", [random_mix, random_zonal])
def test_compiles_exports_and_trains(name: str, kind, unchecked) -> None:
    grid = Grid.from_name(name)
    mix = kind(grid).float()
    mix.weight.requires_grad_(True)
    x, added = (torch.randn(2, c, *grid.shape) for c in (3, 2))
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(mix, (x, added)).module()(x, added)
        compiled = torch.compile(mix, fullgraph=True, backend="aot_eager")(x, added)
    torch.testing.assert_close(exported, mix(x, added))
    torch.testing.assert_close(compiled, mix(x, added))
    compiled.square().sum().backward()
    assert mix.weight.grad.flatten(1).abs().amax(1).min() > 0


def test_half_precision_is_that_of_input_and_output_only() -> None:
    mix = random_mix(Grid.gauss(12, 24)).float()
    x = torch.randn(1, 3, 12, 24)
    with torch.autocast("cpu", torch.bfloat16):
        under = mix(x)
    assert torch.equal(under, mix(x))
    y = mix(x.bfloat16())
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), mix(x), rtol=0, atol=0.05 * mix(x).abs().max().item())


def test_degree_0_is_the_mean() -> None:
    grid = Grid.gauss(8, 16)
    x = torch.randn(1, 1, 8, 16, dtype=torch.float64)
    mean = ops.integrate(x, grid) / (4 * math.pi)
    torch.testing.assert_close(Harmonics(grid, 0)(x), mean[..., None, None].expand_as(x))


def test_bad_input_is_named(unchecked) -> None:
    mix = SpectralMix(3, 2, Grid.gauss(8, 16), 4)
    for call, words in [
        (lambda: mix(torch.zeros(1, 2, 8, 16)), r"SpectralMix: x: expected \(batch, 3, 8, 16\)"),
        (lambda: mix(torch.zeros(1, 3, 8, 16), torch.zeros(1, 3, 8, 16)), "added: expected"),
        (lambda: SpectralMix(3, 2, Grid.gauss(8, 16), -1), "lmax=-1"),
        (lambda: SpectralMix(0, 2, Grid.gauss(8, 16), 1), "in_channels=0"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("name", ["gauss:12x24", "O8"])
@pytest.mark.usefixtures("unchecked")
def test_transforms_as_layers_export_with_any_batch(name: str) -> None:
    grid = Grid.from_name(name)
    layers = torch.nn.Sequential(SHT(grid, 5), ISHT(grid))
    x = torch.randn(3, 2, *grid.shape)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(layers, (x,), dynamic_shapes={"input": {0: batch}}).module()
    for count in (1, 2, 7):
        x = torch.randn(count, 2, *grid.shape)
        wanted = ops.isht(ops.sht(x, grid, 5), grid)
        torch.testing.assert_close(program(x), wanted)
        torch.testing.assert_close(layers(x), wanted)


def test_layers_of_transforms_refuse_what_is_missing_and_what_does_not_fit() -> None:
    grid = Grid.gauss(8, 16)
    x = torch.randn(2, 8, 16)
    assert SHT(grid)(x).shape == (2, 8, 8)
    for dtype, wanted in ((torch.float64, torch.complex128), (torch.bfloat16, torch.complex64)):
        assert SHT(grid)(x.to(dtype)).dtype == wanted
    assert SHT(grid, 3).on(Grid.gauss(12, 24)).grid == Grid.gauss(12, 24)
    x[0, 1, 2] = torch.nan
    with pytest.raises(ValueError, match="SHT: x has 1 missing values"):
        SHT(grid)(x)
    with pytest.raises(ValueError, match=r"lmax=9: .* up to 7"):
        SHT(grid, 9)
    with pytest.raises(ValueError, match=r"complex \(\.\.\., lmax \+ 1, lmax \+ 1\)"):
        ISHT(grid)(torch.zeros(2, 3, 4, dtype=torch.complex64))


def test_reduced_grids_resolve_half_as_many_degrees_as_they_have_rings() -> None:
    lmax = {name: default_lmax(Grid.from_name(name)) for name in ("H2", "O4", "gauss:6x12")}
    assert lmax == {"H2": 3, "O4": 4, "gauss:6x12": 5}
    assert all(type(value) is int for value in lmax.values())


def test_a_reach_of_zero_keeps_degrees_apart() -> None:
    grid = Grid.gauss(8, 16)
    mix = random_zonal(grid, lmax=5, reach=0)
    coeffs = torch.zeros(1, 3, 6, 6, dtype=torch.complex128)
    coeffs[0, :, 4, 2] = 1 + 1j
    power = ops.sht(mix(ops.isht(coeffs, grid)), grid, lmax=5).abs().sum(1)[0]
    assert power[4, 2] > 0.1
    power[4, 2] = 0
    assert power.max() < 1e-12
