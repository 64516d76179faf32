"""A trained forecast on a user's file: fields in, fields out, in the user's own coordinates.

The file is read, predicted and written a few fields at a time: it may be larger than the memory.
"""

import datetime
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spherule.data import Statistics
from spherule.data.field_writer import FieldWriter
from spherule.data.forecast import Layout, duration, open_fields, read_static
from spherule.models import Model
from spherule.train.task import Log

if TYPE_CHECKING:
    import xarray as xr

BATCH = 4


@torch.no_grad()
def predict_fields(
    model: Model,
    metadata: dict[str, Any],
    source: Path,
    target: Path,
    *,
    allow_missing: bool,
    device: torch.device,
    log: Log,
) -> None:
    """Read the run's variables, and write what the model makes of them a lead later."""
    if "variables" not in metadata:
        raise ValueError(f"{source}: this run reads panorama images, not fields")
    data = open_fields(source)
    layout = Layout.of(data)
    model = _on_grid(model, layout, log).to(device).eval()
    names = metadata["variables"]
    _require_alike(data, names, source)
    statistics = Statistics(tuple(metadata["mean"]), tuple(metadata["std"]))
    static = _static(data, layout, metadata, source, log)
    with FieldWriter(target, _later(data[names], metadata), layout.dims) as writer:
        for place in _pieces(data[names[0]], layout):
            piece = data[names].isel(place)
            x = torch.from_numpy(np.stack([layout.read(piece[name]) for name in names]))
            shape = x.shape
            x = x.reshape(len(names), -1, *layout.grid.shape).transpose(0, 1)
            present = x.isfinite()
            if not allow_missing and not present.all():
                counts = {n: int((~present[:, i]).sum()) for i, n in enumerate(names)}
                raise ValueError(f"{source}: missing values: {counts} at {place}; fill them first")
            inputs = statistics.normalise(x, layout.grid).nan_to_num(0.0)
            if static is not None:
                inputs = torch.cat([inputs, static.expand(len(inputs), *static.shape)], dim=1)
            y = statistics.denormalise(model(inputs.to(device)).cpu(), layout.grid)
            y = y.masked_fill(~present, torch.nan).transpose(0, 1).reshape(shape)
            for name, values in zip(names, y.numpy(), strict=True):
                dims = [str(dim) for dim in piece[name].dims]
                writer.write(name, place, layout.unread(values, dims))


def _on_grid(model: Model, layout: Layout, log: Log) -> Model:
    """The model on the data's grid, with a note if that is not the one it was trained on."""
    if layout.grid == model.grid:
        return model
    log(f"note: trained on {model.grid.name}, applied on {layout.grid.name}")
    return model.on(layout.grid)


def _require_alike(data: "xr.Dataset", names: list[str], source: Path) -> None:
    if lacking := [name for name in names if name not in data.data_vars]:
        raise ValueError(
            f"{source} lacks {', '.join(lacking)}; it has {', '.join(map(str, data.data_vars))}"
        )
    if len({data[name].dims for name in names}) > 1:
        dims = ", ".join(f"{name} {data[name].dims}" for name in names)
        raise ValueError(f"{source}: variables have different dimensions: {dims}")


def _static(
    data: "xr.Dataset", layout: Layout, metadata: dict[str, Any], source: Path, log: Log
) -> Tensor | None:
    """In deviations from the mean of the training data, which runs of 0.1.0 did not keep."""
    names = metadata.get("static", [])
    statistics = None
    if "static_mean" in metadata:
        statistics = Statistics(tuple(metadata["static_mean"]), tuple(metadata["static_std"]))
    elif names:
        log("note: this run has no statistics of its static fields; those of the file are taken")
    return read_static(data, layout, names, source, statistics)[0]


def _pieces(variable: "xr.DataArray", layout: Layout) -> Iterator[dict[str, slice]]:
    """Places of a few fields each, which together are all."""
    others = [(str(d), n) for d, n in variable.sizes.items() if d not in layout.dims]
    if not others:
        yield {}
        return
    *outer, (last, count) = others
    for index in itertools.product(*(range(n) for _, n in outer)):
        fixed = {dim: slice(i, i + 1) for (dim, _), i in zip(outer, index, strict=True)}
        for start in range(0, count, BATCH):
            yield {**fixed, last: slice(start, min(start + BATCH, count))}


def _later(data: "xr.Dataset", metadata: dict[str, Any]) -> "xr.Dataset":
    """The same coordinates with time a lead later."""
    seconds = float(duration(metadata["lead"]) / np.timedelta64(1, "s"))
    for name in ("time", "valid_time", "time_counter"):
        if name not in data.coords:
            continue
        time = data[name]
        if time.dtype.kind in "Mm":
            later = time + np.timedelta64(round(seconds * 1e9), "ns")
        elif time.dtype == object:
            later = time.copy(data=time.values + datetime.timedelta(seconds=seconds))
        else:
            continue
        later = later.assign_attrs(time.attrs)
        later.encoding = {k: v for k, v in time.encoding.items() if k in ("units", "calendar")}
        data = data.assign_coords({name: later})
    history = f"predicted by spherule, a lead of {metadata['lead']}"
    return data.assign_attrs(history=history)
