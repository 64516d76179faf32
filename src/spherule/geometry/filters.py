"""Filters of DISCO convolutions: hats on a geodesic disk around each output point, and the stencil
that they make between two grids.
"""

import math
import operator
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule import checks
from spherule.geometry.arcs import ArcTable, disk_table, runs
from spherule.geometry.great_circles import seen_from
from spherule.geometry.hats import Hats
from spherule.geometry.ring_pairs import RingPairs, Samples
from spherule.grids import Grid
from spherule.grids.names import Names

# Steps in which a default cutoff grows until every hat has points.
_LONGER = 1.1

# So that an operator in a compiled or exported program, which can hold no Python objects, finds its
# stencil.
_known: Names["Stencil"] = Names(recent=64)


class _Disk(NamedTuple):
    """Points around those of one output ring, which repeat `period` times around."""

    period: int
    ring: NDArray[np.int64]
    phase: NDArray[np.int64]
    column: NDArray[np.int64]
    angle: NDArray[np.float64]


class EmptyHat(ValueError):
    """No point lies under a hat."""


@dataclass(frozen=True)
class Stencil:
    """A basis of filters between two grids: psi[k, i, j] for hat k, output point i, input point j.

    Hats are piecewise linear, in the geodesic distance and in the azimuth around the output point:
    one in the center, then `angles` of them at each of `radii` distances, cutoff / (radii + 1)
    apart. The azimuth runs from south (0) over east (pi / 2), so the basis turns with the meridian;
    with `angles=1` it is isotropic. The quadrature weights of the input grid are inside, and each
    hat averages: its weights sum to 1 at every output point. A hat with no point under it is an
    error, except at the largest cutoff, pi: there it takes the points nearest to its middle, so
    that filters exist on grids of any few points.

    A value: frozen, hashable, shared between layers. Made by `Stencil.hats`.
    """

    in_grid: Grid
    out_grid: Grid
    cutoff: float
    radii: int
    angles: int
    # What follows from these is computed at once: a hat without points is found at construction,
    # and compilers that trace through a layer meet plain numbers rather than arrays.
    name: str = field(init=False, compare=False)
    """Says all that defines it; `Stencil.from_name` gives it back."""
    basis: int = field(init=False, compare=False)
    """The number of hats."""
    in_shape: tuple[int, ...] = field(init=False, compare=False)
    out_shape: tuple[int, ...] = field(init=False, compare=False)
    pairs: RingPairs = field(init=False, compare=False)
    """psi as ring pairs: targets are output points, sources input points."""
    nonzeros: int = field(init=False, compare=False)
    """Of psi."""
    period: int = field(init=False, compare=False)
    """How often all of psi repeats around, where both grids are regular; else 1."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", 1 + self.radii * self.angles)
        pairs = self._pairs()
        regular = self.in_grid.regular and self.out_grid.regular
        for name, value in {
            "name": _name(self.in_grid, self.out_grid, self.cutoff, self.radii, self.angles),
            "in_shape": self.in_grid.shape,
            "out_shape": self.out_grid.shape,
            "pairs": pairs,
            "nonzeros": pairs.nonzeros,
            "period": int(pairs.period[0]) if regular and self.out_grid.size else 1,
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    def hats(
        cls,
        in_grid: Grid,
        out_grid: Grid | None = None,
        *,
        cutoff: float | None = None,
        radii: int = 2,
        angles: int = 4,
    ) -> "Stencil":
        """`out_grid=None` stays on the input grid; `cutoff=None` is `default_cutoff`."""
        out_grid = in_grid if out_grid is None else out_grid
        for name, grid in (("in_grid", in_grid), ("out_grid", out_grid)):
            if not isinstance(grid, Grid):
                raise TypeError(f"{name}: expected a Grid, got {type(grid).__name__}")
        radii, angles = operator.index(radii), operator.index(angles)
        for name, count in (("radii", radii), ("angles", angles)):
            if count < 1:
                raise ValueError(f"{name}={count} must be at least 1")
        if cutoff is None:
            cutoff = default_cutoff(in_grid, out_grid, radii=radii, angles=angles)
        cutoff = checks.radius("cutoff", cutoff)
        name = _name(in_grid, out_grid, cutoff, radii, angles)
        known = _known.get(name)
        if known is None:
            known = _known.add(name, cls(in_grid, out_grid, cutoff, radii, angles))
        if (known.in_grid, known.out_grid) != (in_grid, out_grid):
            raise ValueError(f"{name!r} already names another stencil: two grids share a name")
        return known

    @classmethod
    def from_name(cls, name: str) -> "Stencil":
        """The stencil of a `.name`; of rings of your own, while they are in use here."""
        if known := _known.get(name):
            return known
        words = re.fullmatch(r"hats (\S+) (\S+) (\S+) ([0-9]{1,9}) ([0-9]{1,9})", name)
        if words is None:
            raise ValueError(f"name={name!r:.80} must be what a stencil calls itself")
        grids = Grid.from_name(words[1]), Grid.from_name(words[2])
        return cls.hats(*grids, cutoff=float(words[3]), radii=int(words[4]), angles=int(words[5]))

    def _pairs(self) -> RingPairs:
        table = disk_table(self.out_grid, self.in_grid, self.cutoff, 0.0)
        # A rule that weighs a pole 0 keeps it in, infinitely light: it counts only under a hat that
        # has no other points, as the center one at the pole itself.
        weights = self.in_grid.ring_weights
        weights = np.where(weights > 0, weights, 1e-30 * self.in_grid.weight_range[1])
        return RingPairs.build(
            self.out_grid, self.in_grid, lambda r: self._samples(r, table, weights)
        )

    def _samples(self, r: int, table: ArcTable, weights: NDArray[np.float64]) -> Samples:
        """psi for ring r of output points."""
        hats, disk = Hats(self.cutoff, self.radii, self.angles), self._disk(table, r)
        seen = seen_from(self.out_grid.theta[r], self.in_grid.theta[disk.ring], disk.angle)
        point, hat, value = hats.evaluate(*seen)
        covered = np.zeros((self.out_grid.nphi[r] // disk.period, self.basis), bool)
        covered[disk.phase[point], hat] = True
        for phase, k in np.argwhere(~covered).tolist():
            if self.cutoff < math.pi:
                raise self._empty(r, k)
            around = np.flatnonzero(disk.phase == phase)
            near = around[hats.nearest(k, *(x[around] for x in seen))]
            point = np.append(point, near)
            hat = np.append(hat, np.full(near.size, k))
            value = np.append(value, np.ones(near.size))
        value *= weights[disk.ring[point]]
        index = disk.phase[point] * self.basis + hat
        value /= np.bincount(index, value)[index]
        keep = value > 1e-25
        point, hat, value = point[keep], hat[keep], value[keep]
        period = np.full(point.size, disk.period)
        return Samples(disk.ring[point], period, disk.phase[point], disk.column[point], hat, value)

    def _disk(self, table: ArcTable, r: int) -> _Disk:
        """The input points in the disks around output ring r."""
        pair, nphi = np.arange(table.pairs[r], table.pairs[r + 1]), int(self.out_grid.nphi[r])
        if not pair.size:
            raise self._empty(r, 0)
        s = table.first[r] + np.arange(pair.size)
        # Normalized, a pair of rings repeats only when all pairs of this output ring do.
        period = math.gcd(nphi, *self.in_grid.nphi[s].tolist())
        queries = np.arange(nphi // period)
        first, count = table.arcs(r, queries, pair[:, None], s[:, None])
        arc, nth = runs(count.ravel())
        keys = first.ravel()[arc] + nth
        which, phase = np.divmod(arc, queries.size)
        ring = s[which]
        angle = table.angle(r, phase, keys, pair[which], ring)
        return _Disk(period, ring, phase, keys % self.in_grid.nphi[ring], angle)

    def _empty(self, r: int, hat: int) -> EmptyHat:
        return EmptyHat(
            f"cutoff={self.cutoff:g}: no point of {self.in_grid!r} lies under hat {hat} of "
            f"{self.basis} around ring {r} of {self.out_grid!r}; the coarser grid's spacing is "
            f"{max(self.in_grid.spacing, self.out_grid.spacing):g}: take a larger cutoff, or "
            f"fewer than radii={self.radii}, angles={self.angles}"
        )

    def __repr__(self) -> str:
        return f"Stencil({self.name})"

    def __reduce__(self) -> tuple:
        # Copies and pickles of a layer share the table, and do not carry it.
        keep = (self.in_grid, self.out_grid, self.cutoff, self.radii, self.angles)
        return (_remake, keep)


def _name(in_grid: Grid, out_grid: Grid, cutoff: float, radii: int, angles: int) -> str:
    return f"hats {in_grid.name} {out_grid.name} {cutoff!r} {radii} {angles}"


def _remake(in_grid: Grid, out_grid: Grid, cutoff: float, radii: int, angles: int) -> Stencil:
    return Stencil.hats(in_grid, out_grid, cutoff=cutoff, radii=radii, angles=angles)


def default_cutoff(in_grid: Grid, *out_grids: Grid, radii: int = 2, angles: int = 4) -> float:
    """Three spacings of the coarsest grid; where that leaves a hat empty, the first longer radius
    that does not, at most pi.
    """
    cutoff = 3 * max(grid.spacing for grid in (in_grid, *out_grids))
    while cutoff < math.pi:
        try:
            for out_grid in out_grids:
                Stencil.hats(in_grid, out_grid, cutoff=cutoff, radii=radii, angles=angles)
        except EmptyHat:
            cutoff *= _LONGER
        else:
            return cutoff
    return math.pi
