"""A trained model on new data: fields in, fields out, with the user's own coordinates."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from spherule.data import Statistics
from spherule.data.forecast import Layout, duration, open_fields, read_static
from spherule.models import Model
from spherule.optional import require
from spherule.train.problem import Say
from spherule.train.run import Run

if TYPE_CHECKING:
    import xarray as xr

BATCH = 4


def predict_fields(run: Run, source: Path, target: Path, *, say: Say = print) -> None:
    """Read the run's variables from a Zarr store or NetCDF file, and write what the model makes of
    them, a lead later, in the same layout.
    """
    written = {".zarr": "zarr", ".nc": "h5netcdf"}
    if target.suffix not in written:
        raise ValueError(f"output={str(target)!r}: expected a name that ends in .zarr or .nc")
    require(written[target.suffix], f"writing {target}")
    if target.exists():
        raise FileExistsError(f"{target} exists: remove it, or choose another name")
    data = open_fields(source)
    result = forecast(run, data, source, say=say)
    partial = target.with_name(f"{target.stem}.partial{target.suffix}")
    target.parent.mkdir(parents=True, exist_ok=True)
    if partial.is_dir():
        shutil.rmtree(partial)
    if target.suffix == ".zarr":
        result.to_zarr(partial, mode="w", consolidated=False, zarr_format=3)
    else:
        result.to_netcdf(partial, engine="h5netcdf")
    partial.rename(target)


@torch.no_grad()
def forecast(run: Run, data: "xr.Dataset", source: Path, *, say: Say = print) -> "xr.Dataset":
    """A dataset like `data`, with the run's variables a lead later."""
    layout = Layout.of(data)
    model = model_on(run.model, layout, say)
    about = run.problem
    names = about["variables"]
    if lacking := [name for name in names if name not in data.data_vars]:
        raise ValueError(
            f"{source} lacks {', '.join(lacking)}; it has {', '.join(map(str, data.data_vars))}"
        )
    fields = [layout.read(data[name]) for name in names]
    if len({f.shape for f in fields}) > 1:
        shapes = ", ".join(f"{n} {data[n].dims}" for n in names)
        raise ValueError(f"{source}: variables have different dimensions: {shapes}")
    space = len(layout.grid.shape)
    x = torch.from_numpy(np.stack(fields, axis=-space - 1))  # (*others, variables, *shape)
    others = x.shape[: -space - 1]
    x = x.reshape(-1, *x.shape[-space - 1 :])
    there = x.isfinite()
    if not there.all() and getattr(run.config.task, "missing", "refuse") == "refuse":
        counts = {n: int((~there[:, i]).sum()) for i, n in enumerate(names)}
        raise ValueError(f"{source}: missing values: {counts}; fill them first")
    statistics = Statistics(tuple(about["mean"]), tuple(about["std"]))
    static = read_static(data, layout, about.get("static", []), source)
    inputs = statistics.normalise(x, layout.grid).nan_to_num(0.0)
    outputs = []
    for batch in inputs.split(BATCH):
        if static is not None:
            batch = torch.cat([batch, static.expand(len(batch), *static.shape)], dim=1)
        outputs.append(model(batch))
    y = statistics.denormalise(torch.cat(outputs), layout.grid)
    values = y.masked_fill(~there, torch.nan).reshape(*others, *y.shape[1:]).numpy()
    result = data[names].copy()
    for i, name in enumerate(names):
        result[name] = layout.write(values.take(i, axis=-space - 1), data[name])
    time = result.get("time")
    if time is not None and time.dtype.kind in "Mm":
        result = result.assign_coords(time=_later(time, about["lead"]))
    # NetCDF has no null.
    result.attrs = {name: value for name, value in data.attrs.items() if value is not None}
    result.attrs["history"] = f"predicted by {run.name}, a lead of {about['lead']}"
    return result


def model_on(model: Model, layout: Layout, say: Say) -> Model:
    """The model on the data's grid, with a note if that is not the one it was trained on."""
    model = model.eval()
    if layout.grid.name == model.grid.name:
        return model
    say(f"note: trained on {model.grid.name}, applied on {layout.grid.name}")
    return model.on(layout.grid).eval()


def _later(time: Any, lead: str) -> Any:
    later = (time + duration(lead)).assign_attrs(time.attrs)
    later.encoding = {k: v for k, v in time.encoding.items() if k in ("units", "calendar")}
    return later
