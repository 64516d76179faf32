"""A globe from a file: fields on any grid that `Grid.match` recognizes, or panoramas."""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spherule.data.field_files import open_fields
from spherule.data.layout import Layout
from spherule.data.panoramas import FORMAT, PanoramaDataset
from spherule.tasks.panoramas import room_globe
from spherule.train.scene import Frames, Globe, Variable

if TYPE_CHECKING:
    import xarray as xr

MOST_VARIABLES = 8
MOST_FRAMES = 240
MOST_VALUES = 60_000_000
"""What is read of a file; the page thins further where it must."""
MOST_ROOMS = 6
MOST_NAMES = 12


def file_globe(path: Path, variables: Sequence[str] = ()) -> Globe:
    """What a NetCDF file or Zarr store holds; of many variables the first, or those named."""
    if _holds_panoramas(path):
        return _panoramas(path, variables)
    data = open_fields(path)
    layout = Layout.of(data)
    known = [str(n) for n, v in data.data_vars.items() if _is_field(v, layout)]
    if unknown := [name for name in variables if name not in known]:
        raise ValueError(
            f"{path} has no field {unknown[0]!r} on {layout.grid!r}; it has {_listed(known)}"
        )
    if not known:
        raise ValueError(
            f"{path}: no variable has dimensions {layout.dims}; it has "
            f"{_listed(list(data.data_vars))}"
        )
    along = _frame_dimension(data, layout)
    known.sort(key=lambda name: along not in data[name].dims)  # first what moves
    slices = [cut for name in variables or known for cut in _slices(data[name], layout, along)]
    shown = slices[:MOST_VARIABLES]
    notes = [f"{path.name}, on {layout.grid.name}."]
    if len(slices) > len(shown):
        notes.append(
            f"{len(shown)} of {len(slices)} fields are shown; choose others with --variable: "
            f"{_listed(known)}."
        )
    times = data.sizes[along] if along else 1
    if not times:
        raise ValueError(f"{path}: {along} is empty")
    stride = max(
        math.ceil(times / MOST_FRAMES),
        math.ceil(times * len(shown) * layout.grid.size / MOST_VALUES),
    )
    if stride > 1:
        notes.append(f"One of {stride} times is read, of {times}.")
    found = []
    for label, cut in shown:
        cut = cut.isel({along: slice(None, None, stride)}) if along in cut.dims else cut
        units = str(cut.attrs.get("units", ""))
        found.append(Variable(label, layout.grid, {"file": layout.read(cut)}, units))
    labels = _labels(data, along)[::stride] if along else ("",)
    return Globe(path.name, found, Frames(labels, along or "time"), notes, earth=True)


def _is_field(variable: "xr.DataArray", layout: Layout) -> bool:
    return set(layout.dims) <= set(variable.dims) and variable.dtype.kind in "fiub"


def _frame_dimension(data: "xr.Dataset", layout: Layout) -> str:
    """What the slider runs over: time, or the first dimension of dates or durations; "" is none."""
    others = [str(d) for d in data.dims if d not in layout.dims]
    dated = [d for d in others if d in data.coords and data[d].dtype.kind in "Mm"]
    return "time" if "time" in others else next(iter(dated), "")


def _slices(
    variable: "xr.DataArray", layout: Layout, along: str
) -> Iterator[tuple[str, "xr.DataArray"]]:
    """A field for each place of the other dimensions, such as levels, with a name."""
    others = [str(d) for d in variable.dims if d not in (*layout.dims, along)]
    for places in itertools.product(*(range(variable.sizes[d]) for d in others)):
        words = [str(variable.name)]
        for dimension, place in zip(others, places, strict=True):
            at = variable[dimension].values[place] if dimension in variable.coords else place
            words.append(f"{dimension} {_text(at)}")
        yield ", ".join(words), variable.isel(dict(zip(others, places, strict=True)))


def _labels(data: "xr.Dataset", along: str) -> tuple[str, ...]:
    if along not in data.coords:
        return tuple(f"{along} {i}" for i in range(data.sizes[along]))
    coordinate = data[along]
    unit = str(coordinate.attrs.get("units", "")) if coordinate.dtype.kind in "fiu" else ""
    return tuple(f"{_text(value)} {unit}".strip() for value in coordinate.values)


def _text(value: Any) -> str:
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[m]")).replace("T", " ")
    if isinstance(value, np.timedelta64):
        return f"{value / np.timedelta64(1, 'h'):g} h"
    return f"{value:g}" if isinstance(value, int | float | np.number) else str(value)


def _listed(names: Sequence[Any]) -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return (", ".join(map(str, names[:MOST_NAMES])) or "nothing") + more


def _holds_panoramas(path: Path) -> bool:
    """Whether a store says so in its attributes."""
    try:
        about = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(about, dict) and about.get("attributes", {}).get("format") == FORMAT


def _panoramas(path: Path, variables: Sequence[str]) -> Globe:
    dataset = PanoramaDataset(path, split="all")
    rooms = [dataset.panorama(i) for i in range(min(len(dataset), MOST_ROOMS))]
    known = {
        "labels": np.stack([room.label for room in rooms]),
        "depth": np.stack([room.depth for room in rooms]),
    }
    if unknown := [name for name in variables if name not in ("label", "depth")]:
        raise ValueError(f"{path} holds panoramas: variable {unknown[0]!r} is not label or depth")
    chosen = {
        name: {"truth": values}
        for name, values in known.items()
        if not variables or name.removesuffix("s") in variables
    }
    names = [room.name or f"room {i + 1}" for i, room in enumerate(rooms)]
    globe = room_globe(
        path.name, dataset.grid, np.stack([r.rgb for r in rooms]), names=names, **chosen
    )
    if len(dataset) <= len(rooms):
        return globe
    note = f"The first {len(rooms)} of {len(dataset)} panoramas."
    return Globe(globe.title, globe.variables, globe.frames, [note], globe.image, inside=True)
