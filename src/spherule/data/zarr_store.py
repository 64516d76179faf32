"""What all stores share: Zarr directories that xarray opens.

A store has its name only when it is whole. Until then the name ends in `.partial`, and the command
that began it goes on with it.
"""

import errno
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid
from spherule.optional import require


def partial_of(path: Path) -> Path:
    """The name of a store that is being written."""
    return path.with_name(path.name + ".partial")


def open_store(path: Path, kind: str, required: Iterable[str]) -> Any:
    """The group of a store of this kind (its attribute `format`), or an error that says what is
    there instead.
    """
    zarr = zarr_module()
    if not path.exists():
        begun = partial_of(path)
        hint = f"; {begun.name} is not finished: give its command again" if begun.exists() else ""
        raise FileNotFoundError(f"{path} does not exist{hint}")
    try:
        # Version 2 of the format can hold pickles, which run what they like when they are read.
        mode = "r+" if path.suffix == ".partial" else "r"
        group = zarr.open_group(path, mode=mode, zarr_format=3)
        found = group.attrs.get("format")
    except Exception as error:  # a damaged file ends in many ways
        raise ValueError(f"{path} is damaged, or not a Zarr store: {error}") from error
    if found != kind or not all(name in group.attrs for name in required):
        about = kind.removeprefix("spherule ").rstrip(" 0123456789")
        raise ValueError(f"{path} is not a store of {about}: format={found!r}")
    return group


def create_store(path: Path, kind: str, attributes: Mapping[str, Any], size: int) -> Any:
    """An empty group in place of what a killed run may have left; `size` bytes must be free."""
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if size > free:
        raise OSError(
            errno.ENOSPC, f"{size / 1e9:.3g} GB are needed and {free / 1e9:.3g} GB are free"
        )
    if path.exists():
        shutil.rmtree(path)
    group = zarr_module().create_group(path, overwrite=False)
    group.attrs.update({"format": kind, "source": f"spherule {version('spherule')}", **attributes})
    return group


def consolidate(path: Path) -> Any:
    """All metadata in one place: xarray wants it, version 3 of the format does not have it yet."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        # A store that is being written has its journal beside the arrays.
        warnings.filterwarnings("ignore", message="Object at journal")
        return zarr_module().consolidate_metadata(path)


def require_same(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """What a store was made with is what is asked for."""
    different = [k for k in wanted if found.get(k) != wanted[k]]
    if different:
        raise ValueError(
            f"{path} was made otherwise: "
            + ", ".join(f"{k}={found.get(k)!r} instead of {wanted[k]!r}" for k in different)
        )


@contextmanager
def described(path: Path) -> Iterator[None]:
    """What a damaged store's metadata lack, or say instead, ends in an error that names it."""
    try:
        yield
    except (ValueError, OSError):
        raise
    except Exception as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error


@contextmanager
def room_for(path: Path) -> Iterator[None]:
    """A full disk ends in an error that says how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise OSError(
            error.errno,
            f"no room for {path} ({error.strerror}); what is written stays in "
            f"{partial_of(path).name}: make room and give the same command again",
        ) from error


Coordinate = tuple[tuple[str, ...], NDArray, str]


def place_coordinates(grid: Grid) -> dict[str, Coordinate]:
    """Dimensions, values and unit of `lat` and `lon`: along the axes of a regular grid, else point
    by point.
    """
    if grid.regular:
        lat, lon, along = grid.theta, grid.point_phi[: grid.shape[1]], (("lat",), ("lon",))
    else:
        lat, lon, along = grid.point_theta, grid.point_phi, (("point",), ("point",))
    return {
        "lat": (along[0], 90 - np.degrees(lat), "degrees_north"),
        "lon": (along[1], np.degrees(lon), "degrees_east"),
    }


def write_coordinates(group: Any, coordinates: Mapping[str, Coordinate]) -> None:
    for name, (dimensions, values, unit) in coordinates.items():
        array = group.create_array(name, data=values, dimension_names=dimensions, compressors=None)
        array.attrs["units"] = unit


def require_coordinates(path: Path, group: Any, coordinates: Mapping[str, Coordinate]) -> None:
    for name, (_, values, _) in coordinates.items():
        if name not in group or not np.array_equal(group[name][:], values):
            raise ValueError(f"{path}: {name} is not that of its config")


def zarr_module() -> Any:
    for module in ("zarr.codecs", "zarr.errors"):
        require(module, "a store")
    return require("zarr", "a store")
