"""Shallow water of every age: windows along trajectories."""

import numpy as np
import pytest
import torch

from spherule.data import AgedShallowWater, ShallowWaterConfig, ShallowWaterDataset
from spherule.data.trajectories import RECENT

CONFIG = ShallowWaterConfig(grid="gauss:12x24", step=600.0, lead=3600.0)


def aged(**changes: object) -> AgedShallowWater:
    return AgedShallowWater(CONFIG, days=0.5, seed=3, **changes)


def test_a_sample_is_the_same_however_it_is_reached() -> None:
    first, second = aged(), aged()
    there = {i: first[i] for i in (0, 5, 40, 17)}
    for i in (40, 17, 5, 0):
        assert all(torch.equal(a, b) for a, b in zip(there[i], second[i], strict=True))


def test_targets_are_what_the_solver_makes_of_inputs() -> None:
    data = aged(leads=3)
    starts = ShallowWaterDataset(CONFIG, seed=3, statistics=data.statistics, leads=1)
    sample = data[2]
    assert len(sample) == 4
    followed = starts.statistics.normalize(
        starts.solver.fields(starts.trajectories(0, data.oldest + 3)), starts.grid
    )
    near = [(followed[b, t] - sample[0]).abs().max().item() for b in range(4) for t in range(13)]
    b, t = divmod(int(np.argmin(near)), 13)
    for k, state in enumerate(sample):
        torch.testing.assert_close(state, followed[b, t + k], rtol=1e-4, atol=1e-4)


def test_ages_are_spread_from_the_start_to_the_oldest() -> None:
    data = aged()
    ages = []
    data._block = lambda number: _Recorder(ages)  # type: ignore[assignment,method-assign]
    data._starts.solver.fields = lambda window, grid: torch.zeros(2, 3, 12, 24)  # type: ignore[method-assign]
    for i in range(400):
        data[i]
    assert min(ages) == 0
    assert max(ages) == data.oldest == 12
    counts = np.bincount(ages)
    assert counts.min() > 2
    assert counts[0] > 60  # as many in each octave: 26 % are new


class _Recorder:
    def __init__(self, ages: list[int]) -> None:
        self.ages = ages

    def __getitem__(self, place: tuple[int, slice]) -> torch.Tensor:
        self.ages.append(place[1].start)
        return torch.zeros(2)


def test_few_trajectories_are_kept_and_newer_ones_take_their_place() -> None:
    data = aged()
    made = []
    own = data._starts.trajectories
    data._starts.trajectories = lambda n, leads: made.append(n) or own(n, leads)  # type: ignore[method-assign,func-returns-value]
    data._starts.solver.fields = lambda window, grid: torch.zeros(2, 3, 12, 24)  # type: ignore[method-assign]
    for i in range(10 * data.windows):
        data[i]
        assert len(data._blocks) <= RECENT
    assert max(made) == 9
    assert len(made) < 14  # each hardly more than once: six leads a sample, not twelve hours


@pytest.mark.parametrize("days", [0.0, -1.0, float("nan")])
def test_bad_ages_are_refused(days: float) -> None:
    with pytest.raises(ValueError, match="days="):
        AgedShallowWater(CONFIG, days=days)
