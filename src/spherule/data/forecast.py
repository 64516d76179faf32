"""Users' own fields: a Zarr store or NetCDF file with time and a grid of the sphere.

Whatever the order of latitudes and the origin of longitudes, fields are brought into the order of
the grid that `Grid.match` recognises, and predictions go back into the user's own.
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from spherule.data.statistics import Statistics
from spherule.grids import Grid
from spherule.grids.match import Match
from spherule.optional import require

if TYPE_CHECKING:
    import xarray as xr

LATITUDES, LONGITUDES = ("latitude", "lat"), ("longitude", "lon")
STATISTICS_TIMES = 256
"""Of how many training times, evenly spread, mean and deviation are taken."""


def open_fields(path: Path | str) -> "xr.Dataset":
    """A Zarr store (a directory) or a NetCDF file, read as it is needed."""
    path = Path(path)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    engine = "zarr" if path.is_dir() else "h5netcdf"
    xr = require("xarray", f"reading {path}")
    for module in ("zarr",) if engine == "zarr" else ("h5py", "h5netcdf"):
        require(module, f"reading {path}")
    try:
        with warnings.catch_warnings():
            # Stores with and without consolidated metadata are both fine.
            warnings.filterwarnings("ignore", message="Failed to open Zarr store with consol")
            return xr.open_dataset(path, engine=engine, chunks=None)
    except ImportError:
        raise
    except Exception as error:  # each library has its own for a file that is not what it reads
        raise ValueError(f"{path} cannot be read as {engine}: {error}") from error


@dataclass(frozen=True)
class Layout:
    """How a user's arrays lie on the sphere: the dimensions of space, and the way to our grid."""

    dims: tuple[str, ...]
    match: Match

    @classmethod
    def of(cls, data: "xr.Dataset") -> "Layout":
        """Recognise it from the coordinates of latitude and longitude in degrees."""
        latitude, longitude = (
            _coordinate(data, names, unit)
            for names, unit in ((LATITUDES, "degrees_north"), (LONGITUDES, "degrees_east"))
        )
        dims = tuple(dict.fromkeys((*latitude.dims, *longitude.dims)))
        if latitude.ndim != 1 or longitude.ndim != 1:
            raise ValueError(
                f"{latitude.name} has dimensions {latitude.dims}: expected latitude and longitude "
                "along an axis each, or both along one of cells"
            )
        match = Grid.match(latitude.values, longitude.values)
        return cls(tuple(map(str, dims)), match)

    @property
    def grid(self) -> Grid:
        return self.match.grid

    def read(self, variable: "xr.DataArray") -> NDArray[np.float32]:
        """A variable as (*other dimensions, *grid.shape)."""
        lacking = [d for d in self.dims if d not in variable.dims]
        if lacking:
            raise ValueError(f"{variable.name} has dimensions {variable.dims}, not {self.dims}")
        values = variable.transpose(..., *self.dims).values
        return self.match.to_grid(np.ascontiguousarray(values, dtype=np.float32))

    def unread(self, values: NDArray[np.float32], dims: Sequence[str]) -> NDArray[np.float32]:
        """The inverse: values (*others, *grid.shape) in the user's order of points, as `dims`."""
        order = [d for d in dims if d not in self.dims] + list(self.dims)
        mine = self.match.from_grid(values)
        return np.moveaxis(mine, range(mine.ndim), [dims.index(d) for d in order])


class ForecastDataset(Dataset[tuple[Tensor, ...]]):
    """Pairs (state, state a lead later) of a user's variables, normalised, as float32 (variables,
    *grid.shape); with `leads` > 1 more targets follow.

    `part` is a range of the time axis, from a fraction to a fraction. A missing value is an error
    that names variable, time and count, or, with `missing="mask"`, stays NaN for the loss to leave
    out.
    """

    def __init__(
        self,
        path: Path | str,
        variables: Sequence[str],
        *,
        static: Sequence[str] = (),
        lead: str = "6h",
        leads: int = 1,
        part: tuple[float, float] = (0.0, 1.0),
        missing: Literal["refuse", "mask"] = "refuse",
        statistics: Statistics | None = None,
        static_statistics: Statistics | None = None,
    ) -> None:
        self.path, self.variables, self.missing = Path(path), tuple(variables), missing
        self._opened: tuple[int, Any] | None = None
        self.layout = Layout.of(self._data)
        self.grid = self.layout.grid
        for name in (*variables, *static):
            _require_variable(self._data, name, self.path)
        self.lead = duration(lead)
        self._times = _times(self._data, self.path)
        self._sequences = _sequences(self._times, self.lead, leads, part, self.path)
        self.units = tuple(str(self._data[name].attrs.get("units", "")) for name in self.variables)
        self.static, self.static_statistics = read_static(
            self._data, self.layout, static, self.path, static_statistics
        )
        self.statistics = self._measure() if statistics is None else statistics

    @property
    def _data(self) -> Any:
        """The file, opened by each process for itself: HDF5 must not be read through a fork."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), open_fields(self.path)
        return self._opened[1]

    def __len__(self) -> int:
        return len(self._sequences)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={index}: {self.path} has {len(self)} samples in this part")
        states = [torch.from_numpy(self.state(t)) for t in self._sequences[index]]
        return tuple(self.statistics.normalise(state, self.grid) for state in states)

    def time(self, index: int) -> np.datetime64:
        """When the input of a sample is."""
        when: np.datetime64 = self._times[self._sequences[index][0]]
        return when

    def state(self, position: int) -> NDArray[np.float32]:
        """All variables at a place of the time axis, in their own units."""
        at = self._data.isel(time=position)
        fields = np.stack([self.layout.read(at[name]) for name in self.variables])
        if self.missing == "refuse" and not np.isfinite(fields).all():
            for name, field in zip(self.variables, fields, strict=True):
                if bad := int(np.count_nonzero(~np.isfinite(field))):
                    raise ValueError(
                        f"{self.path}: {name} has {bad} missing values of {field.size} at "
                        f"{_text(self._times[position])}; fill them, or leave them out of loss and "
                        "metrics with --missing mask"
                    )
        return fields

    def _measure(self) -> Statistics:
        """Mean and deviation over the sphere, of the inputs of this part."""
        starts = [times[0] for times in self._sequences]
        chosen = starts[:: max(len(starts) // STATISTICS_TIMES, 1)]
        weights = (self.grid.weights / self.grid.weights.sum()).reshape(self.grid.shape)
        moments = np.zeros((3, len(self.variables)))
        # Deviations from a first field, so that a large mean takes no digits.
        first = np.nanmean(self.state(chosen[0]).reshape(len(self.variables), -1), axis=1)
        around = first.reshape(-1, *[1] * len(self.grid.shape)).astype(np.float64)
        space = tuple(range(1, 1 + len(self.grid.shape)))
        for position in chosen:
            fields = self.state(position) - around
            there = np.isfinite(fields)
            fields = np.where(there, fields, 0.0)
            for power in range(3):
                moments[power] += (weights * there * fields**power).sum(space)
        mean = moments[1] / moments[0]
        std = np.sqrt(np.maximum(moments[2] / moments[0] - mean**2, 0.0))
        for name, deviation in zip(self.variables, std, strict=True):
            if not deviation > 0:
                raise ValueError(f"{self.path}: {name} is the same everywhere in the training part")
        return Statistics(tuple((first + mean).tolist()), tuple(std.tolist()))


def read_static(
    data: "xr.Dataset",
    layout: Layout,
    names: Sequence[str],
    path: Path,
    statistics: Statistics | None = None,
) -> tuple[Tensor | None, Statistics]:
    """Fields without time (names, *shape) in deviations from a mean over the sphere, and these:
    what is given, as a trained model needs it, or the fields' own.
    """
    if not names:
        return None, Statistics((), ())
    grid, fields = layout.grid, []
    for name in names:
        _require_variable(data, name, path)
        variable = data[name]
        if "time" in variable.dims:
            variable = variable.isel(time=0)
        field = layout.read(variable).astype(np.float64)
        if field.shape != grid.shape or not np.isfinite(field).all():
            raise ValueError(
                f"{path}: {name} must be a whole field {layout.dims}, got {variable.dims} with "
                f"{int(np.count_nonzero(~np.isfinite(field)))} missing values"
            )
        fields.append(field)
    if statistics is None:
        weights = grid.weights / grid.weights.sum()
        mean = [float((weights * field).sum()) for field in fields]
        std = [
            float(np.sqrt((weights * (field - m) ** 2).sum()))
            for field, m in zip(fields, mean, strict=True)
        ]
        statistics = Statistics(tuple(mean), tuple(s if s > 0 else 1.0 for s in std))
    stacked = torch.tensor(np.stack(fields), dtype=torch.float64)
    return statistics.normalise(stacked, grid).float(), statistics


def _coordinate(data: "xr.Dataset", names: tuple[str, ...], unit: str) -> Any:
    for name in names:
        if name in data.variables:
            return data[name]
    for other in data.variables:
        if data[other].attrs.get("units") == unit:
            return data[other]
    there = ", ".join(map(str, data.variables))
    raise ValueError(f"no coordinate {' or '.join(names)} (or with units {unit}) among {there}")


def _require_variable(data: "xr.Dataset", name: str, path: Path) -> None:
    if name not in data.data_vars:
        raise ValueError(
            f"{path} has no variable {name!r}; it has {', '.join(map(str, data.data_vars))}"
        )


def _times(data: "xr.Dataset", path: Path) -> NDArray:
    if "time" not in data.coords:
        raise ValueError(
            f"{path} has no coordinate time; it has {', '.join(map(str, data.coords))}"
        )
    times = data["time"].values
    if not np.issubdtype(times.dtype, np.datetime64) and not np.issubdtype(
        times.dtype, np.timedelta64
    ):
        raise ValueError(
            f"{path}: time is {times.dtype}, expected dates or durations: give it units such as "
            "'hours since 2000-01-01'"
        )
    if times.size < 2 or not (np.diff(times) > np.timedelta64(0, "ns")).all():
        raise ValueError(f"{path}: time must have at least two values and increase")
    return times


def duration(text: str) -> np.timedelta64:
    """A length of time such as 6h, 30min, 1d or 3600s."""
    units = {"s": 1, "min": 60, "h": 3600, "d": 86400}
    number = text.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = text[len(number) :].strip()
    try:
        seconds = float(number) * units[unit]
    except (ValueError, KeyError):
        raise ValueError(
            f"lead={text!r}: expected a number and a unit, such as 6h, 30min or 1d"
        ) from None
    if not 0 < seconds < 9e9:
        raise ValueError(f"lead={text!r} must be positive and less than 285 years")
    return np.timedelta64(round(seconds * 1e9), "ns")


def _sequences(
    times: NDArray, lead: np.timedelta64, leads: int, part: tuple[float, float], path: Path
) -> list[tuple[int, ...]]:
    """Places of the time axis that lie a lead apart, all within the part."""
    first, last = (round(fraction * times.size) for fraction in part)
    stamps = times.astype("datetime64[ns]" if times.dtype.kind == "M" else "timedelta64[ns]")
    position = {stamp: i for i, stamp in enumerate(stamps.tolist())}
    found = []
    for start in range(first, last):
        wanted = [(stamps[start] + k * lead).astype("int64").item() for k in range(leads + 1)]
        places = [position.get(stamp, -1) for stamp in wanted]
        if all(first <= place < last for place in places):
            found.append(tuple(places))
    if not found:
        step = np.diff(stamps).min().astype("timedelta64[s]")
        raise ValueError(
            f"{path}: no {leads + 1} of times {first} to {last - 1} lie "
            f"lead={lead.astype('timedelta64[s]')} apart; the smallest step is {step}"
        )
    return found


def _text(time: Any) -> str:
    return str(time.astype("datetime64[s]") if time.dtype.kind == "M" else time)
