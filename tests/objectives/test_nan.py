"""NaN in, NaN out; a NaN under a mask does not count."""

import math

import pytest
import torch

from spherule import Grid, objectives
from spherule.objectives import (
    Average,
    accuracy,
    class_iou,
    confusion,
    cross_entropy,
    depth_loss,
    iou_macro,
    iou_micro,
    l1,
    l2,
    pixel_accuracy,
    sobolev,
    squared_l2,
)
from tests.oracles import SMALL_GRIDS

REGRESSION = [l1, squared_l2, l2, sobolev, depth_loss]
METRICS = [pixel_accuracy, iou_micro, iou_macro, class_iou, accuracy]
GRIDS = [*SMALL_GRIDS, "fejer:1x1@0.5", "equiangular:2x1"]
CLASSES = 5
OPTIONS = [
    {},
    {"label_smoothing": 0.1},
    {"class_weights": torch.arange(1.0, CLASSES + 1).double(), "label_smoothing": 0.1},
]


def fields(grid: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    pair = torch.randn(2, 3, 2, *grid.shape, dtype=torch.float64)
    return pair[0], pair[1]


def segmentation(grid: Grid) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.randn(3, CLASSES, *grid.shape, dtype=torch.float64)
    return scores, torch.randint(0, CLASSES, (3, *grid.shape))


def spoilt(u: torch.Tensor, point: int, value: float = math.nan) -> torch.Tensor:
    """Sample 1, the last channel, one point."""
    u = u.clone()
    u[1, -1].view(-1)[point] = value
    return u


def hiding(grid: Grid, points: list[int]) -> torch.Tensor:
    mask = torch.ones(grid.size, dtype=torch.bool)
    mask[points] = False
    return mask.reshape(grid.shape)


def test_every_loss_and_metric_is_tested_here() -> None:
    tested = {f.__name__ for f in (*REGRESSION, *METRICS, cross_entropy, confusion, Average)}
    assert tested == set(objectives.__all__) - {"MeanStd"}


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("masked", [False, True])
def test_a_nan_anywhere_makes_the_loss_of_its_sample_nan(loss, name: str, masked: bool) -> None:
    grid = Grid.from_name(name)
    u, v = fields(grid)
    mask = hiding(grid, [grid.size // 2] if grid.size > 1 else []) if masked else None
    whole = loss(u, v, grid, mask=mask)
    assert whole.isfinite().all()
    for point in range(0, grid.size, max(grid.size // 24, 1)):
        if masked and grid.size > 1 and point == grid.size // 2:
            continue
        for pair in ((spoilt(u, point), v), (u, spoilt(v, point))):
            value = loss(*pair, grid, mask=mask)
            assert value[1].isnan().all()
            assert torch.equal(value[[0, 2]], whole[[0, 2]])


@pytest.mark.parametrize("loss", REGRESSION)
def test_a_nan_that_a_mask_leaves_alone_is_nan(loss) -> None:
    """No difference is left where only one point is seen, but a NaN is."""
    grid = Grid.fejer(8, 16, offset=0.5)
    u, v = fields(grid)
    mask = ~hiding(grid, [37])
    assert loss(spoilt(u, 37), v, grid, mask=mask)[1].isnan()
    assert loss(u, v, grid, mask=mask).isfinite().all()


@pytest.mark.parametrize("loss", REGRESSION)
@pytest.mark.parametrize("name", SMALL_GRIDS)
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_a_mask_hides_counts_in_no_loss_and_no_gradient(loss, name, value) -> None:
    grid = Grid.from_name(name)
    u, v = fields(grid)
    points = list(range(0, grid.size, 5))
    mask = hiding(grid, points)
    results = []
    for hidden in (0.0, value):
        a, b = (f.masked_fill(~mask, hidden).requires_grad_() for f in (u, v))
        result = loss(a, b, grid, mask=mask)
        results.append((result, *torch.autograd.grad(result.sum(), (a, b))))
    for plain, spoilt_ in zip(*results, strict=True):
        assert plain.isfinite().all()
        assert torch.equal(plain, spoilt_)


@pytest.mark.parametrize("options", OPTIONS)
def test_cross_entropy_of_nan_is_nan(options) -> None:
    grid = Grid.healpix(2)
    scores, labels = segmentation(grid)
    whole = cross_entropy(scores, labels, grid, **options)
    for point in range(grid.size):
        value = cross_entropy(spoilt(scores, point), labels, grid, **options)
        assert value[1].isnan()
        assert torch.equal(value[[0, 2]], whole[[0, 2]])


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("by", ["mask", "ignore"])
def test_hidden_scores_count_in_neither_cross_entropy_nor_gradient(options, by: str) -> None:
    grid = Grid.fejer(6, 12, offset=0.5)
    scores, labels = segmentation(grid)
    mask = hiding(grid, list(range(0, grid.size, 5)))
    if by == "ignore":
        labels, hide = labels.where(mask, 255), {"ignore": 255}
    else:
        hide = {"mask": mask}
    results = []
    for hidden in (0.0, math.nan):
        a = scores.masked_fill(~mask, hidden).requires_grad_()
        loss = cross_entropy(a, labels, grid, **hide, **options)
        results.append((loss, *torch.autograd.grad(loss.sum(), a)))
    for plain, spoilt_ in zip(*results, strict=True):
        assert plain.isfinite().all()
        assert torch.equal(plain, spoilt_)


def test_all_metrics_of_nan_scores_are_nan() -> None:
    grid = Grid.fejer(6, 12, offset=0.5)
    scores, labels = segmentation(grid)
    whole = confusion(scores, labels, CLASSES, grid)
    assert torch.equal(whole, confusion(scores.argmax(1), labels, CLASSES, grid))
    for point in range(0, grid.size, 7):
        matrix = confusion(spoilt(scores, point), labels, CLASSES, grid)
        assert torch.equal(matrix[[0, 2]], whole[[0, 2]])
        for metric in METRICS:
            value = metric(matrix)
            assert value[1].isnan().all()
            assert value[[0, 2]].isfinite().all()
            assert metric(matrix.sum(0)).isnan().all()


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_of_a_nan_anywhere_in_the_matrix_are_nan(metric) -> None:
    for place in range(CLASSES**2):
        for start in (torch.rand, torch.zeros):
            matrix = start(CLASSES, CLASSES, dtype=torch.float64)
            matrix.view(-1)[place] = math.nan
            assert metric(matrix).isnan().any()


def test_hidden_scores_count_in_no_metric() -> None:
    grid = Grid.fejer(6, 12, offset=0.5)
    scores, labels = segmentation(grid)
    mask = hiding(grid, [5, 9])
    whole = confusion(scores, labels, CLASSES, grid, mask=mask)
    hidden = scores.masked_fill(~mask, math.nan)
    assert torch.equal(confusion(hidden, labels, CLASSES, grid, mask=mask), whole)
    labels = labels.where(mask, 255)
    torch.testing.assert_close(
        confusion(hidden, labels, CLASSES, grid, ignore=255), whole, rtol=0, atol=1e-16
    )


def test_averages_of_nan_are_nan_unless_it_is_not_valid() -> None:
    average = Average()
    values = torch.tensor([1.0, math.nan, 3.0])
    average.update({"a": values, "b": values.nan_to_num(2.0)})
    average.update({"a": torch.ones(2), "b": torch.ones(2)})
    assert math.isnan(average.compute()["a"].mean)
    assert math.isnan(average.compute()["a"].std)
    assert average.compute()["b"].mean == pytest.approx(1.6)
    masked = Average()
    masked.update({"a": values}, ~values.isnan())
    assert (masked.compute()["a"].mean, masked.compute()["a"].count) == (2.0, 2)


def test_bad_input_is_named(unchecked) -> None:
    grid = Grid.fejer(6, 12, offset=0.5)
    scores, labels = segmentation(grid)
    with pytest.raises(TypeError, match="labels: expected an int64"):
        confusion(scores, labels.double(), CLASSES, grid)
    with pytest.raises(ValueError, match=r"or scores \(batch, 4, ...\)"):
        confusion(scores, labels, 4, grid)
    with pytest.raises(ValueError, match="label_smoothing=nan must be finite"):
        cross_entropy(scores, labels, grid, label_smoothing=math.nan)
    with pytest.raises(ValueError, match="sobolev_weight=nan must be finite"):
        depth_loss(scores, scores, grid, sobolev_weight=math.nan)
