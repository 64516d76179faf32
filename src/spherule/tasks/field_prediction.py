"""A trained forecast on a user's file: fields in, fields out, in the user's own coordinates.

The file is read, predicted and written a few fields at a time: it may be larger than the memory.
"""

import itertools
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from spherule import checks
from spherule.data import Statistics
from spherule.data.field_files import Source, choose, named, open_fields
from spherule.data.field_writer import FieldWriter
from spherule.data.forecast import read_static
from spherule.data.layout import Layout
from spherule.data.times import NAMES, Lead, shifted
from spherule.distributed import Place, Shards, gathered, scattered, summed
from spherule.models import Model
from spherule.train import ranks
from spherule.train.task import Log

if TYPE_CHECKING:
    import xarray as xr

BATCH = 4
LEAD = "lead"
"""The dimension of several leads."""


@torch.no_grad()
def predict_fields(
    model: Model,
    metadata: dict[str, Any],
    source: Source,
    target: Path,
    *,
    steps: int = 1,
    allow_missing: bool,
    device: torch.device,
    log: Log,
) -> None:
    """Read the run's variables, and write what the model makes of them a lead later.

    With several `steps` the model follows its own predictions. Then time is that of the input, and
    a new first dimension is the lead.
    """
    name = named(source)
    if "variables" not in metadata:
        raise ValueError(f"{name}: this run reads panorama images, not fields")
    checks.integer("steps", steps, low=1)
    names: list[str] = metadata["variables"]
    whole = open_fields(source)
    data = choose(whole, names, name)
    if len({data[n].dims for n in names}) > 1:
        each = ", ".join(f"{n} {data[n].dims}" for n in names)
        raise ValueError(f"{name}: variables have different dimensions: {each}")
    wanted = model.grid if metadata.get("resampled") else None
    layout = Layout.of(whole, repair=metadata.get("repair", False), target=wanted)
    if layout.match.note:
        log(f"note: {layout.match.note}")
    model = _on_grid(model, layout, log).to(device).eval()
    model = ranks.spread(model, ranks.whole_mesh(device))
    mine = layout.part(model.grid.rings) if isinstance(model.grid, Shards) else layout
    statistics = Statistics(tuple(metadata["mean"]), tuple(metadata["std"]))
    static = _static(whole, layout, metadata, name, log)
    static = None if static is None else scattered(static, model.grid)
    lead = Lead.parse(metadata["lead"])
    like = shifted(data, lead) if steps == 1 else _with_leads(data, lead, steps)
    like.attrs["history"] = f"predicted by spherule, a lead of {lead}"
    with FieldWriter(target, like, layout.dims) if ranks.is_first() else nullcontext() as writer:
        for place in _pieces(data[names[0]], layout):
            piece = data[names].isel(place)
            dims = [str(dim) for dim in piece[names[0]].dims]
            x = torch.from_numpy(np.stack([mine.read(piece[n]) for n in names]))
            others = x.shape[: x.ndim - len(mine.grid.shape)]
            x = x.reshape(len(names), -1, *mine.grid.shape).transpose(0, 1)
            present = x.isfinite()
            if not allow_missing and not present.all():
                counts = {n: int((~present[:, i]).sum()) for i, n in enumerate(names)}
                raise ValueError(f"{name}: missing values: {counts} at {place}; fill them first")
            state = statistics.normalize(x, mine.grid).nan_to_num(0.0)
            mask = {"mask": known_points(present.to(device), model.grid)} if allow_missing else {}
            for step in range(steps):
                state = model(_with_static(state, static).to(device), **mask).cpu()
                y = statistics.denormalize(state, mine.grid).masked_fill(~present, torch.nan)
                y = gathered(y.to(device), model.grid).cpu().transpose(0, 1)
                state = state.masked_fill(~present, 0.0)
                if writer is None:
                    continue
                y = y.reshape(*others, *layout.grid.shape)
                where = place if steps == 1 else {LEAD: step, **place}
                for n, values in zip(names, y.numpy(), strict=True):
                    writer.write(n, where, layout.unread(values, dims))


def known_points(present: Tensor, place: Place) -> Tensor:
    """Where some variable of a state is known; everywhere where none is anywhere, as norms and
    averages over no points mean nothing: a model is then shown the mean.
    """
    known = present.any(dim=1)
    counts = summed(known.flatten(1).sum(dim=1, dtype=torch.float32), place)
    return known | (counts == 0).view(-1, *(1 for _ in known.shape[1:]))


def _with_static(state: Tensor, static: Tensor | None) -> Tensor:
    if static is None:
        return state
    return torch.cat([state, static.expand(len(state), *static.shape)], dim=1)


def _on_grid(model: Model, layout: Layout, log: Log) -> Model:
    """The model on the data's grid, with a note if that is not the one it was trained on."""
    if layout.grid == model.grid:
        return model
    log(f"note: trained on {model.grid.name}, applied on {layout.grid.name}")
    return model.on(layout.grid)


def _static(
    data: "xr.Dataset", layout: Layout, metadata: dict[str, Any], source: str, log: Log
) -> Tensor | None:
    """In deviations from the mean of the training data, which runs of 0.1.0 did not keep."""
    names = metadata.get("static", [])
    statistics = None
    if "static_mean" in metadata:
        statistics = Statistics(tuple(metadata["static_mean"]), tuple(metadata["static_std"]))
    elif names:
        log("note: this run has no statistics of its static fields; those of the file are taken")
    return read_static(data, layout, names, source, statistics)[0]


def _pieces(variable: "xr.DataArray", layout: Layout) -> Iterator[dict[str, slice | int]]:
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


def _with_leads(data: "xr.Dataset", lead: Lead, steps: int) -> "xr.Dataset":
    """The variables along a new dimension of leads; time says when they start, and `valid_time`
    beside it what they are of.
    """
    if LEAD in data.variables or LEAD in data.dims:
        raise ValueError(f"the file has a {LEAD!r} of its own: predict one step, or rename it")
    count = np.arange(1, steps + 1)
    attributes = {"standard_name": "forecast_period"}
    if lead.unit == "s":
        values = count * np.timedelta64(round(lead.number * 1e9), "ns")
    else:
        values, attributes["units"] = count * round(lead.number), "months"
    zero = np.zeros((), np.float32)  # shapes without memory: the writer asks for no values
    fields = {
        name: ((LEAD, *v.dims), np.broadcast_to(zero, (steps, *v.shape)), v.attrs)
        for name, v in data.data_vars.items()
    }
    like = data.drop_vars(list(data.data_vars)).assign(fields)
    like = like.assign_coords({LEAD: (LEAD, values, attributes)})
    starts = [name for name in NAMES if name in like.coords]
    if "valid_time" in starts[1:] and "valid_time" not in like.dims:
        starts.remove("valid_time")
        each = [shifted(data, Lead(n * lead.number, lead.unit))["valid_time"] for n in count]
        valid = (LEAD, *each[0].dims), np.stack([time.values for time in each]), each[0].attrs
        like = like.assign_coords(valid_time=valid)
    for name in starts:
        encoding = like[name].encoding
        like[name].attrs["standard_name"] = "forecast_reference_time"
        like[name].encoding = encoding
    return like
