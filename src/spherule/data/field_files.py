"""Files of fields, as people have them: one or several, near or far, with levels or without."""

import glob
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from spherule import checks
from spherule.data.grib import is_grib, open_grib
from spherule.data.times import NAMES as TIMES
from spherule.optional import explained, require

if TYPE_CHECKING:
    import xarray as xr

Source: TypeAlias = "Path | str | xr.Dataset"
"""A file, a Zarr store, a directory of files, a pattern such as era5_*.nc, an address such as
s3://bucket/era5.zarr, or an open dataset."""

MEMBERS = ("number", "member", "realization", "ensemble", "ens")
_LEVELS = ("level", "lev", "plev", "pressure_level", "isobaricInhPa", "height")
_ZARR = ("zarr.json", ".zgroup", ".zmetadata")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+")


def open_fields(source: Source) -> "xr.Dataset":
    """The fields, read as they are needed; which library reads a file is for xarray to say.

    Several files are joined by their coordinates: in memory, or as they are needed where dask is
    installed.
    """
    xr = require("xarray", f"reading {named(source)}")
    checks.instance("source", source, str, Path, xr.Dataset)
    if isinstance(source, xr.Dataset):
        return source
    # A path has one slash where an address has several; a file's begins with one of its own.
    text = re.sub(r"^file:/+", "/", str(source))
    if _ADDRESS.match(text):
        return _open_far(_ADDRESS.sub(r"\1://", text))
    path = Path(text)
    if path.exists():
        if path.is_dir() and not _is_zarr(path):
            seen = (p for p in path.iterdir() if not p.name.startswith("."))
            files = sorted(p for p in seen if p.is_file() or _is_zarr(p))
        else:
            files = [path]
    else:
        files = [Path(p) for p in sorted(glob.glob(text))]
        if not files:
            raise FileNotFoundError(f"{text} does not exist")
    if not files:
        raise FileNotFoundError(f"{text} is an empty directory, neither files nor a Zarr store")
    if len(files) == 1:
        return _open(files[0])
    chunks: dict[str, int] | None = {} if _has_dask() else None
    parts = _along_axes([_open(file, chunks) for file in files])
    try:
        joined = xr.combine_by_coords(
            parts, join="exact", data_vars="minimal", coords="minimal", compat="override",
            combine_attrs="override",
        )  # fmt: skip
    except ValueError as error:
        raise ValueError(f"{text}: {len(files)} files don't fit together: {error}") from error
    for name, index in joined.indexes.items():
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(f"{text}: {name} {twice} is in more than one of {len(files)} files")
    return joined


def _along_axes(parts: list["xr.Dataset"]) -> list["xr.Dataset"]:
    """Files of one time, member or level each, with dimensions to join them along."""
    names = {name for part in parts for name in part.coords if part[name].ndim == 0}
    for name in sorted(names, key=str):
        single = [part[name].values[()] for part in parts if name in part.coords]
        axis = name in (*TIMES, *MEMBERS, *_LEVELS)
        if axis and len(single) == len(parts) and len({*map(str, single)}) > 1:
            parts = [part.expand_dims(name) for part in parts]
    return parts


def named(source: Source) -> str:
    """What messages call it."""
    return str(source) if isinstance(source, (str, Path)) else "the dataset"


def choose(data: "xr.Dataset", names: Sequence[str], source: object) -> "xr.Dataset":
    """The variables of these names, without levels: `z@500` is z at level 500, `z` alone of a
    variable with levels is all of them, `z@1000`, `z@500` ...
    """
    if twice := sorted({name for name in names if list(names).count(name) > 1}):
        raise ValueError(f"variables: {', '.join(twice)} given more than once")
    # Coordinates keep their bounds, which say what areas and spans of time they stand for.
    bounds = {data[name].attrs.get("bounds") for name in data.coords}
    data = data.set_coords([name for name in data.data_vars if name in bounds - set(names)])
    chosen: dict[str, Any] = {}
    for name in names:
        base, at, level = name.partition("@")
        if name in data.data_vars:
            base, at, level = name, "", ""
        if base not in data.data_vars:
            raise ValueError(
                f"{source} has no variable {base!r}; it has {', '.join(map(str, data.data_vars))}"
            )
        variable = data[base]
        axis = _level_axis(variable)
        if at and axis is None:
            raise ValueError(f"{source}: {base} has no levels, so none to choose: {name!r}")
        if axis is None:
            chosen[name] = variable
            continue
        values = variable[axis].values.tolist()
        levels = _labels(values)
        wanted = [_level(name, level, values, axis)] if at else range(len(values))
        for i in wanted:
            units = str(variable[axis].attrs.get("units", ""))
            one = variable.isel({axis: i}).drop_vars(axis)
            chosen[f"{base}@{levels[i]}"] = one.assign_attrs(level=f"{levels[i]} {units}".strip())
    return data.drop_vars(list(data.data_vars)).assign(chosen)


def member_axis(variable: "xr.DataArray") -> str | None:
    """The dimension of an ensemble, if there is one."""
    for dim in variable.dims:
        name = str(dim)
        standard = variable[dim].attrs.get("standard_name") if dim in variable.coords else None
        if name in MEMBERS or standard == "realization":
            return name
    return None


def _labels(values: list[Any]) -> list[str]:
    """Of levels: six digits, or all where these don't tell them apart."""
    short = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return short if len({*short}) == len(values) else list(map(str, values))


def _level(name: str, level: str, values: list[Any], axis: str) -> int:
    """Where a level is, by its label or by a number that is as good as equal."""
    labels = _labels(values)
    if level in labels:
        return labels.index(level)
    try:
        near = [(abs(value - float(level)), i) for i, value in enumerate(values)]
        distance, place = min(near)
        if distance <= 1e-5 * abs(float(level)) + 1e-6:
            return place
    except (ValueError, TypeError):  # no number, on either side
        pass
    raise ValueError(f"{name!r}: {axis} has no {level}; it has {', '.join(labels)}")


def _level_axis(variable: "xr.DataArray") -> str | None:
    """The vertical dimension, by CF's attributes or by the names that people give it."""
    for dim in map(str, variable.dims):
        if dim not in variable.coords:
            continue
        attributes = variable[dim].attrs
        vertical = attributes.get("axis") == "Z" or "positive" in attributes
        pressure = str(attributes.get("units", "")).lower() in ("hpa", "pa", "mb", "millibars")
        common = dim in _LEVELS
        if vertical or pressure or common:
            return dim
    return None


def _open(path: Path, chunks: dict[str, int] | None = None) -> "xr.Dataset":
    xr = require("xarray", f"reading {path}")
    # A directory says nothing by its name; all else xarray knows by name or content.
    engine = "zarr" if _is_zarr(path) else None
    if engine:
        require("zarr", f"reading {path}")
    try:
        if is_grib(path):
            return open_grib(path, chunks)
        with warnings.catch_warnings():
            # Stores with and without consolidated metadata are both fine, and so are "hours since
            # 1-1-1": years come first.
            for message in ("Failed to open Zarr store with consol", "Ambiguous reference date"):
                warnings.filterwarnings("ignore", message=message)
            opened: xr.Dataset = xr.open_dataset(path, engine=engine, chunks=chunks)
            return opened
    except ImportError as error:
        raise explained(error, f"reading {path}") from error
    except Exception as error:  # each library has its own for a file that is not what it reads
        _require_readers(path, error)
        reason = str(error).partition(". Consider explicitly")[0]
        raise ValueError(
            f"{path} cannot be read: {reason}; expected NetCDF, Zarr or GRIB"
        ) from error


def _open_far(address: str) -> "xr.Dataset":
    xr = require("xarray", f"reading {address}")
    fsspec = require("fsspec", f"reading {address}")
    try:
        if Path(address).suffix in (".zarr", ""):
            require("zarr", f"reading {address}")
            far: xr.Dataset = xr.open_dataset(address, engine="zarr", chunks=None)
        else:
            far = xr.open_dataset(fsspec.open(address).open(), chunks=None)
        return far
    except FileNotFoundError:
        raise FileNotFoundError(f"{address} does not exist") from None
    except ImportError as error:
        raise explained(error, f"reading {address}") from error
    except Exception as error:
        _require_readers(address, error)
        raise ValueError(f"{address} cannot be read: {error}; expected NetCDF or Zarr") from error


def _require_readers(source: Path | str, error: Exception) -> None:
    """What reads such files may be missing: then that is the error, not what xarray says of it."""
    needed = ["cftime"] if "cftime" in str(error) else []
    if Path(source).suffix.lower() == ".nc":
        needed += ["h5py", "h5netcdf", "scipy"]  # scipy reads those older than HDF5
    for module in needed:
        require(module, f"reading {source}")


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in _ZARR)


def _has_dask() -> bool:
    import importlib.util

    return importlib.util.find_spec("dask") is not None
