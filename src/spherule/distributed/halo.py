"""What a rank's own points need of others': a run of rings around them, in one exchange."""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spherule import checks
from spherule.distributed.collectives import hand_out
from spherule.distributed.shards import Place, Runs, Shards, point_runs, whole
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

    def of_both(
        self, k: Float[Tensor, "batch heads points dim"], v: Float[Tensor, "batch heads points dv"]
    ) -> tuple[Tensor, Tensor]:
        """Of keys and values in one exchange."""
        if self._where is None:
            return k, v
        seen_k, seen_v = self(torch.cat([k, v], -1), 2).split([k.shape[-1], v.shape[-1]], -1)
        return seen_k, seen_v


@checks.arguments
def disk_halo(source: Place, target: Place, radius: float | None) -> Halo:
    """All within a radius of the target's points; None is the whole sphere."""

    def around(north: float, south: float) -> tuple[int, int]:
        theta = whole(source).theta
        if radius is None:
            return 0, theta.size
        # One ring too many is no harm, one too few is.
        reach = radius + 2 * RIM
        first = int(np.searchsorted(theta, north - reach, side="left"))
        return first, int(np.searchsorted(theta, south + reach, side="right"))

    return _halo(source, target, around)


@checks.arguments
def ring_halo(source: Place, target: Place) -> Halo:
    """The rings next to the target's points on either side, and those at the same latitude."""

    def around(north: float, south: float) -> tuple[int, int]:
        theta = whole(source).theta
        first = int(np.searchsorted(theta, north, side="left")) - 1
        last = int(np.searchsorted(theta, south, side="right"))
        return min(max(first, 0), theta.size - 1), min(last + 1, theta.size)

    return _halo(source, target, around)


def _halo(source: Place, target: Place, around: Callable[[float, float], tuple[int, int]]) -> Halo:
    """`around` says which rings are around those from one colatitude to another."""
    if not isinstance(source, Shards) or not isinstance(target, Shards):
        if isinstance(source, Shards) or isinstance(target, Shards):
            raise TypeError(f"{source!r} and {target!r}: expected two grids, or two shards")
        return Halo(source, None)
    if source.mesh != target.mesh:
        raise ValueError(f"{source!r} and {target!r} must be over the same ranks")
    theta = target.grid.theta
    needs = [(0, 0) if a == b else around(theta[a], theta[b - 1]) for a, b in target.runs]
    return Halo(source, tuple(needs))


def _common(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    """What two intervals share; where that is nothing, an empty one within b."""
    start = min(max(a[0], b[0]), b[1])
    return start, max(min(a[1], b[1]), start)
