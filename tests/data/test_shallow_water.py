import itertools
import pickle
from dataclasses import replace

import pytest
import torch
from torch.utils.data import DataLoader, Subset

from spherule import Grid, ops
from spherule.data import ConsecutiveBatches, ShallowWaterConfig, ShallowWaterDataset, Statistics
from spherule.data.shallow_water import BLOCK

SMALL = ShallowWaterConfig(grid="gauss:24x48", step=300.0)
UNIT = Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def dataset(config: ShallowWaterConfig = SMALL, **options) -> ShallowWaterDataset:
    return ShallowWaterDataset(config, **{"statistics": UNIT, **options})


def same(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


def test_sample_is_the_same_in_any_order_and_with_any_threads() -> None:
    first, again = dataset(seed=7), dataset(seed=7)
    forward = [first[i] for i in range(10)]
    torch.set_num_threads(2)
    backward = [again[i] for i in reversed(range(10))][::-1]
    assert torch.get_num_threads() == 2
    assert all(same(a, b) for a, b in zip(forward, backward, strict=True))
    assert same(forward[3], pickle.loads(pickle.dumps(first))[3])


@pytest.mark.parametrize("size", [BLOCK, 3])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_batches_are_the_same_for_any_number_of_workers_and_after_a_resume(
    workers: int, size: int
) -> None:
    data = dataset()
    loader = DataLoader(data, batch_sampler=ConsecutiveBatches(size, 2 * size), num_workers=workers)
    for number, (inputs, targets) in enumerate(itertools.islice(loader, 3), start=2):
        for place in range(size):
            assert same((inputs[place], targets[place]), data[number * size + place])


def test_a_shuffled_batch_comes_in_the_order_asked_for() -> None:
    data = dataset()
    order = [9, 2, 5, 2]
    (inputs, targets) = next(iter(DataLoader(data, batch_sampler=[order])))
    for place, index in enumerate(order):
        assert same((inputs[place], targets[place]), data[index])


def test_samples_and_seeds_differ() -> None:
    data, other = dataset(seed=0), dataset(seed=1)
    inputs = [data[i][0] for i in range(BLOCK + 2)] + [other[0][0]]
    for a, b in itertools.combinations(inputs, 2):
        assert not torch.equal(a, b)


def test_target_is_the_input_a_lead_time_later() -> None:
    start, end = dataset()[5]
    solver = SMALL.solver()
    grid = Grid.from_name(SMALL.grid)
    state = ops.sht(start, grid, 8)
    expected = solver.fields(solver.advance(state, 300.0, 12))
    scale = expected.std((-1, -2), keepdim=True)
    assert ((end - expected) / scale).abs().max() < 1e-3  # rounding of the depth in float32
    assert ((end - start) / scale).abs().max() > 0.1


def test_config_changes_what_is_made() -> None:
    depth = 3000.0
    data = dataset(replace(SMALL, mean_depth=depth, preset="paper", grid="H8", lmax=6, lead=600.0))
    start, _ = data[0]
    assert start.shape == (3, 768)
    assert start[0].mean() == pytest.approx(depth * 9.80616, rel=0.01)
    assert start[0].std() == pytest.approx(120 * 9.80616, rel=0.3)
    assert data.config.resolved()["lmax"] == 6
    assert SMALL.resolved()["lmax"] == 8
    assert SMALL.resolved()["mean_depth"] == 1e4


def test_inputs_are_normalized_and_come_back() -> None:
    data = ShallowWaterDataset(SMALL, seed=3)
    inputs = torch.stack([data[i][0] for i in range(64)])
    weights = torch.tensor(data.grid.weights / data.grid.weights.sum()).float()
    mean = (inputs * weights).sum((-1, -2)).mean(0)
    std = (inputs**2 * weights).sum((-1, -2)).mean(0).sqrt()
    assert mean.abs().max() < 0.05
    torch.testing.assert_close(std, torch.ones(3), rtol=0.08, atol=0)
    raw = data.statistics.denormalize(inputs, data.grid)
    torch.testing.assert_close(raw[0], dataset(seed=3)[0][0], rtol=1e-6, atol=1e-10)


def test_statistics_belong_to_the_config_and_not_to_the_seed() -> None:
    a, b = (ShallowWaterDataset(SMALL, seed=seed).statistics for seed in (0, 5))
    assert a == b
    assert ShallowWaterDataset(replace(SMALL, preset="paper")).statistics != a


def test_a_subset_is_a_validation_set() -> None:
    part = Subset(dataset(seed=9), range(6))
    assert len(part) == 6
    assert len(list(DataLoader(part, batch_size=4))) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lead": 100.0}, "multiple of step"),
        ({"lead": -300.0}, "lead=-300"),
        ({"step": 0.0}, "step=0"),
        ({"mean_depth": -10.0}, "mean_depth=-10"),
        ({"mean_depth": 100.0}, "depth is negative somewhere"),
        ({"lmax": 24}, "lmax=24 must be >= 1"),
        ({"lmax": 0}, "lmax=0"),
        ({"grid": "gauss:2x4"}, "too small"),
        ({"grid": "gauss:0x4"}, "nlat=0"),
        ({"grid": "gaus:24x48"}, "is not a grid"),
        ({"preset": "papr"}, "preset='papr'"),
        ({"damping_time": -1.0}, "damping_time=-1"),
    ],
)
def test_bad_config_is_named(unchecked, change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataset(replace(SMALL, **change))


def test_bad_input_is_named(unchecked) -> None:
    with pytest.raises(ValueError, match="seed=-1"):
        dataset(seed=-1)
    with pytest.raises(IndexError, match="index=-1"):
        dataset()[-1]
    with pytest.raises(ValueError, match="size=0"):
        ConsecutiveBatches(0)
    with pytest.raises(ValueError, match="CFL limit"):
        dataset(replace(SMALL, step=3600.0))[0]
