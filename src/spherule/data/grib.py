"""GRIB files as one dataset, though their messages need not form one: levels of several kinds and
numbers, steps that only some variables have.
"""

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from spherule.optional import require

if TYPE_CHECKING:
    import xarray as xr

SUFFIXES = (".grib", ".grib1", ".grib2", ".grb", ".grb1", ".grb2")


def is_grib(path: Path) -> bool:
    """By name, or as messages begin: archives name their files as they like."""
    if path.suffix.lower() in SUFFIXES:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"GRIB"


def open_grib(path: Path, chunks: dict[str, int] | None = None) -> "xr.Dataset":
    """All variables. One that is there on several kinds of levels keeps its name on the first that
    has more than one level, and is `t_surface` and the like elsewhere.
    """
    require("cfgrib", f"reading {path}")
    return _opened(str(path), path.stat().st_mtime_ns, chunks is not None)


@lru_cache(maxsize=8)
def _opened(path: str, modified: int, lazily: bool) -> "xr.Dataset":
    from cfgrib.xarray_store import open_variable_datasets

    # One by one: opened together, those that don't fit beside the first would be left out. They
    # share an index, which does not stay: beside the data it would be a file that nobody asked for,
    # in the way when data move, and a pickle that whoever wrote there could fill.
    with TemporaryDirectory() as directory:
        index = {"indexpath": f"{directory}/{{short_hash}}.idx"}
        cubes = open_variable_datasets(path, index, chunks={} if lazily else None)
    if not cubes:
        raise ValueError("no messages")
    return _joined(cubes)


def _joined(cubes: list["xr.Dataset"]) -> "xr.Dataset":
    # Many levels first, so that t is that of pressure levels rather than of the tropopause.
    cubes = sorted(cubes, key=lambda cube: -max(v.ndim for v in cube.data_vars.values()))
    joined = cubes[0]
    for cube in cubes[1:]:
        for name, variable in cube.data_vars.items():
            joined = _with(joined, str(name), variable)
    return joined


def _with(data: "xr.Dataset", name: str, variable: "xr.DataArray") -> "xr.Dataset":
    """A variable more; an axis that differs from the one of the same name gets a number."""
    if name in data.data_vars:
        name = f"{name}_{variable.attrs.get('GRIB_typeOfLevel', 'more')}"
    for dim in list(variable.dims):
        if dim not in variable.coords or dim not in data.coords:
            continue
        number, new = 2, str(dim)
        while new in data.coords and not data[new].variable.equals(variable[dim].variable):
            new, number = f"{dim}_{number}", number + 1
        if new != dim:
            variable = variable.rename({dim: new})
    # What does not lie along a dimension (its level, its time) may differ between variables.
    others = [c for c in variable.coords if c not in variable.dims and c in data.coords]
    return data.assign({name: variable.drop_vars(others)}) if name not in data else data
