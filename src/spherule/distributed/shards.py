"""A grid over many ranks: a run of rings each, which is a ring grid again."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Shaped
from numpy.typing import NDArray
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from spherule import checks
from spherule.distributed.balance import Balance, Runs, balanced_runs
from spherule.distributed.collectives import hand_out, sum_ranks
from spherule.grids import Grid
from spherule.ops.checks import require_points


@dataclass(frozen=True)
class Shards:
    """Which rings of a grid each rank of a one-dimensional mesh owns.

    `balance="work"` makes runs of about equally many pairs of queries and keys in disks of
    `cutoff`, by default those of 7 cells: on grids with as many longitudes on all rings, points
    near the poles have many more neighbors. `"points"` makes runs of equally many points. A rank
    owns a ring at least, while there are enough.

    Layers and models live on shards as they do on grids: `layer.on(shards)`.
    """

    grid: Grid
    mesh: DeviceMesh
    balance: Balance = "work"
    cutoff: float | None = None

    def __post_init__(self) -> None:
        checks.config(self)
        if self.cutoff is not None:
            checks.number("cutoff", self.cutoff, above=0, high=math.pi)
        if self.mesh.ndim != 1:
            raise ValueError(
                f"mesh={self.mesh}: expected one dimension; take that of the domain, such as "
                'mesh["domain"]'
            )

    @cached_property
    def group(self) -> str:
        """The name of the ranks' group."""
        return self.mesh.get_group().group_name

    @cached_property
    def rank(self) -> int:
        return self.mesh.get_local_rank()

    @cached_property
    def ranks(self) -> int:
        return self.mesh.size()

    @cached_property
    def runs(self) -> Runs:
        """The rings of all ranks."""
        return balanced_runs(self.grid, self.ranks, self.balance, self.cutoff)

    @cached_property
    def rings(self) -> slice:
        """This rank's."""
        return slice(*self.runs[self.rank])

    @cached_property
    def points(self) -> slice:
        """This rank's."""
        return slice(*point_runs(self.grid, self.runs)[self.rank])

    @cached_property
    def part(self) -> Grid:
        """This rank's rings as a grid."""
        return self.grid.part(*self.runs[self.rank])

    @property
    def shape(self) -> tuple[int, ...]:
        """Of this rank's part of a field."""
        return self.part.shape

    @property
    def name(self) -> str:
        """The grid's."""
        return self.grid.name

    @property
    def coarsest(self) -> bool:
        return self.grid.coarsest

    def coarsen(self) -> "Shards":
        """Half the resolution, over the same ranks; some may own nothing of it."""
        return self.of(self.grid.coarsen())

    @checks.arguments
    def of(self, grid: Grid) -> "Shards":
        """Another grid over the same ranks."""
        cutoff = None if self.cutoff is None else self.cutoff * grid.spacing / self.grid.spacing
        return Shards(grid, self.mesh, self.balance, cutoff)

    def scatter(self, field: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """This rank's part of a field (..., *grid.shape) that all ranks have."""
        require_points("field", field, self.grid)
        if self.grid.regular:
            return field[..., self.rings, :]
        return field[..., self.points]

    def gather(self, part: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
        """The field of all ranks' parts (..., *shape), on each of them."""
        require_points("part", part, self.part)
        flat = part.flatten(part.ndim - len(self.shape))
        give = [0, flat.shape[-1]] * self.ranks
        take = [b - a for a, b in point_runs(self.grid, self.runs)]
        dim = flat.ndim - 1
        return hand_out(flat, dim, dim, give, take, self.group).unflatten(-1, self.grid.shape)

    def __repr__(self) -> str:
        return f"Shards({self.part!r}, rank {self.rank} of {self.ranks})"


Place: TypeAlias = Grid | Shards
"""Where a layer lives: on a grid, or on this rank's part of one."""


@checks.arguments
def own(place: Place) -> Grid:
    """The grid of a rank's own points."""
    return place.part if isinstance(place, Shards) else place


@checks.arguments
def whole(place: Place) -> Grid:
    """The grid of all ranks' points."""
    return place.grid if isinstance(place, Shards) else place


@checks.arguments
def scattered(field: Tensor, place: Place) -> Tensor:
    """A rank's own part of a field."""
    return place.scatter(field) if isinstance(place, Shards) else field


@checks.arguments
def gathered(part: Tensor, place: Place) -> Tensor:
    """The field of all ranks' parts."""
    return place.gather(part) if isinstance(place, Shards) else part


@checks.arguments
def area_shares(place: Place) -> NDArray[np.float64]:
    """Quadrature weights of a rank's own points, (points,); those of all ranks add up to 1."""
    return own(place).weights.ravel() / whole(place).weights.sum()


@checks.arguments
def summed(x: Tensor, place: Place, *, shared: bool = False) -> Tensor:
    """The sum over ranks; `shared` where all go on with it alike, as with a loss."""
    return sum_ranks(x, place.group, shared) if isinstance(place, Shards) else x


@checks.arguments
def pooled(mean: Tensor, variance: Tensor, share: Tensor, place: Shards) -> tuple[Tensor, Tensor]:
    """Mean and variance over all ranks' points of those over each one's own, which have `share` of
    the weight. All see what each has, so that nothing is a difference of large numbers.
    """
    mine = torch.stack(torch.broadcast_tensors(share, mean, variance))
    ranks = torch.stack(
        [mine if rank == place.rank else torch.zeros_like(mine) for rank in range(place.ranks)]
    )
    shares, means, variances = summed(ranks, place).unbind(1)
    shares = shares / shares.sum(0).clamp(min=torch.finfo(shares.dtype).tiny)
    mean = (shares * means).sum(0)
    return mean, (shares * (variances + (means - mean).square())).sum(0)


@checks.arguments
def agreed(x: Tensor, place: Place) -> Tensor:
    """What the first rank has, on all of them."""
    if not isinstance(place, Shards):
        return x
    return sum_ranks(x if place.rank == 0 else torch.zeros_like(x), place.group, False)


def point_runs(grid: Grid, runs: Runs) -> Runs:
    """The points of runs of rings."""
    points = (grid.points(*run) for run in runs)
    return tuple((run.start, run.stop) for run in points)
