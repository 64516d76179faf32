"""Scores of a forecast in its variables' own units, beside what costs nothing.

Means over the sphere are by area. RMSE is the root of the mean square over samples and area; ACC is
the correlation of anomalies from the climatology over the sphere, averaged over samples; both as
WeatherBench 2 defines them. The climatology is the mean of training targets at each point: of the
same time of the year where there are years of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks
from spherule.distributed import area_shares, power_spectrum, summed
from spherule.files import read_json, write_json
from spherule.models import Linear
from spherule.optional import require
from spherule.runs.linear import best_linear
from spherule.runs.run import Run
from spherule.tasks.fields import FieldTask
from spherule.train import ranks
from spherule.train.task import Log

CLIMATOLOGY = 256
"""Training targets, evenly spread, that the climatology is the mean of."""
BINS = 24
"""Parts of the year that a climatology is kept for; five of them are its window, of 76 days."""
TIE = 1.001
"""How much larger an error must be to lose by it."""
METRICS = ("rmse", "bias", "acc", "spectra")
FORECASTS = ("model", "persistence", "climatology", "linear")
Fitted: TypeAlias = dict[str, tuple[Linear, str]]
"""Linear maps and what they have matrices for, by the data that they were fitted to."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Each metric is (forecasts, variables)."""

    title: str
    lead: str
    step: int
    """Of the checkpoint."""
    samples: int
    variables: tuple[str, ...]
    units: tuple[str, ...]
    rmse: NDArray[np.float64]
    bias: NDArray[np.float64]
    acc: NDArray[np.float64]
    """NaN for the climatology, which has no anomalies."""
    spectra: NDArray[np.float64]
    """Power in the upper half of the degrees, as a part of the truth's; 1 is its detail."""
    linear: str = "per degree"
    """What the linear map has matrices for."""

    @property
    def forecasts(self) -> tuple[str, ...]:
        """As tables call them."""
        return *FORECASTS[:-1], f"linear ({self.linear})"

    def losses(self) -> list[str]:
        """A sentence for each variable that the model predicts worse than something free."""
        return [
            f"{name}: the model loses to {other}, RMSE {self.rmse[0, v]:.4g} against "
            f"{self.rmse[f, v]:.4g} {unit}".rstrip()
            for v, (name, unit) in enumerate(zip(self.variables, self.units, strict=True))
            for f, other in enumerate(FORECASTS)
            if f > 0 and not self.rmse[0, v] <= TIE * self.rmse[f, v]
        ]

    @classmethod
    def load(cls, path: Path) -> "Scores":
        """From JSON."""
        kept = read_json(path, title=str, lead=str, step=int, samples=int, variables=dict)
        variables = kept["variables"]
        metrics = {
            metric: np.array(
                [[_value(v[f][metric]) for v in variables.values()] for f in FORECASTS]
            )
            for metric in METRICS
        }
        units = tuple(str(v["units"]) for v in variables.values())
        return cls(
            str(kept["title"]), str(kept["lead"]), int(kept["step"]), int(kept["samples"]),
            tuple(variables), units, **metrics, linear=str(kept.get("linear", "per degree")),
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """As JSON or NetCDF."""
        require_writable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        about = {
            "title": self.title,
            "lead": self.lead,
            "step": self.step,
            "samples": self.samples,
            "linear": self.linear,
        }
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


def require_writable(path: Path) -> None:
    """That scores can be kept in a file of this name; before they are made, which takes long."""
    if path.suffix not in (".json", ".nc"):
        raise ValueError(f"scores={str(path)!r}: expected a name that ends in .json or .nc")
    if path.suffix == ".nc":
        for module in ("xarray", "h5netcdf"):
            require(module, f"writing {path}")


@torch.no_grad()
@checks.arguments
def score(run: Run, *, samples: int | None = None, batch: int = 4, device: str = "auto") -> Scores:
    """Of a run's model, of the input standing still, of the mean of the training data, and of a
    linear map: with a matrix for each degree, or for each degree and order if there are samples
    enough and it is the better on validation data. Processes under torchrun share each sample.
    """
    where = ranks.choose_device(device)
    with ranks.process_group(where):
        return _scored(run, where, {}, samples, batch)


def _scored(
    run: Run, where: torch.device, fitted: Fitted, samples: int | None = None, batch: int = 4
) -> Scores:
    """`fitted`: the linear maps of other runs, to which this one's is added."""
    serial: Any = run.task()
    if not run.is_forecast:
        raise ValueError(f"{run.directory.path}: {run.name} is no forecast; it has no such scores")
    data = repr((run.config.task, run.config.training.seed, run.metadata))
    if data not in fitted:
        fitted[data] = best_linear(serial)
    linear, kind = fitted[data]
    mesh = ranks.whole_mesh(where)
    linear = ranks.spread(linear.to(where).eval(), mesh)
    task: Any
    task, model = ranks.spread_both(serial, run.model.to(where).eval(), mesh)
    count = task.test_samples if samples is None else checks.integer("samples", samples, low=1)
    count = min(count, task.test_samples)
    climatology = _Climatology(task, where)
    forecasts: dict[str, Callable[[Tensor], Tensor]] = {
        "model": lambda x: task.step(model, x),
        "persistence": lambda x: x.nan_to_num(0.0),
        "linear": lambda x: task.step(linear, x),
    }
    sums = [_Sums(task, where) for _ in FORECASTS]
    for numbers, state, target in _batches(task, count, batch, where):
        usual = climatology.at(numbers)
        for name, total in zip(FORECASTS, sums, strict=True):
            forecast = usual if name == "climatology" else forecasts[name](state)
            total.add(forecast.double(), target.double(), usual.double())
    std = np.array(task.statistics.std)
    found = [total.compute() for total in sums]
    rmse, bias, acc, spectra = (np.stack(values) for values in zip(*found, strict=True))
    acc[FORECASTS.index("climatology")] = np.nan
    return Scores(
        run.config.title, str(run.metadata["lead"]), run.checkpoint.step, count, task.variables,
        task.units, rmse * std, bias * std, acc, spectra, kind,
    )  # fmt: skip


@torch.no_grad()
def scored(runs: Sequence[Run], *, device: str = "auto", log: Log = print) -> list[Scores]:
    """What `spherule evaluate` kept of those runs that are forecasts, or their scores anew. Runs of
    the same data stand beside the same linear map, which is fitted once.
    """
    where = ranks.choose_device(device)
    fitted: Fitted = {}
    found = []
    for run in (run for run in runs if run.is_forecast):
        scores = _kept(run, log)
        if scores is None:
            with ranks.process_group(where):
                scores = _scored(run, where, fitted)
            try:
                scores.save(run.directory.scores)
            except OSError as error:
                log(f"note: the scores are not kept: {error}")
        found.append(scores)
    return found


def _kept(run: Run, log: Log) -> Scores | None:
    """Scores of this checkpoint over all test samples."""
    try:
        kept = Scores.load(run.directory.scores)
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # none, or damaged
        return None
    whole = kept.step == run.checkpoint.step and kept.samples == run.task(log).test_samples
    return kept if whole else None


class _Sums:
    """Over the samples that have values of a variable, for each variable; in deviations."""

    def __init__(self, task: FieldTask, device: torch.device) -> None:
        self.grid, self.lmax = task.grid, task.data_lmax
        area = torch.tensor(area_shares(task.grid))
        self.area = area.reshape(task.grid.shape).to(device)
        (
            self.samples, self.squares, self.errors, self.correlations, self.power, self.true_power
        ) = torch.zeros(6, task.out_channels, dtype=torch.float64, device=device)  # fmt: skip

    def add(self, forecast: Tensor, target: Tensor, usual: Tensor) -> None:
        weights = self.area * target.isfinite()
        known = summed(weights.flatten(2).sum(-1), self.grid)
        truth = target.nan_to_num(0.0)

        def mean(u: Tensor) -> Tensor:
            return summed((u * weights).flatten(2).sum(-1), self.grid) / known

        error, a, b = forecast - truth, forecast - usual, truth - usual
        for total, value in (
            (self.samples, torch.ones_like(known)),
            (self.squares, mean(error.square())),
            (self.errors, mean(error)),
            (self.correlations, mean(a * b) / (mean(a * a) * mean(b * b)).sqrt()),
        ):
            total += torch.where(known > 0, value, 0.0).sum(0)
        seen = torch.where(target.isfinite(), forecast, 0.0)
        for total, u in ((self.power, seen), (self.true_power, truth)):
            spectrum = power_spectrum(u, self.grid, self.lmax)
            total += spectrum[..., self.lmax // 2 + 1 :].sum((0, -1))

    def compute(self) -> tuple[NDArray[np.float64], ...]:
        n = self.samples
        values = (
            (self.squares / n).sqrt(),
            self.errors / n,
            self.correlations / n,
            self.power / self.true_power,
        )
        return tuple(value.cpu().numpy() for value in values)


class _Climatology:
    """The mean of training targets at each point, in deviations: of those within a month of the
    same day of the year where there are years of them, else of all; 0 where all are missing.
    """

    def __init__(self, task: FieldTask, device: torch.device) -> None:
        self.task = task
        count = min(CLIMATOLOGY, task.samples)
        stride = 1 if task.endless else max(task.samples // count, 1)
        sums: dict[int | None, Tensor] = {}
        counts: dict[int | None, Tensor] = {}
        for number in range(0, count * stride, stride):
            target = task.training[number][1].double()
            at = self._bin("training", number)
            counts[at] = counts.get(at, torch.zeros(())) + target.isfinite()
            sums[at] = sums.get(at, torch.zeros(())) + target.nan_to_num(0.0)
        self.whole = _mean(list(sums.values()), list(counts.values())).to(device)
        self.means = {
            at: _mean([sums[k] for k in near], [counts[k] for k in near]).to(device)
            for at in (range(BINS) if None not in sums else ())
            if (near := [k for d in (-2, -1, 0, 1, 2) if (k := (at + d) % BINS) in sums])
        }

    def at(self, samples: Sequence[int]) -> Tensor:
        """For the targets of test samples."""
        bins = [self._bin("test", sample) for sample in samples]
        return torch.stack(
            [self.whole if b is None else self.means.get(b, self.whole) for b in bins]
        )

    def _bin(self, part: Literal["training", "test"], sample: int) -> int | None:
        season = self.task.season(part, sample)
        return None if season is None else int(season * BINS) % BINS


def _mean(sums: list[Tensor], counts: list[Tensor]) -> Tensor:
    total, present = torch.stack(sums).sum(0), torch.stack(counts).sum(0)
    return (total / present.clamp(min=1)).float()


def _batches(
    task: FieldTask, count: int, batch: int, device: torch.device
) -> Iterator[tuple[range, Tensor, Tensor]]:
    for start in range(0, count, batch):
        numbers = range(start, min(start + batch, count))
        chosen = [task.test[i][:2] for i in numbers]
        state, target = (torch.stack(fields).to(device) for fields in zip(*chosen, strict=True))
        yield numbers, state, target


def _value(number: float | None) -> float:
    return float("nan") if number is None else float(number)


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return None if np.isnan(value) else float(value)
