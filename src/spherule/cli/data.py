"""`spherule data`: one command a source."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

from spherule import checks
from spherule.data import (
    PanoramaDataset,
    ShallowWaterConfig,
    StanfordSource,
    write_panoramas,
    write_store,
)
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford import FOLDS
from spherule.data.stanford_layout import write_stanford_layout


@dataclass(frozen=True)
class ShallowWater:
    """Shallow water, as a Zarr store of samples or as a movie."""

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
        steps = write_store(out, self.config, samples=samples, seed=self.seed, workers=self.workers)
        show_progress("samples", steps, samples)
        print(f"wrote {out}")

    def _film(self, movie: Path) -> None:
        from spherule.report.movie import draw_movie

        with Progress() as progress:
            task = progress.add_task("days", total=self.days)
            for day in draw_movie(movie, case=self.case, days=self.days):
                progress.update(task, completed=day)
        print(f"wrote {movie}")


@dataclass(frozen=True)
class Stanford:
    """Panoramas of Stanford 2D-3D-Semantics, from its extracted files to a Zarr store."""

    root: Path
    """The directory with area_1, area_2, ... and semantic_labels.json (or assets/ with it)."""
    out: Path
    """The store to write. An interrupted run goes on when the same command is given again."""
    size: str = "128x256"
    """Rows and columns."""
    labels: Literal["nearest", "majority"] = "nearest"
    """Of the pixels in a cell, the one in its center or the one with the largest area."""
    missing: Literal["unknown", "clutter"] = "unknown"
    """The class of pixels without a label; the paper's public code takes them for clutter."""
    bad: Literal["raise", "skip"] = "raise"
    """What to do at files that can't be used: stop, or name and count them and leave them out."""
    workers: int = 2
    """Processes that read images."""

    def run(self) -> None:
        size = checks.shape("size", self.size)
        source = StanfordSource(self.root, size, labels=self.labels, missing=self.missing)
        steps = write_panoramas(
            self.out,
            source,
            size=size,
            config=source.config,
            folds=FOLDS,
            workers=self.workers,
            bad=self.bad,
        )
        show_progress("panoramas", steps, len(source))
        report_panoramas(self.out)


@dataclass(frozen=True)
class RoomPanoramas:
    """Procedural rooms, ray-traced: panoramas with exact labels and depth."""

    samples: int
    """How many rooms."""
    out: Path
    """The store or directory to write. An interrupted store goes on when the same command is given
    again.
    """
    config: Annotated[RoomsConfig, tyro.conf.arg(name="")] = field(default_factory=RoomsConfig)
    layout: Literal["zarr", "stanford"] = "zarr"
    """A Zarr store, or files as in Stanford 2D-3D-Semantics: area_*/pano and semantic_labels.json.
    """
    seed: int = 0
    """Seed of the rooms."""
    workers: int = 2
    """Processes that make rooms."""

    def run(self) -> None:
        rooms = Rooms(self.config, seed=self.seed, samples=self.samples)
        if self.layout == "stanford":
            steps = write_stanford_layout(self.out, rooms, workers=self.workers)
            show_progress("rooms", steps, self.samples)
            print(f"wrote {self.out}: {self.samples} panoramas")
            return
        steps = write_panoramas(
            self.out,
            rooms,
            size=self.config.shape,
            config={"source": "rooms", "seed": self.seed, **asdict(self.config)},
            folds=FOLDS,
            workers=self.workers,
        )
        show_progress("rooms", steps, self.samples)
        report_panoramas(self.out)


# One line a source.
Source = (
    Annotated[ShallowWater, tyro.conf.subcommand("swe", prefix_name=False)]
    | Annotated[Stanford, tyro.conf.subcommand("stanford", prefix_name=False)]
    | Annotated[RoomPanoramas, tyro.conf.subcommand("rooms", prefix_name=False)]
)


@dataclass(frozen=True)
class Data:
    """Make data to train on."""

    source: Source = field()

    def run(self) -> None:
        self.source.run()


def report_panoramas(out: Path) -> None:
    """What is in a new store, and what was left out."""
    data = PanoramaDataset(out, split="all")
    for sample in data.skipped:
        print(f"skipped {sample['name']}: {sample['kind']}: {sample['reason']}")
    kinds = Counter(sample["kind"] for sample in data.skipped)
    left_out = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"wrote {out}: {len(data)} panoramas" + (f"; left out: {left_out}" if kinds else ""))


def show_progress(what: str, steps: Iterator[int], total: int) -> None:
    """Run through the steps under a progress bar."""
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns) as progress:
        task = progress.add_task(what, total=total)
        for done in steps:
            progress.update(task, completed=done)
