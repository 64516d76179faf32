"""Fields that are written piece by piece: a Zarr store or NetCDF file like a user's own."""

import contextlib
import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spherule.files import require_new
from spherule.optional import require

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".zarr", ".nc")


class FieldWriter:
    """float32 variables beside the coordinates of `like`, whose encodings are not taken over: a
    forecast need not fit into the range of packed integers.

    Within `with`, `write` puts pieces into place; the file has its name when the block ends well,
    and is gone when it does not.
    """

    def __init__(self, target: Path, like: "xr.Dataset", space: Sequence[str]) -> None:
        if target.suffix not in SUFFIXES:
            raise ValueError(f"output={str(target)!r}: expected a name that ends in .zarr or .nc")
        require_new(target)
        self.target, self.like, self.space = target, like, tuple(space)
        self.partial = target.with_name(f"{target.stem}.partial{target.suffix}")
        self._arrays: dict[str, Any] = {}
        self._close = lambda: None

    def __enter__(self) -> "FieldWriter":
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._remove()
        try:
            self._begin()
        except BaseException:
            self._abandon()
            raise
        return self

    def _begin(self) -> None:
        coordinates = self.like[list(self.like.coords)].drop_encoding()
        coordinates.attrs = _plain(self.like.attrs)
        for name in coordinates.coords:
            encoding = self.like[name].encoding
            kept = {k: v for k, v in encoding.items() if k in ("units", "calendar")}
            coordinates[name].encoding = kept
        if self.target.suffix == ".zarr":
            self._begin_zarr(coordinates)
        else:
            self._begin_netcdf(coordinates)

    def write(self, name: str, place: Mapping[str, slice | int], values: NDArray) -> None:
        """A piece of a variable, in the order of its dimensions."""
        index = tuple(place.get(str(dim), slice(None)) for dim in self.like[name].dims)
        self._arrays[name][index] = values.astype(np.float32)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        try:
            self._close()
            self.partial.rename(self.target)
        except BaseException:
            self._remove()
            raise

    def _abandon(self) -> None:
        """After an error, which is the one to be told of, whatever else goes wrong now."""
        with contextlib.suppress(Exception):
            self._close()
        self._remove()

    def _begin_zarr(self, coordinates: "xr.Dataset") -> None:
        zarr = require("zarr", "a Zarr store")
        coordinates.to_zarr(self.partial, mode="w", consolidated=False, zarr_format=3)
        group = zarr.open_group(self.partial, mode="a")
        for name, variable in self.like.data_vars.items():
            self._arrays[str(name)] = group.create_array(
                str(name),
                shape=variable.shape,
                dtype="float32",
                chunks=self._chunks(variable),
                fill_value=np.nan,
                dimension_names=[str(dim) for dim in variable.dims],
                attributes=_plain(variable.attrs),
            )

    def _begin_netcdf(self, coordinates: "xr.Dataset") -> None:
        h5netcdf = require("h5netcdf", "a NetCDF file")
        coordinates.to_netcdf(self.partial, engine="h5netcdf")
        file = h5netcdf.File(self.partial, "a")
        self._close = file.close
        for name, variable in self.like.data_vars.items():
            for dim, size in variable.sizes.items():
                if dim not in file.dimensions:
                    file.dimensions[str(dim)] = size
            array = file.create_variable(
                str(name),
                tuple(map(str, variable.dims)),
                dtype="f4",
                fillvalue=np.float32(np.nan),
                chunks=self._chunks(variable),
            )
            for key, value in _plain(variable.attrs).items():
                array.attrs[key] = value
            self._arrays[str(name)] = array

    def _chunks(self, variable: "xr.DataArray") -> tuple[int, ...]:
        """A field each."""
        return tuple(
            max(size, 1) if dim in self.space else 1 for dim, size in variable.sizes.items()
        )

    def _remove(self) -> None:
        if self.partial.is_dir():
            shutil.rmtree(self.partial)
        else:
            self.partial.unlink(missing_ok=True)


_OF_VALUES = ("valid_range", "valid_min", "valid_max", "actual_range")
"""Attributes that say what values there were, packed or not, and not what there will be."""


def _plain(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    """What both formats can hold: texts, numbers and lists of them."""
    return {
        str(name): _held(value)
        for name, value in attributes.items()
        if value is not None and name not in _OF_VALUES
    }


def _held(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, list | tuple):
        kinds = {type(item) for item in value}
        if (kinds and kinds <= {int, float}) or kinds == {str}:
            return list(value)
    return value if isinstance(value, str | int | float) else json.dumps(value, default=str)
