import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from spherule import Grid, objectives, ops
from spherule.objectives import cross_entropy, depth_loss, l1, l2, sobolev, squared_l2
from tests.oracles import SMALL_GRIDS, random_coeffs

REGRESSION = [l1, squared_l2, l2, sobolev, depth_loss]
GRID = Grid.fejer(8, 16, offset=0.5)


def fields(grid: Grid, batch: int = 3, channels: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    pair = torch.randn(2, batch, channels, *grid.shape, dtype=torch.float64)
    return pair[0], pair[1]


def harmonics(grid: Grid, lmax: int = 4) -> torch.Tensor:
    """Some smooth fields (6, 1, ...), the same on every grid."""
    torch.manual_seed(1)
    return ops.isht(random_coeffs(lmax, 6, 1), grid)


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_distances_of_constants_are_those_of_numbers(name: str) -> None:
    grid = Grid.from_name(name)
    ones = torch.ones(2, 3, *grid.shape, dtype=torch.float64)
    for loss, value in ((l1, 3), (squared_l2, 9), (l2, 3), (sobolev, 0), (depth_loss, 3)):
        result = loss(-2 * ones, ones, grid)
        torch.testing.assert_close(
            result, torch.full((2,), value, dtype=torch.float64), rtol=1e-12, atol=1e-12
        )


def test_losses_integrate_by_quadrature() -> None:
    grid = Grid.gauss(12, 24)
    x, y, z = torch.tensor(grid.xyz.T).reshape(3, 1, 1, *grid.shape)
    zero = torch.zeros_like(z)
    assert squared_l2(z, zero, grid).item() == pytest.approx(1 / 3, rel=1e-13)
    assert l2(z, -z, grid).item() == pytest.approx(2 / math.sqrt(3), rel=1e-13)
    both = torch.cat([x, 3 * y], dim=1)
    channels = l2(both, torch.zeros_like(both), grid).item()
    assert channels == pytest.approx(2 / math.sqrt(3), rel=1e-13)
    assert l1(z**2, zero, grid).item() == pytest.approx(1 / 3, rel=1e-13)


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("name", ["fejer:8x16@0.5", "H2", "clenshaw_curtis:7x9"])
def test_a_mask_hides_what_is_under_it_from_value_and_gradient(loss, name: str) -> None:
    grid = Grid.from_name(name)
    u, v = fields(grid)
    mask = torch.rand(3, *grid.shape) < 0.9
    mask[2] = False
    u.requires_grad_()
    hidden = v.masked_fill(~mask[:, None], math.nan)
    value = loss(u, hidden, grid, mask=mask)
    other = loss(u.masked_fill(~mask[:, None], 1e9), v, grid, mask=mask[:, None])
    torch.testing.assert_close(value, other, rtol=1e-13, atol=0)
    assert value[2] == 0
    value.sum().backward()
    assert u.grad is not None
    assert torch.isfinite(u.grad).all()
    assert (u.grad[:2] != 0).any()
    assert not u.grad.masked_select(~mask[:, None].expand_as(u)).any()


@pytest.mark.parametrize("loss", [l1, squared_l2, l2])
def test_weights_are_renormalized_over_the_mask(loss) -> None:
    u, v = fields(GRID)
    mask = torch.zeros(GRID.shape, dtype=torch.bool)
    mask[2:5, 3:9] = True
    weights = GRID.weights[mask.numpy()]
    error = (u - v)[..., mask].abs().numpy()
    power = 1 if loss is l1 else 2
    mean = np.average(error**power, axis=-1, weights=weights)
    wanted = (mean**0.5 if loss is l2 else mean).mean(axis=1)
    np.testing.assert_allclose(loss(u, v, GRID, mask=mask), wanted, rtol=1e-13)


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_are_those_of_finite_differences(loss, masked: bool) -> None:
    grid = Grid.clenshaw_curtis(5, 6)
    u, v = fields(grid, 2, 1)
    mask = torch.rand(2, *grid.shape) < 0.95 if masked else None
    u.requires_grad_()
    assert torch.autograd.gradcheck(lambda u: loss(u, v, grid, mask=mask), (u,))


@pytest.mark.parametrize("masked", [False, True])
def test_training_may_follow_a_validation_in_inference_mode(masked: bool) -> None:
    grid = Grid.fejer(6, 14, offset=0.25 if masked else 0.5)  # of its own: nothing is cached yet
    u = torch.randn(2, 1, *grid.shape)
    mask = torch.ones(grid.shape, dtype=torch.bool) if masked else None
    with torch.inference_mode():
        value = depth_loss(u, 0 * u, grid, mask=mask)
    u.requires_grad_()
    loss = depth_loss(u, torch.zeros_like(u), grid, mask=mask)
    loss.sum().backward()
    torch.testing.assert_close(loss.detach(), value.clone())


def test_equal_fields_have_loss_and_gradient_zero() -> None:
    u = fields(GRID)[0].requires_grad_()
    for loss in REGRESSION:
        (gradient,) = torch.autograd.grad(loss(u, u.detach(), GRID).sum(), u)
        assert not gradient.any()


@pytest.mark.parametrize(
    ("family", "order"),
    [
        ("fejer:{}x{}@0.5", 1.95),
        ("gauss:{}x{}", 1.9),
        ("clenshaw_curtis:{}x{}", 1.95),
        ("equiangular:{}x{}", 1.9),
        ("gauss:{}x{}@0.3", 1.9),
        ("H", 1.9),
        ("O", 1.65),
    ],
)
@pytest.mark.parametrize("masked", [False, True])
def test_sobolev_norms_of_harmonics_converge_with_the_schemes_order(family, order, masked) -> None:
    fine = Grid.gauss(256, 512)
    torch.manual_seed(1)
    exact = ops.gradient(random_coeffs(4, 6), fine).abs().sum(1)
    wanted = ops.integrate(exact, fine) / (4 * math.pi)
    errors = []
    for n in (32, 64):
        name = {"H": f"H{n // 4}", "O": f"O{n // 2}"}.get(family, family.format(n, 2 * n + 1))
        grid = Grid.from_name(name)
        u = harmonics(grid)
        mask = torch.ones(grid.shape, dtype=torch.bool) if masked else None
        found = sobolev(u, torch.zeros_like(u), grid, mask=mask)
        errors.append(((found - wanted) / wanted).square().mean().sqrt())
    assert errors[1] < 0.02
    assert math.log2(errors[0] / errors[1]) > order


@pytest.mark.parametrize("name", ["fejer:64x128@0.5", "clenshaw_curtis:65x128", "O48", "N48"])
def test_sobolev_norms_have_the_closed_forms_of_degree_one(name: str) -> None:
    grid = Grid.from_name(name)
    x, _, z = torch.tensor(grid.xyz.T).reshape(3, 1, 1, *grid.shape)
    assert sobolev(z, 0 * z, grid).item() == pytest.approx(math.pi / 4, rel=1e-3)
    assert sobolev(x, 0 * z, grid).item() == pytest.approx(3 / math.pi, rel=4e-3)
    everywhere = torch.ones(grid.shape, dtype=torch.bool)
    assert sobolev(x, 0 * z, grid, mask=everywhere).item() == pytest.approx(3 / math.pi, rel=4e-3)


def test_masked_sobolev_counts_points_whose_neighbors_are_seen() -> None:
    u = torch.zeros(1, 1, *GRID.shape, dtype=torch.float64)
    mask = torch.ones(GRID.shape, dtype=torch.bool)
    mask[3, 5] = False
    u[0, 0, 3, 5] = 7.0  # hidden, and so are the differences with it
    assert sobolev(u, 0 * u, GRID, mask=mask).item() == 0
    u[0, 0, 3, 6] = 1.0  # its neighbors east, north and south are seen whole
    kept = mask.clone()
    for row, column in ((2, 5), (4, 5), (3, 4), (3, 6)):
        kept[row, column] = False
    weights = GRID.weights
    step = math.pi / 8
    size = (weights[2, 6] + weights[4, 6]) / (2 * step)
    size += weights[3, 7] / (2 * step * math.sin(GRID.theta[3]))
    wanted = size / weights[kept.numpy()].sum()
    assert sobolev(u, 0 * u, GRID, mask=mask).item() == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("loss", REGRESSION)
def test_channels_have_masks_of_their_own_and_count_where_something_is_seen(loss) -> None:
    a, b = fields(GRID, batch=3, channels=3)
    mask = torch.rand(a.shape, generator=torch.Generator().manual_seed(0)) < 0.9
    mask[0, 1] = mask[1, :2] = mask[2] = False
    b[~mask] = math.nan
    found = loss(a, b, GRID, mask=mask)
    for sample, seen in ((0, [0, 2]), (1, [2])):
        alone = [
            loss(a[sample, c][None, None], b[sample, c][None, None], GRID, mask=mask[sample, c])
            for c in seen
        ]
        torch.testing.assert_close(found[sample], torch.cat(alone).mean())
    assert found[2] == 0


def test_depth_loss_adds_a_tenth_of_sobolev() -> None:
    u, v = fields(GRID)
    torch.testing.assert_close(depth_loss(u, v, GRID), l1(u, v, GRID) + 0.1 * sobolev(u, v, GRID))
    torch.testing.assert_close(depth_loss(u, v, GRID, sobolev_weight=0.0), l1(u, v, GRID))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_torchs_where_weights_are_flat(weighted: bool, smoothing: float) -> None:
    grid = Grid.healpix(2)
    logits = torch.randn(4, 5, grid.size, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 5, (4, grid.size))
    mask = torch.rand(4, grid.size) < 0.7
    weights = torch.rand(5, dtype=torch.float64) + 0.5 if weighted else None
    found = cross_entropy(
        logits, labels, grid, mask=mask, class_weights=weights, label_smoothing=smoothing, ignore=2
    )
    for b in range(4):
        target = labels[b].where(mask[b] & (labels[b] != 2), -100)
        wanted = F.cross_entropy(
            logits[b].mT, target, weight=weights, label_smoothing=smoothing, ignore_index=-100
        )
        torch.testing.assert_close(found[b], wanted, rtol=1e-13, atol=0)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert not gradient.mT[~mask].any()


def test_cross_entropy_weighs_points_by_area() -> None:
    logits = torch.zeros(1, 2, *GRID.shape, dtype=torch.float64)
    logits[:, 0] = 3.0
    labels = torch.zeros(1, *GRID.shape, dtype=torch.int64)
    labels[:, :2] = 1
    cap = GRID.weights[:2].sum() / GRID.weights.sum()
    low, high = math.log(1 + math.exp(-3)), math.log(1 + math.exp(3))
    found = cross_entropy(logits, labels, GRID).item()
    assert found == pytest.approx(cap * high + (1 - cap) * low, rel=1e-12)


def test_a_sample_without_labels_has_loss_and_gradient_zero() -> None:
    logits = torch.randn(2, 3, *GRID.shape, requires_grad=True)
    labels = torch.zeros(2, *GRID.shape, dtype=torch.int64)
    labels[1] = 255
    loss = cross_entropy(logits, labels, GRID, ignore=255)
    assert loss[0] > 0
    assert loss[1] == 0
    loss.sum().backward()
    assert logits.grad is not None
    assert logits.grad[0].any()
    assert not logits.grad[1].any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_summed_in_single(dtype: torch.dtype) -> None:
    u, v = (f.to(dtype) for f in fields(GRID))
    for loss in REGRESSION:
        assert loss(u, v, GRID).dtype == torch.float32
        torch.testing.assert_close(loss(u, v, GRID), loss(u.float(), v.float(), GRID))
    labels = torch.zeros(3, *GRID.shape, dtype=torch.int64)
    assert cross_entropy(u, labels, GRID).dtype == torch.float32


def test_longitude_rolls_and_reflections_change_nothing() -> None:
    u, v = fields(GRID)
    for loss in REGRESSION:
        value = loss(u, v, GRID)
        for turn in (lambda f: f.roll(3, -1), lambda f: f.flip(-1), lambda f: f.flip(-2)):
            torch.testing.assert_close(loss(turn(u), turn(v), GRID), value, rtol=1e-12, atol=0)


def test_bad_input_is_named(unchecked) -> None:
    u, v = fields(GRID)
    with pytest.raises(ValueError, match="must have one shape"):
        l1(u, v[:, :1], GRID)
    with pytest.raises(ValueError, match=r"target: expected \(..., 8, 16\)"):
        l1(u, v[..., :5], GRID)
    with pytest.raises(ValueError, match=r"prediction: expected \(batch, channels"):
        l1(u[0], v[0], GRID)
    with pytest.raises(TypeError, match="prediction: expected a floating-point"):
        l1(u.long(), v.long(), GRID)
    with pytest.raises(TypeError, match="mask: expected a bool tensor"):
        l1(u, v, GRID, mask=torch.ones(GRID.shape))
    with pytest.raises(ValueError, match=r"mask: .* does not fit a batch of 3"):
        l1(u, v, GRID, mask=torch.ones(2, *GRID.shape, dtype=torch.bool))
    labels = torch.full((3, *GRID.shape), 2)
    with pytest.raises(ValueError, match="labels: 2 is none of the 2 classes"):
        cross_entropy(u, labels, GRID)
    with pytest.raises(ValueError, match=r"logits .* and labels"):
        cross_entropy(u, labels[:2], GRID)
    assert set(objectives.__all__) >= {loss.__name__ for loss in REGRESSION}


def test_a_channel_seen_only_where_there_is_no_area_does_not_count() -> None:
    grid = Grid.equiangular(4, 8)  # its pole weighs nothing
    u, v = torch.ones(1, 2, 4, 8), torch.zeros(1, 2, 4, 8)
    mask = torch.ones(1, 2, 4, 8, dtype=torch.bool)
    mask[:, 1, 1:] = False
    assert objectives.l1(u, v, grid, mask=mask).item() == pytest.approx(1.0)
