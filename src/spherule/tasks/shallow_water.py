"""Shallow water on the rotating sphere: endless training data, made on the fly."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spherule import checks
from spherule.data import (
    AgedShallowWater,
    ShallowWaterConfig,
    ShallowWaterDataset,
    Statistics,
)
from spherule.pde.shallow_water import UNITS, VARIABLES
from spherule.tasks.fields import FieldConfig, FieldTask
from spherule.train.task import Log

VALIDATION_SEED, TEST_SEED = 2**31 - 1, 2**31 - 2
"""Streams of shallow water that no run trains on: every run is measured on the same samples."""


@dataclass(frozen=True)
class ShallowWaterTaskConfig(
    ShallowWaterConfig,
    FieldConfig,
    task="shallow_water",
    title="Shallow water on the rotating sphere",
):
    """Shallow water on the rotating sphere, made on the fly."""

    samples: int = 256
    """Of an epoch."""
    validation_samples: int = 32
    test_samples: int = 50
    ages: float = 0.0
    """Days: training inputs are of every age from 0 to this, as many in each octave, drawn along
    trajectories. By default all are random initial states, as those of validation and test are."""

    def __post_init__(self) -> None:
        FieldConfig.__post_init__(self)
        super().__post_init__()
        checks.number("ages", self.ages, low=0)
        for name in ("samples", "validation_samples", "test_samples"):
            checks.integer(name, getattr(self, name), low=1)

    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Log = print,
    ) -> "ShallowWaterTask":
        if seed >= TEST_SEED:
            raise ValueError(f"seed={seed}: seeds from {TEST_SEED} on are held out")
        return ShallowWaterTask(self, seed, Statistics.from_metadata(metadata))

    @property
    def data(self) -> ShallowWaterConfig:
        """What a sample is."""
        names = [f.name for f in dataclasses.fields(ShallowWaterConfig)]
        return ShallowWaterConfig(**{name: getattr(self, name) for name in names})


class ShallowWaterTask(FieldTask):
    """Validation and test are fixed streams."""

    endless = True

    def __init__(
        self, config: ShallowWaterTaskConfig, seed: int, statistics: Statistics | None
    ) -> None:
        self.data, self.lead = config.data, config.lead
        starts = ShallowWaterDataset(
            self.data, seed=seed, leads=config.most_leads, statistics=statistics
        )
        super().__init__(starts.grid, VARIABLES, UNITS, starts.statistics, config)
        self.training, self._windows = starts, 1
        if config.ages:
            aged = AgedShallowWater(
                self.data,
                days=config.ages,
                seed=seed,
                statistics=self.statistics,
                leads=config.most_leads,
            )
            self.training, self._windows = aged, aged.windows
        self.samples = config.samples
        self.validation_samples, self.test_samples = (
            config.validation_samples,
            config.test_samples,
        )
        self.validation = self._held_out(VALIDATION_SEED, config.most_leads)
        self.test = self._held_out(TEST_SEED)

    def test_data(self) -> dict[str, Any]:
        return {"shallow water": self.data.resolved()}

    def fitting_stride(self, count: int) -> int:
        # Of old states, over eight blocks of trajectories.
        return max(self._windows * 8 // count, 1) if self._windows > 1 else 1

    @property
    def data_lmax(self) -> int:
        lmax: int = self.data.resolved()["lmax"]
        return lmax

    def trajectories(self, leads: int) -> ShallowWaterDataset:
        return self._held_out(TEST_SEED, leads)

    def _held_out(self, seed: int, leads: int = 1) -> ShallowWaterDataset:
        return ShallowWaterDataset(self.data, seed=seed, statistics=self.statistics, leads=leads)
