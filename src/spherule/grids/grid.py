"""The one description of a point set on the sphere: a stack of rings of constant latitude."""

import math
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spherule import checks
from spherule.grids.families import Member, parse
from spherule.grids.names import Names
from spherule.grids.rings import Rings, checked, is_sphere, once_around

if TYPE_CHECKING:
    from spherule.grids.match import Match

_PART_NAME = re.compile(r"(.+)\[([0-9]+):([0-9]+)\]")


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """Rings from north to south, each with equally spaced points of equal weight.

    A field on a grid is an array `(..., *grid.shape)`, ring by ring; the shape is `(nlat, nlon)`
    where all rings are alike and `(size,)` on reduced grids. Grids are values: equal when their
    rings are, hashable, with read-only float64 arrays.
    """

    theta: NDArray[np.float64]
    """Colatitude of each ring, radians, increasing."""
    nphi: NDArray[np.int64]
    """Points on each ring."""
    phi0: NDArray[np.float64]
    """Longitude of each ring's first point, radians in [0, 2 pi)."""
    ring_weights: NDArray[np.float64]
    """Quadrature weight of one point of each ring: areas on the unit sphere."""
    name: str
    """What `Grid.from_name` takes; `rings:...` for a grid without a name of its own."""
    whole: "Grid | None" = None
    """The grid of which this is a part, if it is one; see `part`."""
    start: int = 0
    """Which ring of the whole is the first of this part."""
    regular: bool = field(init=False)
    """Whether all rings have the same longitudes."""
    size: int = field(init=False)
    """The number of points."""
    shape: tuple[int, ...] = field(init=False)
    """What a field's last dimensions are: `(nlat, nlon)` where regular, else `(size,)`."""
    weight_range: tuple[float, float] = field(init=False)
    """The least and the largest quadrature weight."""

    def __post_init__(self) -> None:
        for name, dtype in (
            ("theta", np.float64),
            ("nphi", np.int64),
            ("phi0", np.float64),
            ("ring_weights", np.float64),
        ):
            object.__setattr__(self, name, np.array(getattr(self, name), dtype=dtype))
            _readonly(getattr(self, name))
        object.__setattr__(self, "phi0", _readonly(once_around(self.phi0)))
        # Plain values, not properties: compilers that trace a model read them as constants.
        # A part has rows and columns where the whole has them, however many rings are left.
        first = self if self.whole is None else self.whole
        alike = np.all(first.nphi == first.nphi[0]) and np.all(first.phi0 == first.phi0[0])
        size = int(self.nphi.sum())
        shape = (self.theta.size, int(first.nphi[0])) if alike else (size,)
        weights = self.ring_weights if self.theta.size else np.zeros(1)
        for name, value in {
            "regular": bool(alike),
            "size": size,
            "shape": shape,
            "weight_range": (float(weights.min()), float(weights.max())),
        }.items():
            object.__setattr__(self, name, value)

    @classmethod
    @checks.arguments
    def gauss(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Gauss-Legendre latitudes: exact for degree 2 nlat - 1.

        Args:
            nlat: the number of rings.
            nlon: points on each.
            offset: shifts all longitudes by this part of a cell.

        >>> import spherule as sph
        >>> sph.Grid.gauss(64, 128).shape
        (64, 128)
        """
        return cls._of(Member("gauss", (nlat, nlon), offset))

    @classmethod
    @checks.arguments
    def equiangular(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """The paper's grid theta_i = pi i / nlat with weights (2 pi^2 / nlat nlon) sin(theta).

        It has the north pole (of weight 0) but not the south pole, and its total area is a little
        below 4 pi (5.0e-5 at nlat 128). ERA5 without its last row (720x1440) has these latitudes.
        """
        return cls._of(Member("equiangular", (nlat, nlon), offset))

    @classmethod
    @checks.arguments
    def clenshaw_curtis(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Equal steps with both poles (ERA5's 721x1440): exact for degree nlat - 1."""
        return cls._of(Member("clenshaw_curtis", (nlat, nlon), offset))

    @classmethod
    @checks.arguments
    def fejer(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Equal cells, points at their centers (panoramas, cell-centered model output): exact for
        degree nlat - 1.
        """
        return cls._of(Member("fejer", (nlat, nlon), offset))

    @classmethod
    @checks.arguments
    def lobatto(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Gauss-Lobatto latitudes with both poles: exact for degree 2 nlat - 3."""
        return cls._of(Member("lobatto", (nlat, nlon), offset))

    @classmethod
    @checks.arguments
    def healpix(cls, nside: int) -> "Grid":
        """HEALPix in ring order, 12 nside^2 points of equal area (`grids.healpix` converts from
        nested order).

        Args:
            nside: the resolution; here it need not be a power of two.

        >>> import spherule as sph
        >>> sph.Grid.healpix(32)
        Grid(H32: 127 rings, 12288 points)
        """
        return cls._of(Member("H", (nside,)))

    @classmethod
    @checks.arguments
    def octahedral(cls, n: int) -> "Grid":
        """ECMWF's octahedral reduced Gaussian grid O{n}: 2n rings of 20, 24, 28, ... points.

        Args:
            n: rings from a pole to the equator.

        >>> import spherule as sph
        >>> sph.Grid.octahedral(24)
        Grid(O24: 48 rings, 3168 points)
        """
        return cls._of(Member("O", (n,)))

    @classmethod
    @checks.arguments
    def reduced_gaussian(cls, n: int) -> "Grid":
        """ECMWF's original reduced Gaussian grid N{n}, for the published n."""
        return cls._of(Member("N", (n,)))

    @classmethod
    def from_rings(
        cls,
        theta: ArrayLike,
        nphi: ArrayLike,
        phi0: ArrayLike,
        ring_weights: ArrayLike,
        *,
        partial: bool = False,
    ) -> "Grid":
        """Any rings of your own: colatitudes, points, first longitudes, and the weight of one point
        on each ring: its area on the unit sphere.

        Longitudes may lie any few turns away; the grid keeps them in [0, 2 pi). All areas together
        are the sphere's, 4 pi within 1 %, unless the rings are a `partial` stack.
        """
        rings = checked(theta, nphi, phi0, ring_weights, partial=partial)
        name = f"rings:{rings.digest()}"
        return _own_rings.add(name, cls(*rings, name))

    @classmethod
    @checks.arguments
    def from_name(cls, name: str) -> "Grid":
        """The grid of a name.

        Args:
            name: "gauss:64x128", "fejer:180x360@0.5" (longitudes offset by half a cell), "H64",
                "O96", "N320", "F90".

        >>> import spherule as sph
        >>> sph.Grid.from_name("H64") == sph.Grid.healpix(64)
        True
        """
        if own := _own_rings.get(name):
            return own
        if part := _PART_NAME.fullmatch(name):
            return cls.from_name(part[1]).part(int(part[2]), int(part[3]))
        if name.startswith("rings:"):
            raise ValueError(
                f"name={name!r}: rings of your own must be in use where they are known by name; "
                "make them here first with Grid.from_rings, or unpickle them"
            )
        member = parse(name)
        try:
            return cls._of(member)
        except ValueError as error:
            raise ValueError(f"name={name!r}: {error}") from None

    @staticmethod
    def match(
        lat: ArrayLike, lon: ArrayLike, *, bounds: ArrayLike | None = None, repair: bool = False
    ) -> "Match":
        """The grid of coordinates in degrees, and how data on them come into its order.

        Args:
            lat: latitudes of rows in any order, or of every point.
            lon: longitudes of columns from anywhere on, or of every point.
            bounds: of rows whose latitudes are no family's: where each begins and ends.
            repair: leave out a column that comes again, add rows at poles that are missing.

        >>> import numpy as np, spherule as sph
        >>> match = sph.Grid.match(np.linspace(-90, 90, 181), np.arange(-180, 180, 1.0))
        >>> match.grid
        Grid(clenshaw_curtis:181x360: 181 rings, 65160 points)
        >>> match.to_grid(np.zeros((12, 181, 360))).shape
        (12, 181, 360)
        """
        from spherule.grids.match import match

        return match(lat, lon, bounds=bounds, repair=repair)

    @checks.arguments
    def part(self, start: int, stop: int) -> "Grid":
        """Rings `start` to `stop`, without the last: a grid again, of a part of the sphere, which
        may be empty. Its fields are `field[..., start:stop, :]` where the grid is regular, else
        `field[..., grid.points(start, stop)]`; all rings are the grid itself.
        """
        self._require_run(start, stop)
        if (start, stop) == (0, self.nrings):
            return self
        if self.whole is not None:
            return self.whole.part(self.start + start, self.start + stop)
        run = slice(start, stop)
        return Grid(
            self.theta[run],
            self.nphi[run],
            self.phi0[run],
            self.ring_weights[run],
            f"{self.name}[{start}:{stop}]",
            self,
            start,
        )

    @checks.arguments
    def points(self, start: int, stop: int) -> slice:
        """Where the points of rings `start` to `stop`, without the last, are among all."""
        self._require_run(start, stop)
        ends = [*self.ringstart.tolist(), self.size]
        return slice(ends[start], ends[stop])

    @cached_property
    def covers_sphere(self) -> bool:
        """Whether the points stand for all of the sphere, and not for a part of it."""
        area = float((self.ring_weights * self.nphi).sum())
        return self._has_family or (self.whole is None and is_sphere(area))

    @property
    def nrings(self) -> int:
        """The number of rings."""
        return self.theta.size

    @cached_property
    def ringstart(self) -> NDArray[np.int64]:
        """Index of each ring's first point."""
        return _readonly(np.cumsum(self.nphi) - self.nphi)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """The quadrature weight of every point, in the grid's shape."""
        return _readonly(np.repeat(self.ring_weights, self.nphi).reshape(self.shape))

    @cached_property
    def point_theta(self) -> NDArray[np.float64]:
        """The colatitude of every point, (size,)."""
        return _readonly(np.repeat(self.theta, self.nphi))

    @cached_property
    def point_phi(self) -> NDArray[np.float64]:
        """The longitude of every point, (size,)."""
        column = np.arange(self.size) - np.repeat(self.ringstart, self.nphi)
        step = 2 * np.pi / np.repeat(self.nphi, self.nphi)
        return _readonly(np.repeat(self.phi0, self.nphi) + column * step)

    @cached_property
    def xyz(self) -> NDArray[np.float64]:
        """Unit vectors of all points, (size, 3)."""
        theta, phi = self.point_theta, self.point_phi
        sin = np.sin(theta)
        return _readonly(np.stack([sin * np.cos(phi), sin * np.sin(phi), np.cos(theta)], axis=-1))

    @cached_property
    def spacing(self) -> float:
        """The side of an equatorial cell in radians; on reduced grids, of the mean cell."""
        if self.whole is not None:
            return self.whole.spacing
        if self.regular:
            return math.pi * math.sqrt(2 / self.size)
        return math.sqrt(4 * math.pi / self.size)

    @cached_property
    def lmax(self) -> int:
        """The largest degree that a transform can tell apart on this grid.

        Order 0 has one unknown a degree for all rings, order 1 for those off the poles. On regular
        grids longitude sets its limit too; on reduced grids the short rings alias by design, where
        high orders have died out.
        """
        off_poles = int(np.count_nonzero((self.theta > 1e-9) & (self.theta < np.pi - 1e-9)))
        lmax = min(self.nrings - 1, off_poles)
        return min(lmax, (self.shape[1] - 1) // 2) if self.regular else lmax

    @checks.arguments
    def cutoff(self, window: float) -> float:
        """The radius of a disk with the area of a `window` x `window` patch of cells: window
        spacing / sqrt(pi), at most pi.
        """
        if not window > 0:
            raise ValueError(
                f"window={window} must be positive: the side of the patch in grid cells"
            )
        return min(window * self.spacing / math.sqrt(math.pi), math.pi)

    @cached_property
    def coarsest(self) -> bool:
        """Whether its family has no coarser member; rings of your own have no family, and parts
        none either.
        """
        return self._has_family and parse(self.name).coarser() is None

    def coarsen(self) -> "Grid":
        """Half the resolution in the same family; N grids become O grids."""
        if not self._has_family:
            raise ValueError(f"{self!r} has no family, so no coarser member: give the coarse grid")
        coarser = parse(self.name).coarser()
        if coarser is None:
            raise ValueError(f"{self!r} is the coarsest of its family")
        return Grid._of(coarser)

    def __repr__(self) -> str:
        return f"Grid({self.name}: {self.nrings} rings, {self.size} points)"

    @cached_property
    def _key(self) -> tuple[object, ...]:
        return (self.shape, *(a.tobytes() for a in self._rings))

    @cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grid):
            return NotImplemented
        return self is other or (self._hash == other._hash and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple:
        # Rebuilt on loading: hashes of bytes differ between processes, the arrays must stay
        # read-only, and the names of one's own rings must be known there too.
        if self.whole is not None:
            return (Grid.part, (self.whole, self.start, self.start + self.nrings))
        if self.name.startswith("rings:"):
            return (_partial_rings, tuple(self._rings))
        return (Grid, (*self._rings, self.name))

    @classmethod
    def _of(cls, member: Member) -> "Grid":
        return cls(*member.rings(), member.name)

    def _require_run(self, start: int, stop: int) -> None:
        if not 0 <= start <= stop <= self.nrings:
            raise ValueError(f"start={start}, stop={stop}: expected rings of {self!r}")

    @property
    def _rings(self) -> Rings:
        return Rings(self.theta, self.nphi, self.phi0, self.ring_weights)

    @property
    def _has_family(self) -> bool:
        return self.whole is None and not self.name.startswith("rings:")


def _partial_rings(*rings: NDArray) -> Grid:
    """Of a grid that was checked when it was made."""
    return Grid.from_rings(*rings, partial=True)


# Rings of the user's own that are in use in this process, so that their names are good here too.
_own_rings: Names[Grid] = Names(recent=64)


def _readonly(array: NDArray) -> NDArray:
    array.setflags(write=False)
    return array
