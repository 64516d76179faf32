"""Which rings a rank owns: runs of rings, as even as whole rings allow."""

from functools import lru_cache
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.arcs import UNIT, disk_table
from spherule.grids import Grid

WINDOW = 7
"""Cells across the disks whose pairs are counted as work: the models' own default."""


Runs: TypeAlias = tuple[tuple[int, int], ...]
"""For each rank the rings from one to another, without the last."""
Balance: TypeAlias = Literal["work", "points"]


def balanced_runs(
    grid: Grid, ranks: int, balance: Balance = "work", cutoff: float | None = None
) -> Runs:
    """The rings of all ranks."""
    if balance == "work":
        work = ring_work(grid, grid.cutoff(WINDOW) if cutoff is None else cutoff)
    else:
        work = grid.nphi.astype(np.float64)
    return tuple(pairwise(even_runs(work, ranks)))


@lru_cache(16)
def ring_work(grid: Grid, cutoff: float) -> NDArray[np.float64]:
    """Pairs of queries and keys of each ring of queries, with disks of this radius."""
    table = disk_table(grid, grid, cutoff, 0.0)
    meets = np.diff(table.pairs)
    query = np.repeat(np.arange(grid.nrings), meets)
    key = np.arange(query.size) - np.repeat(table.pairs[:-1] - table.first, meets)
    # On average over the queries of a ring, an arc holds as many keys as it is long.
    arc = np.minimum(table.reach / (UNIT * grid.nphi[query]), grid.nphi[key])
    pairs: NDArray[np.float64] = np.zeros(grid.nrings)
    np.add.at(pairs, query, arc * grid.nphi[query])
    return pairs


def even_runs(work: NDArray[np.float64], ranks: int) -> tuple[int, ...]:
    """Where each rank's run of rings begins, and the end: the largest share is as small as it can
    be, and within that the bounds are near to equal shares. While there are rings enough, every
    rank has one.
    """
    rings = work.size
    if rings <= ranks:
        return tuple(min(rank, rings) for rank in range(ranks + 1))
    ends = np.concatenate([[0.0], np.cumsum(work)])
    low, high = max(work.max(), ends[-1] / ranks), ends[-1]
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _earliest(ends, ranks, middle)[0] <= 0 else (middle, high)
    # The last ring that a share may reach is found by adding up in another order than the share.
    most = high * (1 + 1e-12)
    earliest, bounds = _earliest(ends, ranks, most), [0]
    for rank in range(1, ranks):
        even = int(np.abs(ends - ends[-1] * rank / ranks).argmin())
        latest = int(np.searchsorted(ends, ends[bounds[-1]] + most, side="right")) - 1
        latest = min(latest, rings - (ranks - rank))
        bounds.append(max(min(even, latest), earliest[rank], bounds[-1] + 1))
    return (*bounds, rings)


def _earliest(ends: NDArray[np.float64], ranks: int, most: float) -> list[int]:
    """For each rank the first ring from which it and those behind it can do the rest, if none may
    do more than `most`; below or at 0 for the first one if that is possible at all.
    """
    bounds = [ends.size - 1]
    for rank in range(ranks - 1, -1, -1):
        first = int(np.searchsorted(ends, ends[bounds[0]] - most, side="left"))
        # Those before need a ring each.
        bounds.insert(0, max(first, rank))
    return bounds
