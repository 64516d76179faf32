"""Filters of DISCO convolutions: hats on a geodesic disk around each output point, and the stencil
that they make between two grids.
"""

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.arcs import RIM, disk_table
from spherule.geometry.ring_pairs import RingPairs, Samples
from spherule.grids import Grid

# Below this a hat is 0: points on its rim must not count by an accident of rounding.
_NOTHING = 1e-9

# By name, so that an operator in a compiled or exported program, which can hold no Python objects,
# finds its stencil.
_known: dict[str, "Stencil"] = {}


@dataclass(frozen=True)
class Stencil:
    """A basis of filters between two grids: psi[k, i, j] for hat k, output point i, input point j.

    Hats are piecewise linear, in the geodesic distance and in the azimuth around the output point:
    one in the centre, then `angles` of them at each of `radii` distances, cutoff / (radii + 1)
    apart. The azimuth runs from south (0) over east (pi / 2), so the basis turns with the meridian;
    with `angles=1` it is isotropic. The quadrature weights of the input grid are inside, and each
    hat averages: its weights sum to 1 at every output point.

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
        pairs = RingPairs.build(self.out_grid, self.in_grid, list(self._rings()))
        regular = self.in_grid.regular and self.out_grid.regular
        for name, value in {
            "name": _name(self.in_grid, self.out_grid, self.cutoff, self.radii, self.angles),
            "in_shape": self.in_grid.shape,
            "out_shape": self.out_grid.shape,
            "pairs": pairs,
            "nonzeros": pairs.nonzeros,
            "period": int(pairs.period[0]) if regular else 1,
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
        cutoff = default_cutoff(in_grid, out_grid) if cutoff is None else float(cutoff)
        if not 0 < cutoff <= math.pi + RIM:
            looks = f"; {cutoff:g} looks like degrees: use math.radians({cutoff:g})"
            raise ValueError(
                f"cutoff={cutoff:g} must be in (0, pi] radians{looks if cutoff > math.pi else ''}"
            )
        radii, angles = operator.index(radii), operator.index(angles)
        for name, count in (("radii", radii), ("angles", angles)):
            if count < 1:
                raise ValueError(f"{name}={count} must be at least 1")
        cutoff = min(cutoff, math.pi)
        name = _name(in_grid, out_grid, cutoff, radii, angles)
        if name not in _known:
            _known[name] = cls(in_grid, out_grid, cutoff, radii, angles)
        known = _known[name]
        if (known.in_grid, known.out_grid) != (in_grid, out_grid):
            raise ValueError(f"{name!r} already names another stencil: two grids share a name")
        return known

    @classmethod
    def from_name(cls, name: str) -> "Stencil":
        """The stencil of a `.name`; of grids without a name of their own, one made before."""
        if name not in _known:
            _, source, target, cutoff, radii, angles = name.split(" ")
            grids = Grid.from_name(source), Grid.from_name(target)
            cls.hats(*grids, cutoff=float(cutoff), radii=int(radii), angles=int(angles))
        return _known[name]

    def _rings(self) -> Iterator[Samples]:
        """psi for each ring of output points."""
        table = disk_table(self.out_grid, self.in_grid, self.cutoff, 0.0)
        # A rule that weighs a pole 0 keeps it in, infinitely light: it counts only under a hat that
        # has no other points, as the centre one at the pole itself.
        weights = self.in_grid.ring_weights
        weights = np.where(weights > 0, weights, 1e-30 * weights.max())
        for r, nphi in enumerate(self.out_grid.nphi):
            met = list(table.pairs_of(r))
            # Normalised, a pair of rings repeats only when all pairs of this output ring do.
            period = math.gcd(int(nphi), *(int(self.in_grid.nphi[s]) for _, s in met))
            queries = np.arange(nphi // period)[:, None]
            parts = []
            for pair, s in met:
                first, count = table.arcs(r, queries, pair, s)
                keys = first + np.arange(count.max())
                phase, place = np.nonzero(keys < first + count)
                keys = keys[phase, place]
                angle = table.angle(r, phase, keys, pair, s)
                ring = np.full(keys.size, s)
                parts.append((ring, phase, keys % self.in_grid.nphi[s], angle))
            ring, phase, column, angle = (np.concatenate(x) for x in zip(*parts, strict=True))
            point, hat, value = self._evaluate(r, self.in_grid.theta[ring], angle)
            value *= weights[ring[point]]
            value /= self._integrals(r, phase[point] * self.basis + hat, value, queries.size)
            keep = value > 1e-25
            point, hat, value = point[keep], hat[keep], value[keep]
            yield Samples(period, ring[point], phase[point], column[point], hat, value)

    def _evaluate(
        self, r: int, theta: NDArray[np.float64], angle: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """The hats that are not 0 at points `angle` east of an output point on ring r: (point, hat,
        value). At most four cover a point: two distances, two azimuths.
        """
        distance, azimuth = seen_from(self.out_grid.theta[r], theta, angle)
        rho = distance * ((self.radii + 1) / self.cutoff)
        sector = azimuth * (self.angles / (2 * math.pi))
        inner, west = np.floor(rho), np.floor(sector)
        points: list[NDArray] = []
        hats: list[NDArray] = []
        values: list[NDArray] = []
        for ring, height in ((inner, 1 - (rho - inner)), (inner + 1, rho - inner)):
            for spoke, share in ((west, 1 - (sector - west)), (west + 1, sector - west)):
                # The centre, and every ring of an isotropic basis, is one hat all round.
                round_ = (ring == 0) | (self.angles == 1)
                value = height * np.where(round_, spoke == west, share)
                hat = np.where(ring == 0, 0, 1 + (ring - 1) * self.angles + spoke % self.angles)
                point = np.flatnonzero((value > _NOTHING) & (ring <= self.radii))
                points.append(point)
                hats.append(hat[point].astype(np.int64))
                values.append(value[point])
        return np.concatenate(points), np.concatenate(hats), np.concatenate(values)

    def _integrals(
        self, r: int, index: NDArray[np.int64], value: NDArray[np.float64], phases: int
    ) -> NDArray[np.float64]:
        """For each value the integral of its hat."""
        total = np.bincount(index, value, minlength=phases * self.basis).astype(np.float64)
        if total.min() == 0:
            empty = int(np.argmin(total)) % self.basis
            raise ValueError(
                f"cutoff={self.cutoff:g}: no point of {self.in_grid!r} lies under hat {empty} of "
                f"{self.basis} around ring {r} of {self.out_grid!r}; the coarser grid's spacing is "
                f"{max(self.in_grid.spacing, self.out_grid.spacing):g}: take a larger cutoff, or "
                f"fewer than radii={self.radii}, angles={self.angles}"
            )
        return total[index]

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


def default_cutoff(in_grid: Grid, out_grid: Grid) -> float:
    """Three spacings of the coarser grid, at most pi: every hat has points under it."""
    return min(3 * max(in_grid.spacing, out_grid.spacing), math.pi)


def seen_from(
    theta: float, key_theta: NDArray[np.float64], angle: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Geodesic distance, and azimuth in [0, 2 pi) from south over east, of points at `key_theta`,
    `angle` east. Neither loses digits to cancellation for near points.
    """
    half = np.sin(angle / 2) ** 2
    h = np.sin((key_theta - theta) / 2) ** 2 + np.sin(theta) * np.sin(key_theta) * half
    east = np.sin(key_theta) * np.sin(angle)
    south = np.sin(key_theta - theta) - 2 * np.sin(key_theta) * np.cos(theta) * half
    azimuth = np.arctan2(east, south) % (2 * math.pi)
    return 2 * np.arcsin(np.sqrt(np.minimum(h, 1.0))), azimuth
