"""A file's fields on another grid, read and written a few at a time."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks, ops
from spherule.data.field_files import Source, named, open_fields
from spherule.data.field_writer import FieldWriter
from spherule.data.layout import Layout
from spherule.grids import Grid

if TYPE_CHECKING:
    import xarray as xr

Method: TypeAlias = Literal["bilinear", "nearest", "conservative", "spectral"]
METHODS: tuple[Method, ...] = get_args(Method)


@checks.arguments
def regrid(
    source: Source,
    target: Path,
    grid: Grid,
    *,
    method: Method = "bilinear",
    repair: bool = False,
    log: Callable[[str], None] = print,
) -> None:
    """Write all variables with latitude and longitude on another grid, with their attributes; the
    others, such as scalars, as coordinates are.

    Missing values make those missing that depend on them; "spectral" takes none.
    """
    data = open_fields(source)
    layout = Layout.of(data, repair=repair)
    if layout.match.note:
        log(f"note: {layout.match.note}")
    space = set(layout.dims)
    fields = [n for n, v in data.data_vars.items() if space <= set(v.dims)]
    names = [n for n in fields if data[n].dtype.kind in "fiub"]
    if not names:
        raise ValueError(f"{named(source)}: no variable has dimensions {layout.dims}")
    others = [n for n, v in data.data_vars.items() if not space & set(v.dims)]
    if left := [str(n) for n in data.data_vars if n not in (*names, *others)]:
        log(f"note: left out, since they are no fields of numbers: {', '.join(left)}")
    data = data.set_coords(others).drop_vars(left)
    like, dims = on_grid(data, layout, grid)
    with FieldWriter(target, like, dims) as writer:
        for name in names:
            sizes = {str(d): n for d, n in data[name].sizes.items() if d not in layout.dims}
            for index in np.ndindex(*sizes.values()):
                place = dict(zip(sizes, index, strict=True))
                field = data[name].isel(place)
                values = resampled(layout.read(field), layout.grid, grid, method, str(name))
                writer.write(str(name), place, values)


def resampled(
    u: NDArray[np.float32], source: Grid, target: Grid, method: Method, name: str = "u"
) -> NDArray[np.float32]:
    """Fields (..., *source.shape) at the points of the target."""
    checks.choice("method", method, METHODS)
    field: Tensor = torch.from_numpy(u)
    if method != "spectral":
        return ops.resample(field, source, target, mode=method).numpy()
    if missing := int(field.isnan().sum()):
        raise ValueError(f"{name} has {missing} missing values, which method=spectral can't take")
    lmax = min(source.lmax, target.lmax)
    return ops.isht(ops.sht(field.double(), source, lmax), target).float().numpy()


def on_grid(data: "xr.Dataset", layout: Layout, grid: Grid) -> "tuple[xr.Dataset, tuple[str, ...]]":
    """Variables of these names, without values, on the coordinates of a grid, and their dimensions
    of space.
    """
    dims = ("latitude", "longitude") if grid.regular else ("cell",)
    coordinates = _coordinates(grid, dims)
    zero = np.zeros((), np.float32)  # shapes without memory
    fields: dict[Any, Any] = {}
    for name, variable in data.data_vars.items():
        others = [d for d in variable.dims if d not in layout.dims]
        shape = (*(variable.sizes[d] for d in others), *grid.shape)
        fields[name] = ((*others, *dims), np.broadcast_to(zero, shape), variable.attrs)
    gone = [n for n, c in data.coords.items() if set(layout.dims) & set(c.dims)]
    like = data.drop_vars([*data.data_vars, *gone]).assign(fields).assign_coords(coordinates)
    return like.assign_attrs(grid=grid.name), dims


def _coordinates(grid: Grid, dims: tuple[str, ...]) -> dict[str, Any]:
    """CF's latitude and longitude in degrees."""
    north = {"standard_name": "latitude", "units": "degrees_north"}
    east = {"standard_name": "longitude", "units": "degrees_east"}
    if grid.regular:
        north["axis"], east["axis"] = "Y", "X"
        theta, phi = grid.theta, grid.point_phi[: grid.shape[1]]
    else:
        theta, phi = grid.point_theta, grid.point_phi
    return {
        "latitude": (dims[0], 90 - np.degrees(theta), north),
        "longitude": (dims[-1], np.degrees(phi), east),
    }
