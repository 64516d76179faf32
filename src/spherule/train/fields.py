"""Forecasts of fields: shallow water, and users' own data."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from spherule.data import ShallowWaterConfig, ShallowWaterDataset, Statistics
from spherule.data.forecast import ForecastDataset
from spherule.grids import Grid
from spherule.objectives import l1, l2, squared_l2
from spherule.pde.shallow_water import UNITS, VARIABLES
from spherule.train.problem import Problem, Repeated, Say

VALIDATION_SEED, TEST_SEED = 2**31 - 1, 2**31 - 2
"""Streams of shallow water that no run trains on: every run is measured on the same samples."""


class FieldProblem(Problem):
    """From the fields at one time to those a lead later; a batch is (input, target, ...)."""

    lead: float
    """Seconds."""
    static_names: tuple[str, ...] = ()
    columns: ClassVar[dict[str, str]] = {"loss": "loss ↓", "l1": "L₁ error ↓", "l2": "L₂ error ↓"}

    def __init__(
        self,
        grid: Grid,
        variables: tuple[str, ...],
        units: tuple[str, ...],
        statistics: Statistics,
        *,
        static: Tensor | None = None,
        missing: bool = False,
    ) -> None:
        self.grid, self.variables, self.units, self.statistics = grid, variables, units, statistics
        self.static, self.missing = static, missing
        self.out_channels = len(variables)
        self.in_channels = self.out_channels + (0 if static is None else len(static))

    def step(self, model: nn.Module, state: Tensor) -> Tensor:
        """The model's state a lead later; what is missing counts as the mean."""
        if self.missing:
            state = state.nan_to_num(0.0)
        if self.static is not None:
            fixed = self.static.to(state).expand(state.shape[0], *self.static.shape)
            state = torch.cat([state, fixed], dim=1)
        prediction: Tensor = model(state)
        return prediction

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """Mean over leads of the squared error, each prediction made from the one before."""
        state, *targets = batch
        losses = []
        for target in targets:
            state = self.step(model, state)
            losses.append(self._error(squared_l2, state, target))
        return torch.stack(losses).mean(0)

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        state, target, *_ = batch
        prediction = self.step(model, state)
        errors = {"loss": squared_l2, "l1": l1, "l2": l2}
        return {name: self._error(error, prediction, target) for name, error in errors.items()}

    def describe(self) -> dict[str, Any]:
        return {
            "grid": self.grid.name,
            "variables": list(self.variables),
            "units": list(self.units),
            "mean": list(self.statistics.mean),
            "std": list(self.statistics.std),
            "static": list(self.static_names),
            "lead": f"{self.lead:g}s",
        }

    def followed(self, leads: int) -> Any:
        """The test samples with so many targets."""
        raise NotImplementedError

    def _error(self, error: Any, prediction: Tensor, target: Tensor) -> Tensor:
        prediction = prediction.float()
        if not self.missing:
            return error(prediction, target, self.grid)
        there = target.isfinite().all(dim=1)
        return error(prediction, target.nan_to_num(0.0), self.grid, mask=there)


@dataclass(frozen=True)
class ShallowWaterTask(ShallowWaterConfig):
    """Shallow water on the rotating sphere, made on the fly."""

    samples: int = 256
    """Of an epoch."""
    validation_samples: int = 32
    leads: int = 1
    """Autoregressive training: how many leads each sample is followed."""

    def open(
        self, seed: int, directory: Path | None = None, say: Say = print
    ) -> "ShallowWaterProblem":
        if min(self.samples, self.validation_samples, self.leads) < 1:
            raise ValueError(
                f"samples={self.samples}, validation_samples={self.validation_samples} and "
                f"leads={self.leads} must be at least 1"
            )
        if seed >= TEST_SEED:
            raise ValueError(f"seed={seed}: seeds from {TEST_SEED} on are held out")
        return ShallowWaterProblem(self, seed)

    @property
    def data_config(self) -> ShallowWaterConfig:
        names = [f.name for f in dataclasses.fields(ShallowWaterConfig)]
        return ShallowWaterConfig(**{name: getattr(self, name) for name in names})


class ShallowWaterProblem(FieldProblem):
    """Endless training data; validation and test are fixed streams."""

    endless = True

    def __init__(self, task: ShallowWaterTask, seed: int) -> None:
        config = task.data_config
        training = ShallowWaterDataset(config, seed=seed, leads=task.leads)
        super().__init__(training.grid, VARIABLES, UNITS, training.statistics)
        self.config, self.lead = config, config.lead
        self.training, self.samples = training, task.samples
        self.validation_samples = self.test_samples = task.validation_samples
        self.validation, self.test = (
            ShallowWaterDataset(config, seed=s, statistics=training.statistics)
            for s in (VALIDATION_SEED, TEST_SEED)
        )

    def followed(self, leads: int) -> Any:
        """The test samples with so many targets."""
        return ShallowWaterDataset(
            self.config, seed=TEST_SEED, statistics=self.statistics, leads=leads
        )


@dataclass(frozen=True)
class ForecastTask:
    """Your own fields: a Zarr store or NetCDF file with time, latitude and longitude (or cells)."""

    data: Path | None = None
    """The store or file."""
    variables: tuple[str, ...] = ()
    """What is predicted."""
    static: tuple[str, ...] = ()
    """Fields without time that the model sees too, such as orography."""
    lead: str = "6h"
    """From input to target: 6h, 30min, 1d."""
    leads: int = 1
    """Autoregressive training: how many leads each sample is followed."""
    missing: Literal["refuse", "mask"] = "refuse"
    """Missing values: an error, or left out of loss and metrics."""
    training_part: float = 0.8
    """Share of the time axis to train on, from its beginning."""
    validation_part: float = 0.1
    """Share that follows, for validation; the rest is for tests."""

    def open(self, seed: int, directory: Path | None = None, say: Say = print) -> "ForecastProblem":
        if self.data is None or not self.variables:
            raise ValueError(
                "forecast needs your data: --data my.zarr --variables z500 t850 (a Zarr store or "
                "NetCDF file with dimensions time, latitude, longitude, or time and cell)"
            )
        a, b = self.training_part, self.training_part + self.validation_part
        if not 0 < a < b < 1:
            raise ValueError(
                f"training_part={self.training_part}, validation_part={self.validation_part}: "
                "shares of time that leave some for tests were expected, such as 0.8 and 0.1"
            )
        return ForecastProblem(self)


class ForecastProblem(FieldProblem):
    """Training, validation and test follow each other in time."""

    def __init__(self, task: ForecastTask) -> None:
        self.task = task
        a, b = task.training_part, task.training_part + task.validation_part
        training = self._part(0.0, a, task.leads)
        super().__init__(
            training.grid,
            training.variables,
            training.units,
            training.statistics,
            static=training.static,
            missing=task.missing == "mask",
        )
        self.static_names = task.static
        self.training, self.samples = Repeated(training), len(training)
        validation, test = self._part(a, b), self._part(b, 1.0)
        self.validation, self.validation_samples = validation, len(validation)
        self.test, self.test_samples = test, len(test)
        self.lead = float(training.lead / np.timedelta64(1, "s"))

    def followed(self, leads: int) -> Any:
        """The test samples with so many targets."""
        return self._part(self.task.training_part + self.task.validation_part, 1.0, leads)

    def _part(self, first: float, last: float, leads: int = 1) -> ForecastDataset:
        assert self.task.data is not None
        return ForecastDataset(
            self.task.data,
            self.task.variables,
            static=self.task.static,
            lead=self.task.lead,
            leads=leads,
            part=(first, last),
            missing=self.task.missing,
            statistics=getattr(self, "statistics", None),
        )
