import math
import socket

import numpy as np
import pytest
import torch
import torch.multiprocessing

from spherule import Grid
from spherule.objectives import (
    Average,
    accuracy,
    class_iou,
    confusion,
    iou_macro,
    iou_micro,
    pixel_accuracy,
)
from tests.oracles import SMALL_GRIDS

METRICS = [pixel_accuracy, iou_micro, iou_macro, accuracy]
GRID = Grid.fejer(8, 16, offset=0.5)


def labels(grid: Grid, batch: int = 3, classes: int = 5) -> tuple[torch.Tensor, torch.Tensor]:
    true = torch.randint(0, classes, (batch, *grid.shape))
    wrong = torch.randint(0, classes, (batch, *grid.shape))
    return torch.where(torch.rand(true.shape) < 0.6, true, wrong), true


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_areas_add_up_to_one_and_the_identities_hold(name: str) -> None:
    grid = Grid.from_name(name)
    matrix = confusion(*labels(grid), 5, grid)
    positive = matrix.diagonal(dim1=1, dim2=2)
    false_positive, false_negative = matrix.sum(1) - positive, matrix.sum(2) - positive
    negative = torch.stack(
        [
            torch.stack([m[[i for i in range(5) if i != c]][:, [i for i in range(5) if i != c]]])
            for m in matrix
            for c in range(5)
        ]
    ).sum((1, 2, 3))
    total = positive + false_positive + false_negative + negative.reshape(3, 5)
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-12)
    a = pixel_accuracy(matrix)
    torch.testing.assert_close(iou_micro(matrix), a / (2 - a), rtol=0, atol=1e-12)
    torch.testing.assert_close(accuracy(matrix), 1 - 2 * (1 - a) / 5, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        accuracy(matrix), (positive + negative.reshape(3, 5)).mean(1), rtol=0, atol=1e-12
    )


def test_confusion_is_the_area_of_each_pair_of_classes() -> None:
    predicted, true = labels(GRID)
    mask = torch.rand(3, *GRID.shape) < 0.8
    found = confusion(predicted, true, 5, GRID, mask=mask, ignore=4)
    for b in range(3):
        seen = mask[b] & (true[b] != 4)
        for t in range(5):
            for p in range(5):
                pair = seen & (true[b] == t) & (predicted[b] == p)
                wanted = GRID.weights[pair.numpy()].sum() / GRID.weights[seen.numpy()].sum()
                assert found[b, t, p].item() == pytest.approx(wanted, abs=1e-13)


def test_flat_weights_give_scikit_learns_numbers() -> None:
    grid = Grid.healpix(2)
    i = torch.arange(grid.size)
    true = torch.stack([(i * i) % 5, (i * 3) % 7 % 4, i * 0 + 2])
    predicted = torch.stack([(i * i + i // 9) % 5, (i * 5) % 7 % 4 + 1, i * 0 + 3])
    matrix = confusion(predicted, true, 14, grid)
    # scikit-learn 1.9.1: jaccard_score(average="macro" and "micro"), accuracy_score
    macro = [0.11210571184995737, 0.13333333333333333, 0.0]
    micro = [0.14285714285714285, 0.17073170731707318, 0.0]
    right = [0.25, 0.2916666666666667, 0.0]
    for metric, wanted in ((iou_macro, macro), (iou_micro, micro), (pixel_accuracy, right)):
        np.testing.assert_allclose(metric(matrix), wanted, rtol=0, atol=1e-15)


def test_class_iou_is_that_of_each_class() -> None:
    grid = Grid.healpix(1)
    true = torch.tensor([[0] * 6 + [1] * 4 + [2] * 2])
    predicted = torch.tensor([[0] * 5 + [1] * 3 + [2] * 4])
    found = class_iou(confusion(predicted, true, 4, grid))
    # Of points: 5 of 6, 2 of 5, 2 of 4; nobody has the last.
    np.testing.assert_allclose(found, [[5 / 6, 2 / 5, 2 / 4, 0]], atol=1e-15)


def test_absent_classes_and_hidden_samples_have_defined_values() -> None:
    true = torch.zeros(2, *GRID.shape, dtype=torch.int64)
    mask = torch.ones(2, *GRID.shape, dtype=torch.bool)
    mask[1] = False
    matrix = confusion(true, true, 14, GRID, mask=mask)
    for metric in METRICS:
        assert metric(matrix)[0].item() == pytest.approx(1.0, abs=1e-14)
        assert metric(matrix)[1].item() == 0.0
    assert matrix[1].sum() == 0


def test_metrics_take_sums_of_confusion_matrices_too() -> None:
    matrix = confusion(*labels(GRID), 5, GRID)
    for metric in METRICS:
        torch.testing.assert_close(metric(matrix.sum(0)), metric(matrix.mean(0)))


def test_average_is_that_of_all_samples_in_any_batches() -> None:
    values = 1e4 + torch.rand(50, dtype=torch.float64) * 1e-3
    valid = torch.rand(50) < 0.7
    average = Average()
    for part, seen in zip(values.split(7), valid.split(7), strict=True):
        average.update({"a": part, "b": part.float()}, seen)
    kept = values[valid].numpy()
    found = average.compute()["a"]
    assert found.count == len(kept)
    assert found.mean == pytest.approx(kept.mean(), rel=1e-15)
    assert found.std == pytest.approx(kept.std(), rel=1e-6)
    assert average.reduce() is average  # one process: nothing to do
    average.update({"a": values[:1]})


def test_an_empty_average_is_defined() -> None:
    average = Average()
    assert average.compute() == {}
    average.update({"a": torch.ones(2)}, torch.zeros(2, dtype=torch.bool))
    assert average.compute()["a"].count == 0
    assert average.compute()["a"].mean == average.compute()["a"].std == 0.0
    average.update({"a": torch.tensor([3.0])})
    assert f"{average.compute()['a']:.2f}" == "3.00 ± 0.00"


def _rank(rank: int, port: int) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2
    )
    average = Average()
    average.update({"a": torch.arange(4.0) if rank == 0 else torch.tensor([10.0])})
    if rank == 1:
        average.update({"b": torch.tensor([1.0, 2.0])})
    for _ in range(2):  # the second does not count again
        found = average.reduce().compute()
        assert (found["a"].count, found["b"].count) == (5, 2)
        assert math.isclose(found["a"].mean, 3.2, rel_tol=1e-15)
        assert math.isclose(found["a"].std, np.std([0, 1, 2, 3, 10]), rel_tol=1e-14)
    with pytest.raises(RuntimeError, match="update after reduce"):
        average.update({"a": torch.zeros(1)})
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_average_goes_over_ranks() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(_rank, (port,), nprocs=2)


def test_bad_input_is_named(unchecked) -> None:
    predicted, true = labels(GRID)
    with pytest.raises(ValueError, match="predicted: 4 is no class of classes=4"):
        confusion(predicted.clamp(min=4), true.clamp(max=3), 4, GRID)
    with pytest.raises(ValueError, match="labels: -1 is no class of classes=5"):
        confusion(predicted, true * 0 - 1, 5, GRID)
    with pytest.raises(ValueError, match=r"expected \(batch, ...\)"):
        confusion(predicted[0], true[0], 5, GRID)
    with pytest.raises(ValueError, match=r"values\['a'\]: expected one number a sample"):
        Average().update({"a": torch.zeros(2, 2)})
