"""Where a user's arrays lie on the sphere.

Whatever the order of latitudes and the origin of longitudes, fields are brought into the order of
the grid that `Grid.match` recognizes, and go back into the user's own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from spherule import ops
from spherule.grids import Grid
from spherule.grids.match import TOLERANCE, Match

if TYPE_CHECKING:
    import xarray as xr

LATITUDES, LONGITUDES = ("latitude", "lat", "nav_lat"), ("longitude", "lon", "nav_lon")
_UNITS = {
    "latitude": ("degrees_north", "degree_north", "degrees_N", "degree_N", "degreesN", "degreeN"),
    "longitude": ("degrees_east", "degree_east", "degrees_E", "degree_E", "degreesE", "degreeE"),
}
"""CF's spellings."""


@dataclass(frozen=True)
class Layout:
    """The dimensions of space, the way to our grid, and from there to another if one is wanted."""

    dims: tuple[str, ...]
    match: Match
    target: Grid | None = None
    rings: tuple[int, int] | None = None
    """That are read, from one to another without the last; by default all."""

    @classmethod
    def of(
        cls, data: "xr.Dataset", *, repair: bool = False, target: Grid | None = None
    ) -> "Layout":
        """Recognize it from the coordinates of latitude and longitude in degrees. Fields are read
        on `target` where that is given: averaged over its cells if it is the coarser.
        """
        latitude, longitude = _coordinate(data, LATITUDES), _coordinate(data, LONGITUDES)
        dims = tuple(dict.fromkeys((*latitude.dims, *longitude.dims)))
        lat, lon = latitude.values, longitude.values
        if lat.ndim == lon.ndim == 2 and latitude.dims == longitude.dims:
            if np.ptp(lat, axis=0).max() <= TOLERANCE:  # columns of a latitude each
                dims, lat, lon = dims[::-1], lat.T, lon.T
            if max(np.ptp(lat, axis=1).max(), np.ptp(lon, axis=0).max()) > TOLERANCE:
                raise ValueError(
                    f"{latitude.name} and {longitude.name} vary along both of {latitude.dims}: the "
                    "grid is curvilinear. Bring it onto rings first, with CDO's remapbil or xESMF"
                )
            lat, lon = lat[:, 0], lon[0]
        elif lat.ndim != 1 or lon.ndim != 1:
            raise ValueError(
                f"{latitude.name} has dimensions {latitude.dims}: expected latitude and longitude "
                "along an axis each, or both along one of cells"
            )
        bounds = data.variables.get(latitude.attrs.get("bounds"))
        match = Grid.match(
            lat, lon, bounds=None if bounds is None else bounds.values, repair=repair
        )
        return cls(tuple(map(str, dims)), match, None if target == match.grid else target)

    @property
    def grid(self) -> Grid:
        """That fields are read on."""
        grid = self.target or self.match.grid
        return grid if self.rings is None else grid.part(*self.rings)

    def part(self, rings: slice) -> "Layout":
        """Some rings of it: no others are read, unless fields come from another grid."""
        return replace(self, rings=rings.indices(self.grid.nrings)[:2])

    def read(self, variable: "xr.DataArray") -> NDArray[np.float32]:
        """A variable as (*other dimensions, *grid.shape)."""
        lacking = [d for d in self.dims if d not in variable.dims]
        if lacking:
            raise ValueError(f"{variable.name} has dimensions {variable.dims}, not {self.dims}")
        match = self.match
        if self.rings is not None and self.target is None:
            where, match = match.part(*self.rings)
            variable = variable.isel(dict(zip(self.dims, where, strict=True)))
        if variable.dtype.kind not in "fiub":
            raise ValueError(f"{variable.name} holds {variable.dtype}, expected numbers")
        values = variable.transpose(..., *self.dims).values
        with np.errstate(over="ignore"):  # what float32 can't hold is refused as infinite
            single = np.ascontiguousarray(values, dtype=np.float32)
        if np.isinf(single).any():
            count = int(np.count_nonzero(np.isinf(single)))
            raise ValueError(
                f"{variable.name} has {count} infinite values of {single.size}, or beyond float32's"
                " range; mark them as missing, or mend them"
            )
        mine = match.to_grid(single)
        if self.target is None:
            return mine
        there = _resampled(mine, self.match.grid, self.target)
        if self.rings is None:
            return there
        if self.target.regular:
            return there[..., slice(*self.rings), :]
        return there[..., self.target.points(*self.rings)]

    def unread(self, values: NDArray[np.float32], dims: Sequence[str]) -> NDArray[np.float32]:
        """The inverse: values (*others, *grid.shape) in the user's order of points, as `dims`."""
        order = [d for d in dims if d not in self.dims] + list(self.dims)
        if self.target is not None:
            values = _resampled(values, self.target, self.match.grid)
        mine = self.match.from_grid(values)
        return np.moveaxis(mine, range(mine.ndim), [dims.index(d) for d in order])


def _resampled(u: NDArray[np.float32], source: Grid, target: Grid) -> NDArray[np.float32]:
    mode: Literal["conservative", "bilinear"]
    coarser = target.size < source.size and source.covers_sphere and target.covers_sphere
    mode = "conservative" if coarser else "bilinear"
    return ops.resample(torch.from_numpy(u), source, target, mode=mode).numpy()


def _coordinate(data: "xr.Dataset", names: tuple[str, ...]) -> Any:
    """By name, by CF's standard name, by CF's units, or by a name in capitals."""
    units = _UNITS[names[0]]
    for known in (
        lambda other: other in names,
        lambda other: data[other].attrs.get("standard_name") == names[0],
        lambda other: data[other].attrs.get("units") in units,
        lambda other: str(other).lower() in names,
    ):
        if found := [other for other in data.variables if known(other)]:
            return data[min(found, key=lambda name: names.index(name) if name in names else 0)]
    there = ", ".join(map(str, data.variables))
    raise ValueError(
        f"no coordinate {' or '.join(names)} (or with units {units[0]}) among {there}; fields in "
        "harmonics or on a rotated grid must be brought onto rings first, with CDO or MIR"
    )
