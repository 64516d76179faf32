"""What forecasts of fields share: from the state at one time to that a lead later."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spherule import checks, ops
from spherule.data import Statistics
from spherule.data.field_files import Source
from spherule.data.times import span
from spherule.distributed import Shards, scattered, whole
from spherule.grids import Grid
from spherule.models import Model
from spherule.objectives import l1, l2, squared_l2
from spherule.tasks.field_prediction import predict_fields
from spherule.train.batches import first_samples, to_device
from spherule.train.figures import (
    ByLatitude,
    Folded,
    Maps,
    Panel,
    RingCurve,
    Section,
    Spectra,
    SpectralCurves,
)
from spherule.train.scene import Frames, Globe, Variable, forecast_globe
from spherule.train.task import Example, Log, Task, TaskConfig, Trained

FITTED = 64
"""Training samples that linear maps are fitted to."""
SHOWN = 8
"""Test samples that errors by latitude and spectra are averaged over."""


@dataclass(frozen=True, kw_only=True)
class FieldConfig(TaskConfig):
    """A forecast, and what training adds to its samples so that it can follow itself."""

    leads: int = 1
    """Autoregressive training: how many leads each sample is followed."""
    unroll: tuple[float, ...] = ()
    """Instead of --leads, weights of following 1, 2, 4, 8 ... leads: one is drawn for each step."""
    unroll_from: float = 0.0
    """Share of the steps before that, which follow a single lead."""
    unroll_gradient: Literal["all", "last"] = "all"
    """Whether gradients go back through all leads that a sample is followed, or the last only."""
    noise: float = 0.0
    """Deviations of random fields that are added to training inputs."""
    noise_lmax: int | None = None
    """Their highest degree; by default all that the data have."""
    noise_slope: float = 0.0
    """Their power falls with the degree l as (l + 1)^-slope; 0 is white."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("leads", self.leads, low=1)
        checks.number("unroll_from", self.unroll_from, low=0, high=1)
        checks.number("noise", self.noise, low=0)
        if self.noise_lmax is not None:
            checks.integer("noise_lmax", self.noise_lmax, low=0)
        for i, weight in enumerate(self.unroll):
            checks.number(f"unroll[{i}]", weight, low=0)
        if self.unroll and (self.leads != 1 or not sum(self.unroll) > 0):
            raise ValueError(
                f"unroll={self.unroll} with leads={self.leads}: expected weights, one of them "
                "positive, and no --leads beside them"
            )

    @property
    def most_leads(self) -> int:
        """That a training sample is followed."""
        return 2 ** (len(self.unroll) - 1) if self.unroll else self.leads

    def predict(
        self,
        model: Model,
        metadata: dict[str, Any],
        source: Source,
        target: Path,
        *,
        device: torch.device,
        steps: int = 1,
        log: Log = print,
    ) -> None:
        """From a file of fields to one with the run's variables a lead later, or each of so many
        leads.
        """
        predict_fields(
            model,
            metadata,
            source,
            target,
            steps=steps,
            allow_missing=self.allow_missing,
            device=device,
            log=log,
        )

    @property
    def allow_missing(self) -> bool:
        """Whether values may be missing."""
        return False


class FieldTask(Task):
    """A batch is (input, target, ...), normalised, further targets each a lead later."""

    columns: ClassVar[dict[str, str]] = {"loss": "loss ↓", "l1": "L₁ error ↓", "l2": "L₂ error ↓"}

    def __init__(
        self,
        grid: Grid,
        variables: tuple[str, ...],
        units: tuple[str, ...],
        statistics: Statistics,
        config: FieldConfig,
        *,
        static: Tensor | None = None,
    ) -> None:
        self.grid, self.variables, self.units, self.statistics = grid, variables, units, statistics
        self.static, self.allow_missing = static, config.allow_missing
        self._training, self._leads = config, config.leads
        self.out_channels = len(variables)
        self.in_channels = self.out_channels + (0 if static is None else len(static))

    def on(self, shards: Shards) -> "FieldTask":
        part: FieldTask = self._moved(shards)
        part.static = None if self.static is None else shards.scatter(self.static)
        return part

    def step(self, model: nn.Module, state: Tensor) -> Tensor:
        """The model's state a lead later, which is whole; points where nothing is known of the
        input are hidden from the model.
        """
        known = {"mask": state.isfinite().any(dim=1)} if self.allow_missing else {}
        prediction: Tensor = model(self.inputs(state), **known)
        return prediction

    def following(self, prediction: Tensor, state: Tensor) -> Tensor:
        """The input of the next lead: what is missing stays so."""
        if not self.allow_missing:
            return prediction
        return prediction.masked_fill(state.isnan(), torch.nan)

    def inputs(self, state: Tensor) -> Tensor:
        """What a model sees: what is missing counts as the mean, static fields follow."""
        if self.allow_missing:
            state = state.nan_to_num(0.0)
        if self.static is not None:
            fixed = self.static.to(state).expand(state.shape[0], *self.static.shape)
            state = torch.cat([state, fixed], dim=1)
        return state

    def fitting_batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """One after the other: as many as there are, or `FITTED`, far enough apart to differ."""
        count = FITTED if self.endless else min(FITTED, self.samples)
        for number in range(0, count * self.fitting_stride, self.fitting_stride):
            state, target, *_ = self.training[number]
            yield self.inputs(state[None]), target[None].nan_to_num(0.0)

    @property
    def fitting_stride(self) -> int:
        """From one sample that models are fitted to, to the next."""
        return 1 if self.endless else max(self.samples // FITTED, 1)

    def begin_step(self, seed: int, step: int, steps: int) -> None:
        """Draw how many leads this step follows its samples."""
        config = self._training
        if config.unroll:
            weights = np.array(config.unroll if step >= config.unroll_from * steps else (1.0,))
            draw = np.random.default_rng((seed, step, 3))
            self._leads = 2 ** int(draw.choice(weights.size, p=weights / weights.sum()))

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Mean over leads of the squared error, each prediction made from the one before."""
        state, *targets = batch
        state = state + self._noise(state)
        losses: list[Tensor] = []
        for target in targets[: self._leads]:
            if losses and self._training.unroll_gradient == "last":
                state = state.detach()
            prediction = self.step(model, state)
            losses.append(self._error(squared_l2, prediction, target))
            state = self.following(prediction, state)
        return torch.stack(losses).mean(0)

    def _noise(self, state: Tensor) -> Tensor | float:
        config = self._training
        if not config.noise:
            return 0.0
        lmax = self.data_lmax if config.noise_lmax is None else config.noise_lmax
        degrees = torch.arange(lmax + 1, dtype=torch.float64)
        power = (degrees + 1) ** -config.noise_slope
        variance = (power * (2 * degrees + 1)).sum() / (4 * math.pi)
        spectrum = power * config.noise**2 / variance
        noise = ops.random_field(spectrum, whole(self.grid), state.shape[:2]).to(state)
        return scattered(noise, self.grid)

    @property
    def data_lmax(self) -> int:
        """The highest degree that the data have."""
        return whole(self.grid).lmax

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        """Means over the leads that the batch has. Test samples have one; validation has as many as
        training follows, so that the best model is the best at that.
        """
        state, *targets = batch
        errors: dict[str, list[Tensor]] = {"loss": [], "l1": [], "l2": []}
        for target in targets:
            prediction = self.step(model, state)
            for values, error in zip(errors.values(), (squared_l2, l1, l2), strict=True):
                values.append(self._error(error, prediction, target))
            state = self.following(prediction, state)
        return {name: torch.stack(values).mean(0) for name, values in errors.items()}

    def date(self, sample: int) -> str:
        """Of a test sample's target, where there are dates."""
        return ""

    def season(self, part: Literal["training", "test"], sample: int) -> float | None:
        """How much of the year has passed at a sample's target, where the training data have whole
        years to tell what is usual then.
        """
        return None

    def metadata(self) -> dict[str, Any]:
        return {
            "grid": self.grid.name,
            "variables": list(self.variables),
            "units": list(self.units),
            "mean": list(self.statistics.mean),
            "std": list(self.statistics.std),
            "lead": f"{self.lead:.12g}s",
        }

    def example(self, model: Model) -> Example:
        state = first_samples(self.test, 1)[0]
        fields = self.statistics.denormalise(state[0], self.grid).numpy()
        variables = [
            Variable(name, self.grid, {"input": field}, unit)
            for name, unit, field in zip(self.variables, self.units, fields, strict=True)
        ]
        return Example(lambda: self.step(model, state), variables)

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        """A globe, maps, error by latitude, spectra."""
        for other in models[1:]:
            if other.task.variables != self.variables:
                raise ValueError(
                    f"{other.title} forecasts {', '.join(other.task.variables)}, {models[0].title} "
                    f"{', '.join(self.variables)}: they can't stand on one page"
                )
        shown = [_Shown.of(trained) for trained in models]
        names = [name.replace("_", " ") for name in self.variables]
        ahead = span(self.lead)
        return [
            Section(
                "Globe",
                f"Test samples, {ahead} ahead, to turn: predictions, truth and errors in the "
                "variables' own units, sample by sample.",
                [_globe(group) for group in _groups(shown)],
            ),
            Section(
                "Maps",
                f"One test sample, {ahead} ahead: the input, the truth, and for each model its "
                "prediction with the error below it. All errors share one scale.",
                _all_maps(shown),
            ),
            Section(
                "Error by latitude",
                f"Root mean square along each ring, over {len(shown[0].truth)} test samples, in "
                "deviations of each variable. A planar model takes the poles for the edges of an "
                "image.",
                [
                    ByLatitude(
                        names,
                        [RingCurve(s.title, s.task.grid, s.by_ring()) for s in shown],
                        "error (deviations)",
                    )
                ],
            ),
            Section(
                "Spectra",
                "Power at each degree of the spherical harmonics. A prediction that follows the "
                "truth keeps its detail; where the error meets the truth, that scale is not "
                "predicted.",
                [Spectra(names, [s.spectra() for s in shown])],
            ),
        ]

    def _error(self, error: Any, prediction: Tensor, target: Tensor) -> Tensor:
        prediction = prediction.float()
        if not self.allow_missing:
            return error(prediction, target, self.grid)
        present = target.isfinite().all(dim=1)
        return error(prediction, target.nan_to_num(0.0), self.grid, mask=present)


@dataclass(frozen=True, eq=False)
class _Shown:
    """Some test samples in deviations, (samples, variables, *shape), and what a model makes of
    them.
    """

    title: str
    task: FieldTask
    inputs: Tensor
    truth: Tensor
    prediction: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, trained: Trained) -> "_Shown":
        task = trained.task
        batch = first_samples(task.test, min(SHOWN, task.test_samples))
        inputs, truth, *_ = to_device(batch, trained.device)
        prediction = task.step(trained.model.eval(), inputs)
        prediction = prediction.masked_fill(truth.isnan(), torch.nan)
        return cls(trained.title, task, *(u.cpu() for u in (inputs, truth, prediction)))

    @property
    def error(self) -> Tensor:
        return self.prediction - self.truth

    def by_ring(self) -> NDArray[np.float64]:
        """Root mean square over samples and each ring: (variables, rings)."""
        error = self.error.double().flatten(2)
        grid = self.task.grid
        sums, counts = (
            np.add.reduceat(u.sum(0).numpy(), grid.ringstart, axis=1)
            for u in (error.square().nan_to_num(0.0), error.isfinite().double())
        )
        return np.sqrt(np.divide(sums, counts, where=counts > 0, out=np.full_like(sums, np.nan)))

    def spectra(self) -> SpectralCurves:
        grid = self.task.grid
        power = [
            ops.power_spectrum(ops.sht(u.double().nan_to_num(0.0), grid, grid.lmax)).mean(0).numpy()
            for u in (self.truth, self.prediction, self.error)
        ]
        return SpectralCurves(self.title, *power)

    def physical(self, u: Tensor, variable: int) -> NDArray[Any]:
        """The first sample of a variable in its own units."""
        return self.task.statistics.denormalise(u[0], self.task.grid)[variable].numpy()


def _groups(shown: Sequence[_Shown]) -> list[list[_Shown]]:
    """Models on the same samples, which share a figure."""
    groups: list[list[_Shown]] = []
    for one in shown:
        for group in groups:
            if group[0].task.test_data() == one.task.test_data():
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _globe(group: Sequence[_Shown]) -> Globe:
    task = group[0].task
    fields = {"truth": group[0].truth} | {s.title: s.prediction for s in group}
    physical = {
        source: task.statistics.denormalise(u, task.grid).numpy() for source, u in fields.items()
    }
    count = len(group[0].truth)
    samples = Frames(tuple(task.date(i) or f"sample {i + 1}" for i in range(count)), "sample")
    return forecast_globe(
        f"{span(task.lead)} ahead", task.grid, task.variables, task.units, samples, physical,
        earth=task.earth,
    )  # fmt: skip


def _all_maps(shown: Sequence[_Shown]) -> list[Maps | Folded]:
    """The variable that sets the models apart most, then the others."""
    groups = _groups(shown)
    errors = torch.stack([s.error.square().flatten(2).nanmean((0, 2)) for s in shown])
    order = (errors.amin(0) / errors.amax(0)).argsort(stable=True).tolist()
    first, *others = [[_maps(group, v) for group in groups] for v in order]
    folded = [Folded("The other variables", [m for maps in others for m in maps])]
    return [*first, *(folded if others else [])]


def _maps(group: Sequence[_Shown], variable: int) -> Maps:
    task = group[0].task
    name, unit = task.variables[variable], task.units[variable]
    inputs, truth = (group[0].physical(u, variable) for u in (group[0].inputs, group[0].truth))
    predictions = [s.physical(s.prediction, variable) for s in group]
    top = [Panel("input", inputs)]
    top += [Panel(s.title, p) for s, p in zip(group, predictions, strict=True)]
    bottom = [Panel("truth", truth)]
    bottom += [
        Panel(f"error of {s.title}", p - truth, "error")
        for s, p in zip(group, predictions, strict=True)
    ]
    date = task.date(0)
    return Maps(
        f"{name}, {date + ', ' if date else ''}{span(task.lead)} ahead",
        f"{name} ({unit})" if unit else name,
        task.grid,
        [top, bottom],
        earth=task.earth,
    )
