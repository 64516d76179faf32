"""What forecasts of fields share: from the state at one time to that a lead later."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from spherule import checks, ops
from spherule.data import Statistics
from spherule.data.field_files import Source
from spherule.distributed import Shards, scattered, summed, whole
from spherule.grids import Grid
from spherule.models import Model
from spherule.objectives import l1, l2, squared_l2
from spherule.tasks.field_prediction import known_points, predict_fields
from spherule.tasks.field_sections import field_sections
from spherule.train.batches import first_samples
from spherule.train.figures import Section
from spherule.train.scene import Variable
from spherule.train.task import Example, Log, Task, TaskConfig, Trained

FITTED = 2**20
"""Values of inputs that a linear map is fitted to at a time."""


@dataclass(frozen=True, kw_only=True)
class FieldConfig(TaskConfig):
    """A forecast, and what training adds to its samples so that it can follow itself."""

    leads: int = 1
    """Autoregressive training: how many leads each sample is followed."""
    unroll: tuple[float, ...] = ()
    """Instead of --leads, weights of following 1, 2, 4, 8 ... leads: one is drawn for each step."""
    unroll_from: float = 0.0
    """Share of the training during which every sample is followed for a single lead."""
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
        steps: int = 1,
        device: torch.device,
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
    """A batch is (input, target, ...), normalized, further targets each a lead later."""

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
        known = {"mask": known_points(state.isfinite(), self.grid)} if self.allow_missing else {}
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

    def fitting_batches(self, count: int) -> Iterator[tuple[Tensor, Tensor]]:
        """All samples, or `count` of them, far enough apart to differ."""
        stride = self.fitting_stride(count)
        count = count if self.endless else min(count, self.samples)
        numbers = range(0, count * stride, stride)
        # Products over samples take hardly longer for many small ones than for one.
        together = max(FITTED // (self.in_channels * self.grid.size), 1)
        for first in range(0, count, together):
            samples = [self.training[number][:2] for number in numbers[first : first + together]]
            state, target = map(torch.stack, zip(*samples, strict=True))
            # What is missing of the target alone counts as unchanged.
            known = torch.where(target.isfinite(), target, state.nan_to_num(0.0))
            yield self.inputs(state), known

    def fitting_stride(self, count: int) -> int:
        """From one of so many samples that models are fitted to, to the next."""
        return 1 if self.endless else max(self.samples // count, 1)

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
        targets = targets[: self._leads]
        last = self._training.unroll_gradient == "last"
        predictions = self._follow(model, state + self._noise(state), len(targets), detach=last)
        return self._error(squared_l2, predictions, targets)

    def _follow(
        self, model: nn.Module, state: Tensor, leads: int, *, detach: bool = False
    ) -> list[Tensor]:
        predictions: list[Tensor] = []
        for _ in range(leads):
            if predictions and detach:
                state = state.detach()
            predictions.append(self.step(model, state))
            state = self.following(predictions[-1], state)
        return predictions

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
        predictions = self._follow(model, state, len(targets))
        errors = {"loss": squared_l2, "l1": l1, "l2": l2}
        return {name: self._error(error, predictions, targets) for name, error in errors.items()}

    def valid(self, batch: Any) -> Tensor | None:
        """Those of whose targets something is known."""
        if not self.allow_missing:
            return None
        known = torch.cat(batch[1:], dim=1).isfinite().flatten(1).sum(1)
        return summed(known, self.grid) > 0

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
        fields = self.statistics.denormalize(state[0], self.grid).numpy()
        variables = [
            Variable(name, self.grid, {"input": field}, unit)
            for name, unit, field in zip(self.variables, self.units, fields, strict=True)
        ]
        return Example(lambda: self.step(model, state), variables)

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        """A globe, maps, error by latitude, spectra."""
        return field_sections(models)

    def _error(self, error: Any, predictions: list[Tensor], targets: list[Tensor]) -> Tensor:
        """The mean over leads and variables, of each where it is known."""
        prediction, target = torch.cat(predictions, dim=1).float(), torch.cat(targets, dim=1)
        if not self.allow_missing:
            return error(prediction, target, self.grid)
        return error(prediction, target.nan_to_num(0.0), self.grid, mask=target.isfinite())
