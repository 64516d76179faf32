"""Recognize the grid that users' latitudes and longitudes describe, and bring their data into its
order.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spherule import checks
from spherule.grids import own_rings, reduced
from spherule.grids.families import REGULAR_FAMILIES, Member
from spherule.grids.grid import Grid
from spherule.grids.rings import finite_reals

TOLERANCE = 1e-3
"""Degrees: what float32 and GRIB's rounding do to coordinates."""

Field = TypeVar("Field", NDArray, Tensor)


@dataclass(frozen=True, eq=False)
class Match:
    """A grid, and the order in which the user's data lie on it.

    Data with 1-D axes `(..., lat, lon)`: our rows are theirs, flipped where `flip`, then rolled
    east by `roll` columns: `to_grid(u)[..., i, j] == (u flipped)[..., i, (j - roll) % nlon]`. Data
    with one coordinate a point `(..., point)` come by a permutation, `to_grid(u) == u[..., order]`,
    in the grid's shape. Where `cyclic`, the user's last column repeats the first.
    """

    grid: Grid
    flip: bool = False
    roll: int = 0
    order: NDArray[np.int64] | None = None
    cyclic: bool = False
    note: str = ""
    """What the user should know of how the grid was taken; mostly nothing."""

    def to_grid(self, u: Field) -> Field:
        """The user's data in the grid's order (numpy or torch)."""
        if self.order is not None:
            self._require(u, (self.grid.size,))
            return u[..., self.order].reshape(*u.shape[:-1], *self.grid.shape)
        rows, columns = self._axes()
        self._require(u, (rows.size, columns.size + self.cyclic))
        return u[..., rows[:, None], (columns - self.roll) % columns.size]

    def from_grid(self, u: Field) -> Field:
        """The inverse: data of the grid in the user's order."""
        self._require(u, self.grid.shape)
        if self.order is not None:
            flat = u.reshape(*u.shape[: u.ndim - len(self.grid.shape)], self.grid.size)
            return flat[..., np.argsort(self.order)]
        rows, columns = self._axes()
        columns = (columns + self.roll) % columns.size
        if self.cyclic:
            columns = np.append(columns, columns[0])
        return u[..., rows[:, None], columns]

    @checks.arguments
    def part(self, start: int, stop: int) -> "tuple[tuple[slice | NDArray[np.int64], ...], Match]":
        """Where in the user's arrays rings `start` to `stop` of the grid are, along each axis, and
        how what is taken from there lies on them.
        """
        grid = self.grid.part(start, stop)
        if self.order is None:
            rows = self.grid.nrings
            there = slice(rows - stop, rows - start) if self.flip else slice(start, stop)
            return (there, slice(None)), replace(self, grid=grid)
        mine = self.order[self.grid.points(start, stop)]
        points = np.sort(mine)
        match = replace(self, grid=grid, order=np.searchsorted(points, mine))
        first, last = (int(points[0]), int(points[-1])) if points.size else (0, -1)
        # A run is read at once, other points one by one.
        return (slice(first, last + 1) if last - first < points.size else points,), match

    def _axes(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        nlat, nlon = self.grid.shape
        rows = np.arange(nlat)
        return (rows[::-1].copy() if self.flip else rows), np.arange(nlon)

    def _require(self, u: Field, shape: tuple[int, ...]) -> None:
        checks.instance("u", u, np.ndarray, Tensor)
        if tuple(u.shape[-len(shape) :]) != shape:
            raise ValueError(
                f"u: expected (..., {', '.join(map(str, shape))}), got {tuple(u.shape)}"
            )


def match(
    lat: ArrayLike, lon: ArrayLike, *, bounds: ArrayLike | None = None, repair: bool = False
) -> Match:
    """The grid whose points are at these degrees, within 1e-3.

    `lat` and `lon` are either the two axes of a lat-lon array (any direction of latitude,
    longitudes from -180 or 0 or anywhere) or one pair for each point, in any order. Points of
    HEALPix in nested order are recognized too. Rows at latitudes of their own are rings whose cells
    end at their `bounds` (rows, 2), or halfway between them.

    `repair` takes what is refused otherwise: a last column that repeats the first, rows without
    the poles, whose cells then reach up to the poles, and points on rings that leave out a cap.
    """
    lat, lon = finite_reals("lat", lat), finite_reals("lon", lon)
    if lat.size == 0 or lon.size == 0:
        raise ValueError(f"lat {lat.shape} and lon {lon.shape}: expected degrees, got none")
    if np.any(np.abs(lat) > 90 + TOLERANCE):
        raise ValueError(f"lat: expected degrees in [-90, 90], got {lat.min():g} ... {lat.max():g}")
    if lat.ndim == lon.ndim == 1 and _is_axis(lat):
        return _match_axes(lat, lon, None if bounds is None else np.asarray(bounds), repair)
    if lat.shape != lon.shape:
        raise ValueError(
            f"lat {lat.shape} and lon {lon.shape}: expected two monotonic 1-D axes, or one pair a "
            "point in equal shapes"
        )
    return _match_points(lat.ravel(), lon.ravel(), repair)


def _match_axes(lat: NDArray, lon: NDArray, bounds: NDArray | None, repair: bool) -> Match:
    flip = bool(lat.size > 1 and lat[1] > lat[0])
    cyclic = repair and lon.size > 1 and _repeats(lon)
    lon = lon[:-1] if cyclic else lon
    nlat, nlon = lat.size, lon.size
    offset, roll = _longitude_axis(lon)
    candidates = list(_regular_candidates(nlat, nlon, offset))
    wanted = lat[::-1] if flip else lat
    errors = [float(np.abs(90 - np.degrees(g.theta) - wanted).max()) for g in candidates]
    best = int(np.argmin(errors))
    note = "the last column repeats the first; " if cyclic else ""
    if errors[best] <= TOLERANCE:
        return Match(candidates[best], flip, roll, cyclic=cyclic, note=note[:-2])
    if not (own_rings.cover_the_sphere(wanted) and (repair or own_rings.are_uneven(wanted))):
        raise ValueError(_no_fit(lat, nlon))
    if bounds is not None and flip:
        bounds = bounds[::-1]
    theta, areas, how = own_rings.bands(wanted, bounds)
    own = np.full(nlat, nlon), np.full(nlat, offset * 2 * np.pi / nlon), areas / nlon
    note += f"{nlat} rows at latitudes of their own, taken as rings with areas from {how}"
    return Match(Grid.from_rings(theta, *own), flip, roll, cyclic=cyclic, note=note)


def _repeats(lon: NDArray) -> bool:
    return bool(abs(lon[-1] - lon[0] - 360) < TOLERANCE + 1e-6 * lon.size)


def _longitude_axis(lon: NDArray) -> tuple[float, int]:
    """The first point's offset from the meridian as a part of a cell, and how many cells its
    columns roll east.
    """
    n = lon.size
    step = np.diff(lon)
    if np.any(np.abs(step) > 180):  # such as 0 ... 180, -179 ... -1
        lon = np.degrees(np.unwrap(np.radians(lon)))
        step = np.diff(lon)
    if n > 1 and _repeats(lon):
        raise ValueError(
            f"lon: the last of {n} columns ({lon[-1]:g}) repeats the first ({lon[0]:g}); drop it, "
            "data[..., :-1], or have it left out: repair=True, --repair"
        )
    if n > 1 and np.all(step < 0):
        raise ValueError(
            f"lon: runs west ({lon[0]:g} ... {lon[-1]:g}); reverse it: data[..., ::-1]"
        )
    expected = lon[0] + np.arange(n) * 360 / n
    worst = int(np.argmax(np.abs(lon - expected)))
    if abs(lon[worst] - expected[worst]) > TOLERANCE:
        raise ValueError(
            f"lon: {n} columns round the globe should be {360 / n:g} degrees apart, but "
            f"lon[{worst}]={lon[worst]:g} "
            f"where {expected[worst]:g} was expected; regional or stretched data is not a grid of "
            "the sphere: take the whole globe"
        )
    # The mean over the columns is steadier than the first alone.
    position = float(np.mean(lon - np.arange(n) * 360 / n)) * n / 360
    roll = int(np.floor(position + TOLERANCE * n / 360))
    return (position - roll) % 1.0, roll % n


def _match_points(lat: NDArray, lon: NDArray, repair: bool) -> Match:
    tried = []
    for grid in _point_candidates(lat, lon):
        index, error = _assign(grid, lat, lon)
        if error > TOLERANCE:
            tried.append(f"{grid.name} (off by {error:.3g} degrees)")
        elif np.any(np.bincount(index, minlength=grid.size) != 1):
            tried.append(f"{grid.name} (but some points are given twice)")
        else:
            return Match(grid, order=np.argsort(index))
    if own := own_rings.of_points(lat, lon, TOLERANCE, partial=repair):
        theta, nphi, phi0, areas, how = own
        grid = Grid.from_rings(theta, nphi, phi0, areas / nphi, partial=repair)
        index, error = _assign(grid, lat, lon)
        if error <= TOLERANCE and np.all(np.bincount(index, minlength=grid.size) == 1):
            note = f"{grid.nrings} rings of their own, with areas from {how}"
            return Match(grid, order=np.argsort(index), note=note)
    rings = _count_rings(lat)
    listed = (
        f"the nearest by size: {', '.join(tried)}"
        if tried
        else f"no known grid has {lat.size} points"
    )
    raise ValueError(
        f"lat, lon: {lat.size} points on {rings} latitudes fit no grid within {TOLERANCE} "
        f"degrees; {listed}. "
        "Data on other points (curvilinear, unstructured, regional) must be brought onto rings "
        "first, with CDO's remapbil or xESMF; rings that leave out a cap are taken as they are "
        "with repair=True, --repair; rings of your own: Grid.from_rings"
    )


def _point_candidates(lat: NDArray, lon: NDArray) -> Iterator[Grid]:
    """Grids with this number of points, reduced ones first."""
    size, rings = lat.size, _count_rings(lat)
    nside = round((size / 12) ** 0.5)
    if nside and 12 * nside**2 == size:
        yield Grid.healpix(nside)
    n = rings // 2
    if n and reduced.octahedral(n).sum() == size:
        yield Grid.octahedral(n)
    for known, north in reduced.published().items():
        if 2 * int(north.sum()) == size:
            yield Grid.reduced_gaussian(known)
    if rings > 1 and size % rings == 0:
        nlon = size // rings
        yield from _regular_candidates(rings, nlon, lon[0] * nlon / 360 % 1)


def _regular_candidates(nlat: int, nlon: int, offset: float) -> Iterator[Grid]:
    """All families at this size; an offset within the tolerance of a whole cell is none."""
    offset = 0.0 if min(offset, 1 - offset) * 360 / nlon < TOLERANCE else round(offset, 6)
    for family in REGULAR_FAMILIES:
        if nlat > 1 or family == "gauss":
            yield Grid._of(Member(family, (nlat, nlon), offset))


def _assign(grid: Grid, lat: NDArray, lon: NDArray) -> tuple[NDArray[np.int64], float]:
    """For each of the user's points the grid's nearest, and the worst distance in degrees."""
    ring_lat = 90 - np.degrees(grid.theta)
    ring = np.searchsorted(-(ring_lat[1:] + ring_lat[:-1]) / 2, -lat)
    cell = 360 / grid.nphi[ring]
    position = (lon - np.degrees(grid.phi0[ring])) / cell
    column = np.rint(position)
    off = np.abs(position - column) * cell * np.cos(np.radians(lat))
    error = float(max(np.abs(lat - ring_lat[ring]).max(), off.max()))
    return grid.ringstart[ring] + column.astype(np.int64) % grid.nphi[ring], error


def _no_fit(lat: NDArray, nlon: int) -> str:
    """What the rows look like beside the grids of a row more or less: a pole too many or too few is
    the usual cause.
    """
    north = np.sort(lat)[::-1]
    near = []
    for rows in (lat.size - 1, lat.size, lat.size + 1):
        for grid in _regular_candidates(rows, nlon, 0.0) if rows > 1 else ():
            theirs = 90 - np.degrees(grid.theta)
            shared = min(rows, north.size)
            top = np.abs(theirs[:shared] - north[:shared]).max()
            bottom = np.abs(theirs[-shared:] - north[-shared:]).max()
            near.append((min(top, bottom), grid.name))
    near.sort()
    listed = ", ".join(f"{name} (rows off by {error:.3g} degrees)" for error, name in near[:3])
    return (
        f"lat: expected the rows of a grid within {TOLERANCE} degrees, got {lat.size} rows from "
        f"{lat[0]:g} to {lat[-1]:g} that fit no grid; the nearest: {listed}. "
        "A candidate with another number of rows means rows to drop or to add; rows of the whole "
        "globe without its poles are taken as they are with repair=True, --repair; other rings: "
        "Grid.from_rings"
    )


def _is_axis(lat: NDArray) -> bool:
    step = np.diff(lat)
    return bool(np.all(step > 0) or np.all(step < 0))


def _count_rings(lat: NDArray) -> int:
    return 1 + int(np.count_nonzero(np.diff(np.sort(lat)) > TOLERANCE))
