"""`spherule data`: one command a source."""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from spherule.data import ShallowWaterConfig, write_store


@dataclass(frozen=True)
class Data:
    """Make data: `swe` is shallow water, as a Zarr store of samples or as a movie."""

    source: tyro.conf.Positional[Literal["swe"]]
    config: Annotated[ShallowWaterConfig, tyro.conf.arg(name="")] = field(
        default_factory=ShallowWaterConfig
    )
    samples: int | None = None
    """How many samples to write; give --out with it."""
    out: Path | None = None
    """The store to write. An interrupted run goes on when the same command is given again."""
    seed: int = 0
    """Seed of the samples."""
    workers: int = 0
    """Processes that make samples."""
    movie: Path | None = None
    """The GIF to write."""
    case: str = "galewsky"
    """What the movie shows: galewsky, williamson2, williamson5 or williamson6."""
    days: float = 6.0
    """How long the movie's simulation runs."""

    def run(self) -> None:
        if (self.samples is None) != (self.out is None):
            sys.exit("--samples and --out belong together: how many samples, and where")
        if self.out is None and self.movie is None:
            sys.exit("nothing to do: give --samples and --out, or --movie")
        if self.out is not None and self.samples is not None:
            self._write(self.out, self.samples)
        if self.movie is not None:
            self._film(self.movie)

    def _write(self, out: Path, samples: int) -> None:
        columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns) as progress:
            task = progress.add_task("samples", total=samples)
            for done in write_store(
                out, self.config, samples=samples, seed=self.seed, workers=self.workers
            ):
                progress.update(task, completed=done)
        print(f"wrote {out}")

    def _film(self, movie: Path) -> None:
        from spherule.report.movie import draw_movie

        with Progress() as progress:
            task = progress.add_task("days", total=self.days)
            for day in draw_movie(movie, case=self.case, days=self.days):
                progress.update(task, completed=day)
        print(f"wrote {movie}")
