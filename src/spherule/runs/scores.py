"""Scores of a forecast in its variables' own units, beside what costs nothing.

Means over the sphere are by area. RMSE is the root of the mean square over samples and area; ACC is
the correlation of anomalies from the climatology over the sphere, averaged over samples; both as
WeatherBench 2 defines them. The climatology is the mean of training targets at each point.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks, ops
from spherule.models import Linear, LinearConfig
from spherule.optional import require
from spherule.runs.run import Run
from spherule.tasks.fields import FieldTask
from spherule.train.files import write_json
from spherule.train.ranks import choose_device

CLIMATOLOGY = 256
"""Training targets, evenly spread, that the climatology is the mean of."""
METRICS = ("rmse", "bias", "acc", "spectra")
FORECASTS = ("model", "persistence", "climatology", "linear")


@dataclass(frozen=True, eq=False)
class Scores:
    """Each metric is (forecasts, variables)."""

    title: str
    lead: str
    samples: int
    variables: tuple[str, ...]
    units: tuple[str, ...]
    rmse: NDArray[np.float64]
    bias: NDArray[np.float64]
    acc: NDArray[np.float64]
    """NaN for the climatology, which has no anomalies."""
    spectra: NDArray[np.float64]
    """Power in the upper half of the degrees, as a part of the truth's; 1 is its detail."""

    def losses(self) -> list[str]:
        """A sentence for each variable that the model predicts worse than something free."""
        return [
            f"{name}: the model loses to {other}, RMSE {self.rmse[0, v]:.4g} against "
            f"{self.rmse[f, v]:.4g} {unit}".rstrip()
            for v, (name, unit) in enumerate(zip(self.variables, self.units, strict=True))
            for f, other in enumerate(FORECASTS)
            if f > 0 and not self.rmse[0, v] <= self.rmse[f, v]
        ]

    def save(self, path: Path) -> None:
        """As JSON or NetCDF."""
        if path.suffix not in (".json", ".nc"):
            raise ValueError(f"scores={str(path)!r}: expected a name that ends in .json or .nc")
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {"title": self.title, "lead": self.lead, "samples": self.samples}
        if path.suffix == ".json":
            variables = {
                name: {
                    "units": unit,
                    **{
                        f: {m: _number(getattr(self, m)[i, v]) for m in METRICS}
                        for i, f in enumerate(FORECASTS)
                    },
                }
                for v, (name, unit) in enumerate(zip(self.variables, self.units, strict=True))
            }
            write_json(path, {**about, "variables": variables})
            return
        xr = require("xarray", f"writing {path}")
        require("h5netcdf", f"writing {path}")
        data = xr.Dataset(
            {m: (("forecast", "variable"), getattr(self, m)) for m in METRICS},
            coords={
                "forecast": list(FORECASTS),
                "variable": list(self.variables),
                "units": ("variable", list(self.units)),
            },
            attrs=about,
        )
        data.to_netcdf(path, engine="h5netcdf")


@torch.no_grad()
@checks.arguments
def score(run: Run, *, samples: int | None = None, batch: int = 4, device: str = "auto") -> Scores:
    """Of a run's model, of the input standing still, of the mean of the training data, and of the
    best linear map.
    """
    task: Any = run.task()
    if not isinstance(task, FieldTask):
        raise ValueError(f"{run.directory.path}: {run.name} is no forecast; it has no such scores")
    where = choose_device(device)
    model = run.model.to(where).eval()
    count = task.test_samples if samples is None else checks.integer("samples", samples, low=1)
    count = min(count, task.test_samples)
    climatology = _climatology(task).to(where)
    linear = Linear(LinearConfig(), task.grid, task.in_channels, task.out_channels)
    linear.fit(task.fitting_batches())
    linear = linear.to(where).eval()
    forecasts: dict[str, Callable[[Tensor], Tensor]] = {
        "model": lambda x: task.step(model, x),
        "persistence": lambda x: x.nan_to_num(0.0),
        "climatology": lambda x: climatology.expand_as(x),
        "linear": lambda x: task.step(linear, x),
    }
    sums = [_Sums(task, climatology) for _ in FORECASTS]
    for state, target in _batches(task, count, batch, where):
        for name, total in zip(FORECASTS, sums, strict=True):
            total.add(forecasts[name](state).double(), target.double())
    std = np.array(task.statistics.std)
    found = [total.compute() for total in sums]
    rmse, bias, acc, spectra = (np.stack(values) for values in zip(*found, strict=True))
    acc[FORECASTS.index("climatology")] = np.nan
    return Scores(
        run.config.title, str(run.metadata["lead"]), count, task.variables, task.units,
        rmse * std, bias * std, acc, spectra,
    )  # fmt: skip


class _Sums:
    """Over samples, for each variable; in deviations."""

    def __init__(self, task: FieldTask, climatology: Tensor) -> None:
        self.grid, self.climatology = task.grid, climatology.double()
        area = torch.tensor(task.grid.weights / task.grid.weights.sum())
        self.area = area.reshape(task.grid.shape).to(climatology.device)
        self.samples = 0
        self.squares, self.errors, self.correlations, self.power, self.true_power = (
            torch.zeros(task.out_channels, dtype=torch.float64, device=climatology.device)
            for _ in range(5)
        )

    def add(self, forecast: Tensor, target: Tensor) -> None:
        weights = self.area * target.isfinite()
        weights = weights / weights.sum(tuple(range(2, weights.ndim)), keepdim=True)
        truth = target.nan_to_num(0.0)

        def mean(u: Tensor) -> Tensor:
            return (u * weights).flatten(2).sum(-1)

        error = forecast - truth
        self.samples += len(target)
        self.squares += mean(error.square()).sum(0)
        self.errors += mean(error).sum(0)
        a, b = forecast - self.climatology, truth - self.climatology
        self.correlations += (mean(a * b) / (mean(a * a) * mean(b * b)).sqrt()).sum(0)
        half = self.grid.lmax // 2
        for total, u in ((self.power, forecast), (self.true_power, truth)):
            spectrum = ops.power_spectrum(ops.sht(u, self.grid, self.grid.lmax))
            total += spectrum[..., half + 1 :].sum((0, -1))

    def compute(self) -> tuple[NDArray[np.float64], ...]:
        n = self.samples
        values = (
            (self.squares / n).sqrt(),
            self.errors / n,
            self.correlations / n,
            self.power / self.true_power,
        )
        return tuple(value.cpu().numpy() for value in values)


def _climatology(task: FieldTask) -> Tensor:
    """The mean of training targets at each point, in deviations; 0 where all are missing."""
    count = min(CLIMATOLOGY, task.samples)
    stride = 1 if task.endless else max(task.samples // count, 1)
    total, present = torch.zeros(()), torch.zeros(())
    for number in range(0, count * stride, stride):
        target = task.training[number][1].double()
        present = present + target.isfinite()
        total = total + target.nan_to_num(0.0)
    return (total / present.clamp(min=1)).float()


def _batches(
    task: FieldTask, count: int, batch: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, count, batch):
        chosen = [task.test[i][:2] for i in range(start, min(start + batch, count))]
        state, target = (torch.stack(fields).to(device) for fields in zip(*chosen, strict=True))
        yield state, target


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else float(value)
