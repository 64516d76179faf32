"""Forecasts of a user's own fields."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spherule.data import Statistics
from spherule.data.forecast import ForecastDataset
from spherule.data.times import Lead, text, year_part
from spherule.grids import Grid
from spherule.tasks.fields import FieldConfig, FieldTask
from spherule.train.batches import Repeated
from spherule.train.task import Log

YEARS = 2
"""Of training data from which on there is a climatology of each season."""


@dataclass(frozen=True)
class ForecastConfig(FieldConfig, task="forecast", title="Forecast"):
    """Your own fields: NetCDF, Zarr or GRIB with time, latitude and longitude (or cells)."""

    data: Path | None = None
    """A file, a Zarr store, a directory of files, a quoted pattern such as 'era5_*.nc', or an
    address such as s3://bucket/era5.zarr."""
    variables: tuple[str, ...] = ()
    """What is predicted: z500, or z@500 for a level; z alone means all levels that it has."""
    static: tuple[str, ...] = ()
    """Fields without time that the model sees too, such as orography."""
    lead: str = "6h"
    """From input to target: 6h, 30min, 1d, 1mo, 1step."""
    grid: str | None = None
    """Train on another grid than the data's, such as H64, O96 or gauss:64x128."""
    repair: bool = False
    """Leave out a last column that repeats the first; take rows without the poles, and rings that
    leave out a cap, as they are."""
    missing: Literal["refuse", "mask"] = "refuse"
    """Missing values: an error, or hidden from the model and left out of loss and metrics."""
    training_part: float = 0.8
    """Share of the time axis to train on, from its beginning."""
    validation_part: float = 0.1
    """Share that follows, for validation; the rest is for tests."""

    def __post_init__(self) -> None:
        super().__post_init__()
        Lead.parse(self.lead)
        if twice := sorted({n for n in self.variables if self.variables.count(n) > 1}):
            raise ValueError(f"variables: {', '.join(twice)} given more than once")
        if self.grid is not None:
            Grid.from_name(self.grid)
        if not 0 < self.training_part < self.validation_ends < 1:
            raise ValueError(
                f"training_part={self.training_part}, validation_part={self.validation_part}: "
                "shares of time that leave some for tests were expected, such as 0.8 and 0.1"
            )

    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Log = print,
    ) -> "ForecastTask":
        if self.data is None or not self.variables:
            raise ValueError(
                "forecast needs your data: --data my.zarr --variables z500 t850 (NetCDF, Zarr or "
                "GRIB with dimensions time, latitude, longitude, or time and cell)"
            )
        task = ForecastTask(self, metadata)
        if note := task.layout.match.note:
            log(f"note: {note}")
        return task

    @property
    def allow_missing(self) -> bool:
        return self.missing == "mask"

    @property
    def validation_ends(self) -> float:
        """Share of the time axis before the tests."""
        return self.training_part + self.validation_part


class ForecastTask(FieldTask):
    """Training, validation and test follow each other in time."""

    earth = True

    def __init__(self, config: ForecastConfig, metadata: dict[str, Any] | None) -> None:
        self.config = config
        a, b = config.training_part, config.validation_ends
        training = self._part(
            (0.0, a),
            config.most_leads,
            Statistics.from_metadata(metadata),
            Statistics.from_metadata(metadata, "static_"),
        )
        super().__init__(
            training.grid,
            training.variables,
            training.units,
            training.statistics,
            config,
            static=training.static,
        )
        self.static_statistics, self.layout = training.static_statistics, training.layout
        self.training, self.samples = Repeated(training), len(training)
        self._seasons = training.length >= YEARS * 365 * 86400
        self._dated = {"training": training}
        followed = min(config.most_leads, max(training.longest((a, b)), 1))
        validation, test = self._held_out((a, b), followed), self._held_out((b, 1.0))
        self.validation, self.validation_samples = validation, len(validation)
        self.test: ForecastDataset = test
        self.test_samples = len(test)
        self._dated["test"] = test
        self.lead, self._months = training.seconds, training.lead.unit == "mo"

    def metadata(self) -> dict[str, Any]:
        lead = {"lead": self.config.lead} if self._months else {}
        return {
            **super().metadata(),
            **lead,
            "resampled": self.layout.target is not None,
            "repair": self.config.repair,
            "static": list(self.config.static),
            "static_mean": list(self.static_statistics.mean),
            "static_std": list(self.static_statistics.std),
        }

    def test_data(self) -> dict[str, Any]:
        return {
            "data": str(self.config.data),
            "variables": list(self.config.variables),
            "lead": self.config.lead,
            "grid": self.grid.name,
            "from": self.config.validation_ends,
            "missing": self.config.missing,
            "mean": list(self.statistics.mean),
            "std": list(self.statistics.std),
        }

    def date(self, sample: int) -> str:
        target = self.test.time(sample, 1)
        return text(target).replace("T", " ").removesuffix(":00").removesuffix(" 00:00")

    def season(self, part: Literal["training", "test"], sample: int) -> float | None:
        return year_part(self._dated[part].time(sample, 1)) if self._seasons else None

    def longest(self) -> int:
        return self.test.longest((self.config.validation_ends, 1.0))

    def trajectories(self, leads: int) -> ForecastDataset:
        return self._held_out((self.config.validation_ends, 1.0), leads)

    def _held_out(self, part: tuple[float, float], leads: int = 1) -> ForecastDataset:
        return self._part(part, leads, self.statistics, self.static_statistics)

    def _part(
        self,
        part: tuple[float, float],
        leads: int,
        statistics: Statistics | None,
        static_statistics: Statistics | None,
    ) -> ForecastDataset:
        assert self.config.data is not None
        return ForecastDataset(
            self.config.data,
            self.config.variables,
            static=self.config.static,
            lead=self.config.lead,
            leads=leads,
            part=part,
            grid=None if self.config.grid is None else Grid.from_name(self.config.grid),
            repair=self.config.repair,
            missing=self.config.missing,
            statistics=statistics,
            static_statistics=static_statistics,
        )
