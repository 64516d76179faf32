"""What a rank's own points need of others': a run of rings around them, in one exchange."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from torch import Tensor

from spherule import checks
from spherule.distributed.balance import Runs
from spherule.distributed.collectives import hand_out
from spherule.distributed.shards import Place, Shards, point_runs, whole
from spherule.geometry.arcs import RIM
from spherule.grids import Grid


class Halo:
    """From the points that a rank owns to those that it sees. Without ranks, they are the same."""

    seen: Grid

    def __init__(self, source: Place, needs: Runs | None) -> None:
        """`needs` are the rings of the source that each rank sees."""
        self._where: tuple[list[int], list[int], str] | None = None
        if not isinstance(source, Shards):
            self.seen, self.start = source, 0
            return
        assert needs is not None
        owned, needed = (point_runs(source.grid, runs) for runs in (source.runs, needs))
        mine = owned[source.rank]
        give = [point - mine[0] for run in needed for point in _common(run, mine)]
        shared = [_common(needed[source.rank], run) for run in owned]
        self._where = give, [b - a for a, b in shared], source.group
        self.seen = source.grid.part(*needs[source.rank])
        self.start = needed[source.rank][0]
        """The first point that it sees, in the source's own count."""

    def __call__(self, x: Tensor, dim: int = -1) -> Tensor:
        """The points along a dimension, and those around them."""
        if self._where is None:
            return x
        dim %= x.ndim
        return hand_out(x, dim, dim, *self._where)

    @property
    def exchanges(self) -> bool:
        """Whether there are ranks to exchange with."""
        return self._where is not None


@checks.arguments
def disk_halo(source: Place, target: Place, radius: float | None) -> Halo:
    """All within a radius of the target's points; None is the whole sphere."""
    if radius is not None:
        checks.number("radius", radius, low=0, high=math.pi)
    return _halo(source, target, partial(rings_within, whole(source), radius))


@checks.arguments
def ring_halo(source: Place, target: Place) -> Halo:
    """The rings next to the target's points on either side, and those at the same latitude."""
    return _halo(source, target, partial(rings_beside, whole(source)))


def rings_within(grid: Grid, radius: float | None, north: float, south: float) -> tuple[int, int]:
    """That are within a radius of the colatitudes from `north` to `south`."""
    if radius is None:
        return 0, grid.nrings
    # One ring too many is no harm, one too few is.
    reach = radius + 2 * RIM
    first = int(np.searchsorted(grid.theta, north - reach, side="left"))
    return first, int(np.searchsorted(grid.theta, south + reach, side="right"))


def rings_beside(grid: Grid, north: float, south: float) -> tuple[int, int]:
    """That are next to the colatitudes from `north` to `south`, or between them."""
    first = int(np.searchsorted(grid.theta, north, side="left")) - 1
    last = int(np.searchsorted(grid.theta, south, side="right"))
    return min(max(first, 0), grid.nrings - 1), min(last + 1, grid.nrings)


def _halo(source: Place, target: Place, around: Callable[[float, float], tuple[int, int]]) -> Halo:
    """`around` says which rings are around those from one colatitude to another."""
    if not isinstance(source, Shards) or not isinstance(target, Shards):
        if isinstance(source, Shards) or isinstance(target, Shards):
            raise TypeError(f"{source!r} and {target!r}: expected two grids, or two shards")
        return Halo(source, None)
    if source.mesh != target.mesh:
        raise ValueError(f"{source!r} and {target!r} must be over the same ranks")
    return Halo(source, needed_runs(target.grid, target.runs, around))


def needed_runs(grid: Grid, runs: Runs, around: Callable[[float, float], tuple[int, int]]) -> Runs:
    """The rings around each rank's; an empty run needs none."""
    theta = grid.theta
    return tuple((0, 0) if a == b else around(theta[a], theta[b - 1]) for a, b in runs)


def _common(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What two intervals share; where that is nothing, an empty one within b."""
    start = min(max(a[0], b[0]), b[1])
    return start, max(min(a[1], b[1]), start)
