"""The one description of a point set on the sphere: a stack of rings of constant latitude."""

import hashlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spherule import checks
from spherule.grids import healpix, quadrature, reduced
from spherule.grids.names import Names

if TYPE_CHECKING:
    from spherule.grids.match import Match

# The regular families: the rule in theta, and the fewest rings it makes sense with.
_RULES: dict[str, tuple[Callable[[int], quadrature.Rule], int]] = {
    "gauss": (quadrature.gauss, 1),
    "equiangular": (quadrature.equiangular, 2),
    "clenshaw_curtis": (quadrature.clenshaw_curtis, 2),
    "fejer": (quadrature.fejer, 1),
    "lobatto": (quadrature.lobatto, 2),
}
REGULAR_FAMILIES = tuple(_RULES)
_REGULAR_NAME = re.compile(r"([a-z_]+):([0-9]+)x([0-9]+)(?:@([0-9]*\.?[0-9]+(?:e-[0-9]+)?))?")
_REDUCED_NAME = re.compile(r"([HONF])([0-9]+)")
_PART_NAME = re.compile(r"(.+)\[([0-9]+):([0-9]+)\]")


# Longitudes farther out than this, in radians, keep fewer than ten digits of their direction.
_FARTHEST = 1e6
# A kilometre between rings; and points are counted in 32 bits.
_MOST_RINGS, _MOST_POINTS = 2**15, 2**31 - 1

# What simple rules of few rings miss of the sphere's area; other conventions of weights miss more.
_AREA_TOLERANCE = 0.01


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
        object.__setattr__(self, "phi0", _readonly(_once_around(self.phi0)))
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
        return cls._regular("gauss", nlat, nlon, offset)

    @classmethod
    @checks.arguments
    def equiangular(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """The paper's grid theta_i = pi i / nlat with weights (2 pi^2 / nlat nlon) sin(theta).

        It has the north pole (of weight 0) but not the south pole, and its total area is a little
        below 4 pi (5.0e-5 at nlat 128). ERA5 without its last row (720x1440) has these latitudes.
        """
        return cls._regular("equiangular", nlat, nlon, offset)

    @classmethod
    @checks.arguments
    def clenshaw_curtis(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Equal steps with both poles (ERA5's 721x1440): exact for degree nlat - 1."""
        return cls._regular("clenshaw_curtis", nlat, nlon, offset)

    @classmethod
    @checks.arguments
    def fejer(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Equal cells, points at their centres (panoramas, cell-centred model output): exact for
        degree nlat - 1.
        """
        return cls._regular("fejer", nlat, nlon, offset)

    @classmethod
    @checks.arguments
    def lobatto(cls, nlat: int, nlon: int, *, offset: float = 0.0) -> "Grid":
        """Gauss-Lobatto latitudes with both poles: exact for degree 2 nlat - 3."""
        return cls._regular("lobatto", nlat, nlon, offset)

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
        nside = checks.integer("nside", nside, low=1, high=_MOST_RINGS // 4)
        theta, nphi, phi0 = healpix.rings(nside)
        return cls(theta, nphi, phi0, np.full(theta.size, np.pi / (3 * nside**2)), f"H{nside}")

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
        n = checks.integer("n", n, low=1, high=_MOST_RINGS // 2)
        return cls._reduced_gaussian(reduced.octahedral(n), f"O{n}")

    @classmethod
    @checks.arguments
    def reduced_gaussian(cls, n: int) -> "Grid":
        """ECMWF's original reduced Gaussian grid N{n}, for the published n."""
        n = checks.integer("n", n, low=1)
        return cls._reduced_gaussian(reduced.original(n), f"N{n}")

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
        theta, phi0, weights = (
            finite_reals(name, values)
            for name, values in (("theta", theta), ("phi0", phi0), ("ring_weights", ring_weights))
        )
        counts = np.atleast_1d(as_array("nphi", nphi))
        if not np.issubdtype(counts.dtype, np.integer):
            raise TypeError(f"nphi: expected integers, got {counts.dtype}")
        sizes = {"theta": theta, "nphi": counts, "phi0": phi0, "ring_weights": weights}
        if theta.size == 0 or any(a.shape != (theta.size,) for a in sizes.values()):
            shapes = ", ".join(f"{name} {a.shape}" for name, a in sizes.items())
            raise ValueError(f"expected one entry a ring in each of four 1-D arrays, got {shapes}")
        if theta[0] < 0 or theta[-1] > np.pi or np.any(np.diff(theta) <= 0):
            # Longitudes cannot tell: many turns are as good as one.
            degrees = "; they look like degrees: use np.radians, for phi0 too"
            raise ValueError(
                f"theta: colatitudes must increase strictly within [0, pi] radians, got "
                f"{theta[0]:g} ... {theta[-1]:g}{degrees if theta.max() > 2 * np.pi else ''}"
            )
        if np.abs(phi0).max() > _FARTHEST:
            raise ValueError(
                f"phi0: expected longitudes in radians within {_FARTHEST:g}, where they still mean "
                f"a direction, got {phi0[np.abs(phi0).argmax()]:g}"
            )
        theta, phi0 = theta + 0.0, _once_around(phi0)
        if counts.min() < 1:
            raise ValueError(f"nphi: every ring needs a point, got {counts.min()}")
        if counts.sum(dtype=float) > _MOST_POINTS:
            raise ValueError(f"nphi: expected at most {_MOST_POINTS} points, got {counts.sum()}")
        if weights.min() < 0 or weights.max() == 0:
            least, most = weights.min(), weights.max()
            raise ValueError(f"ring_weights must be >= 0, and some > 0, got {least} to {most}")
        area = float((weights * counts).sum())
        if not partial and abs(area / (4 * np.pi) - 1) > _AREA_TOLERANCE:
            raise ValueError(
                f"ring_weights: the areas of all points sum to {area:.6g}, not to the sphere's "
                f"4 pi = {4 * np.pi:.6g}; a weight is that of one point. For rings that cover a "
                "part of the sphere, partial=True"
            )
        digest = hashlib.blake2b(digest_size=8)
        for array in (theta, counts.astype(np.int64), phi0, weights):
            digest.update(array.tobytes())
        grid = cls(theta, counts, phi0, weights, f"rings:{digest.hexdigest()}")
        return _own_rings.add(grid.name, grid)

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
        family, sizes, offset = _parse(name)
        try:
            if family in _RULES:
                nlat, nlon = sizes
                return cls._regular(family, nlat, nlon, offset)
            (n,) = sizes
            if family == "F":
                return cls.gauss(2 * n, 4 * n)
            return {"H": cls.healpix, "O": cls.octahedral, "N": cls.reduced_gaussian}[family](n)
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
        runs of points; all rings are the grid itself.
        """
        if not 0 <= start <= stop <= self.nrings:
            raise ValueError(f"start={start}, stop={stop}: expected rings of {self!r}")
        if (start, stop) == (0, self.nrings):
            return self
        if self.whole is not None:
            first = int(self.name[self.name.rindex("[") + 1 : self.name.rindex(":")])
            return self.whole.part(first + start, first + stop)
        run = slice(start, stop)
        return Grid(
            self.theta[run],
            self.nphi[run],
            self.phi0[run],
            self.ring_weights[run],
            f"{self.name}[{start}:{stop}]",
            self,
        )

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
        if self.whole is not None or self.name.startswith("rings:"):
            return False
        family, sizes, _ = _parse(self.name)
        halves = [(n + 1) // 2 for n in sizes]
        return halves == sizes or halves[0] < _RULES.get(family, (None, 1))[1]

    def coarsen(self) -> "Grid":
        """Half the resolution in the same family; N grids become O grids."""
        if self.whole is not None or self.name.startswith("rings:"):
            raise ValueError(f"{self!r} has no family, so no coarser member: give the coarse grid")
        family, sizes, offset = _parse(self.name)
        halves = [(n + 1) // 2 for n in sizes]
        if self.coarsest:
            raise ValueError(f"{self!r} is the coarsest of its family")
        if family in _RULES:
            return Grid._regular(family, halves[0], halves[1], offset)
        return Grid.healpix(*halves) if family == "H" else Grid.octahedral(*halves)

    def __repr__(self) -> str:
        return f"Grid({self.name}: {self.nrings} rings, {self.size} points)"

    @cached_property
    def _key(self) -> tuple[object, ...]:
        arrays = (self.theta, self.nphi, self.phi0, self.ring_weights)
        return (self.shape, *(a.tobytes() for a in arrays))

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
            start, stop = self.name[self.name.rindex("[") + 1 : -1].split(":")
            return (Grid.part, (self.whole, int(start), int(stop)))
        rings = (self.theta, self.nphi, self.phi0, self.ring_weights)
        if self.name.startswith("rings:"):
            return (_partial_rings, rings)
        return (Grid, (*rings, self.name))

    @classmethod
    def _regular(cls, family: str, nlat: int, nlon: int, offset: float) -> "Grid":
        rule, least = _RULES[family]
        nlat = checks.integer("nlat", nlat, low=least, high=_MOST_RINGS)
        nlon = checks.integer("nlon", nlon, low=1, high=_MOST_POINTS // nlat)
        if not 0 <= offset < 1:
            raise ValueError(f"offset={offset} must be in [0, 1): a part of a cell in longitude")
        theta, weights = rule(nlat)
        cell = 2 * np.pi / nlon
        suffix = f"@{offset:.10g}" if offset else ""
        return cls(
            theta,
            np.full(nlat, nlon),
            np.full(nlat, offset * cell),
            weights * cell,
            f"{family}:{nlat}x{nlon}{suffix}",
        )

    @classmethod
    def _reduced_gaussian(cls, nphi: NDArray[np.int64], name: str) -> "Grid":
        theta, weights = quadrature.gauss(nphi.size)
        return cls(theta, nphi, np.zeros(nphi.size), weights * 2 * np.pi / nphi, name)


def _partial_rings(*rings: NDArray) -> Grid:
    """Of a grid that was checked when it was made."""
    return Grid.from_rings(*rings, partial=True)


# Rings of the user's own that are in use in this process, so that their names are good here too.
_own_rings: Names[Grid] = Names(recent=64)


def _parse(name: str) -> tuple[str, list[int], float]:
    """Family, sizes and longitude offset of a name."""
    if regular := _REGULAR_NAME.fullmatch(name):
        family, nlat, nlon, offset = regular.groups()
        if family in _RULES:
            return family, [int(nlat), int(nlon)], float(offset or 0)
    if short := _REDUCED_NAME.fullmatch(name):
        return short[1], [int(short[2])], 0.0
    raise ValueError(
        f"name={name!r} is not a grid; expected one of {', '.join(f'{f}:64x128' for f in _RULES)}, "
        "H64 (HEALPix), O96 (octahedral), N320 (reduced Gaussian), F90 (full Gaussian)"
    )


def as_array(name: str, values: ArrayLike) -> NDArray:
    """What numpy makes of the values, or an error that names the argument."""
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers in rows of one length: {error}") from None


def finite_reals(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as a float64 array, at least 1-D, or an error that names the argument."""
    array = np.atleast_1d(as_array(name, values))
    if array.dtype.kind not in "fiu":
        came = (
            array.dtype if hasattr(values, "dtype") else f"{type(values).__name__} of {array.dtype}"
        )
        raise TypeError(f"{name}: expected real numbers, got {came}")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name}: expected finite numbers, got {np.count_nonzero(~np.isfinite(array))} of "
            f"{array.size} that are not"
        )
    return array


def _once_around(phi: NDArray[np.float64]) -> NDArray[np.float64]:
    """Longitudes in [0, 2 pi)."""
    reduced = np.mod(phi, 2 * np.pi)
    # What is a little less than 0 rounds to a whole turn.
    return np.where(reduced < 2 * np.pi, reduced, 0.0)


def _readonly(array: NDArray) -> NDArray:
    array.setflags(write=False)
    return array
