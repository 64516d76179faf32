"""Commands on runs: evaluate, predict, rollout, compare, report, publish."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from spherule.report.table import ResultsTable
    from spherule.runs import Run, Scores


@contextmanager
def together(device: str) -> Iterator[bool]:
    """Processes under torchrun as one group; whether this is the one that speaks."""
    from spherule.train import ranks

    with ranks.process_group(ranks.choose_device(device)) as (rank, _):
        yield rank == 0


def mute(text: str) -> None:
    """For the others."""


@dataclass(frozen=True)
class Evaluate:
    """Measure a run's best model on test samples; forecasts also in their variables' own units,
    beside persistence, climatology and the best linear map.
    """

    directory: tyro.conf.Positional[Path]
    samples: int | None = None
    """How many; by default all, of shallow water as many as the run's --test-samples."""
    checkpoint: Literal["best", "last"] = "best"
    scores: Path | None = None
    """Where a forecast's scores go, as JSON (.json) or NetCDF (.nc); by default scores.json in the
    run."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        with together(self.device) as first:
            self._run(first)

    def _run(self, first: bool) -> None:
        from spherule.runs import Run, evaluate, score
        from spherule.runs.scores import require_writable

        if self.scores is not None:
            require_writable(self.scores)
        run = Run.open(self.directory, which=self.checkpoint)
        result = evaluate(
            run, samples=self.samples, device=self.device, log=print if first else mute
        )
        scores = None
        if run.is_forecast:
            scores = score(run, samples=self.samples, device=self.device)
        if not first:
            return
        table = Table(box=None, pad_edge=False)
        for heading in (f"{run.name}, step {result['step']}", "mean", "deviation over samples"):
            table.add_column(heading)
        for name, heading in result["columns"].items():
            value = result["test"][name]
            table.add_row(heading, f"{value['mean']:.4g}", f"{value['std']:.2g}")
        Console(soft_wrap=True).print(table, highlight=False)
        if scores is not None:
            self._show(run, scores)

    def _show(self, run: "Run", result: "Scores") -> None:
        table = Table(box=None, pad_edge=False)
        for heading in ("", "forecast", "RMSE ↓", "bias", "ACC ↑", "detail"):
            table.add_column(heading)
        for v, (name, unit) in enumerate(zip(result.variables, result.units, strict=True)):
            for f, forecast in enumerate(result.forecasts):
                values = (result.rmse, result.bias, result.acc, result.spectra)
                cells = ["" if m[f, v] != m[f, v] else f"{m[f, v]:.4g}" for m in values]
                table.add_row(escape(f"{name} ({unit})" if f == 0 else ""), forecast, *cells)
        console = Console(soft_wrap=True)
        console.print(table, highlight=False)
        for sentence in result.losses():
            console.print(escape(sentence), style="red", highlight=False)
        where = self.scores or run.directory.scores
        try:
            result.save(where)
            print(f"over {result.samples} samples; wrote {where}")
        except OSError as error:
            print(f"note: the scores are not kept: {error}")


@dataclass(frozen=True)
class Predict:
    """Apply a run's model to a file: fields in NetCDF, Zarr or GRIB, or a panorama image."""

    directory: tyro.conf.Positional[Path]
    input: Path
    """NetCDF, Zarr or GRIB (also several, as a quoted pattern), or an image."""
    output: Path
    """A name that ends in .nc or .zarr, or as an image's does."""
    steps: int = 1
    """How many leads a forecast follows itself; with more than one, each is written."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        from spherule.runs import Run, predict

        with together(self.device) as first:
            run, log = Run.open(self.directory), print if first else mute
            predict(run, self.input, self.output, steps=self.steps, device=self.device, log=log)
            log(f"wrote {self.output}")


@dataclass(frozen=True)
class RollOut:
    """Let a forecast model follow its own predictions, and compare with what really happens."""

    directory: tyro.conf.Positional[Path]
    hours: float = 48.0
    """How far."""
    samples: int = 4
    """Test samples to start from."""
    checkpoint: Literal["best", "last"] = "best"
    out: Path | None = None
    """Directory for the figures; by default `rollout` in that of the run."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        from spherule.report.rollout import draw_rollout
        from spherule.report.style import pyplot
        from spherule.runs import Run, roll_out

        pyplot()  # what is missing is missed before a rollout is computed, which takes long
        with together(self.device) as first:
            run, log = Run.open(self.directory, which=self.checkpoint), print if first else mute
            result = roll_out(run, self.hours, samples=self.samples, device=self.device, log=log)
        if not first:
            return
        if result.hours.size < result.leads:
            print(
                f"the forecast ceased to be finite after {result.hours.size} of {result.leads} "
                "leads"
            )
        for path in draw_rollout(result, self.out or run.directory.rollout):
            print(f"wrote {path}")


@dataclass(frozen=True)
class Compare:
    """The paper's table of several runs, mean and deviation over the same test samples."""

    directories: tyro.conf.Positional[tuple[Path, ...]]
    out: Path | None = None
    """Also write it, as Markdown (.md) or HTML (.html)."""
    paper: bool = False
    """What the paper reports beside each run; without runs, the paper's own tables."""
    device: str = "auto"
    """Where runs are measured that have not been: auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        from spherule.report.table import comparison_page, paper_tables, results_table

        if self.paper and not self.directories:
            print("\n\n".join(table.markdown() for table in paper_tables()))
            return
        if self.out is not None and self.out.suffix not in (".md", ".html"):
            raise ValueError(f"out={str(self.out)!r}: expected a name that ends in .md or .html")
        table = results_table(self.directories, paper=self.paper, device=self.device)
        scores, bad = self._scores()
        tables = [table, *scores]
        text = "\n\n".join(t.markdown() for t in tables)
        print(text)
        console = Console(soft_wrap=True)
        for sentence in bad:
            console.print(escape(sentence), style="red", highlight=False)
        if self.out is not None:
            self.out.parent.mkdir(parents=True, exist_ok=True)
            page = comparison_page(tables, bad) if self.out.suffix == ".html" else text
            self.out.write_text(page + "\n")
            print(f"wrote {self.out}")

    def _scores(self) -> "tuple[list[ResultsTable], list[str]]":
        """Of forecasts, and what they lose to."""
        from spherule.report.score_table import score_table, warnings
        from spherule.runs import Run
        from spherule.runs.scores import scored

        runs = [Run.open(directory) for directory in self.directories]
        scores = scored(runs, device=self.device)
        if not scores:
            return [], []
        titles = [f"{run.config.title} ({run.directory.path.name})" for run in runs]
        return [score_table(titles, scores)], warnings(titles, scores)


@dataclass(frozen=True)
class Publish:
    """Write a run's model with a card that says how it was made: what `models.from_pretrained` and
    the commands on runs take.
    """

    directory: tyro.conf.Positional[Path]
    target: tyro.conf.Positional[str]
    """A directory, or hf://owner/name on the Hugging Face Hub."""
    checkpoint: Literal["best", "last"] = "best"
    notes: Path | None = None
    """A Markdown file that becomes a part of the card: license, limits."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        from spherule.runs import Run, publish

        notes = "" if self.notes is None else self.notes.read_text(encoding="utf-8")
        run = Run.open(self.directory, which=self.checkpoint)
        print(f"wrote {publish(run, self.target, notes=notes, device=self.device)}")


@dataclass(frozen=True)
class ReportCommand:
    """Write one self-contained page about one run or several: losses, table, maps, spectra."""

    directories: tyro.conf.Positional[tuple[Path, ...]]
    out: Path | None = None
    """The page; by default report.html in the first directory."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""

    def run(self) -> None:
        from spherule.report.page import write_report
        from spherule.runs import RunDirectory

        if not self.directories:
            raise ValueError("give the directory of at least one run")
        out = self.out or RunDirectory(self.directories[0]).report
        write_report(out, self.directories, device=self.device)
        print(f"wrote {out}")
