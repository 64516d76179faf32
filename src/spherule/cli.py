"""The command line: `spherule info`, `spherule demo`, `spherule data`."""

import importlib.metadata
import platform
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

import spherule
from spherule.data import ShallowWaterConfig, write_store


@dataclass(frozen=True)
class Info:
    """Print versions, threads, OpenMP runtimes in the process, and which kernels are active and
    why.
    """

    def run(self) -> None:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in _facts():
            table.add_row(f"[bold]{name}[/bold]", value)
        Console().print(table)


@dataclass(frozen=True)
class Demo:
    """Draw a random field on several grids, with its spectrum."""

    out: Path = Path("out/demo")
    """Directory for the picture."""
    seed: int = 0
    """Seed of the random field."""

    def run(self) -> None:
        try:
            from spherule.report.gallery import draw_gallery

            print(f"wrote {draw_gallery(self.out / 'grids.png', seed=self.seed)}")
        except ModuleNotFoundError as error:
            if error.name != "matplotlib":
                raise
            sys.exit("spherule demo draws with matplotlib: pip install 'spherule[plot]'")


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
        try:
            if self.out is not None and self.samples is not None:
                self._write(self.out, self.samples)
            if self.movie is not None:
                self._film(self.movie)
        except ModuleNotFoundError as error:
            sys.exit(f"{error}; pip install 'spherule[data,plot]'")
        except (ValueError, OSError, FloatingPointError) as error:
            sys.exit(f"spherule data: {error}")

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


Command = (
    Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


def main() -> None:
    try:
        command = tyro.cli(Command, prog="spherule", description=spherule.__doc__)
    except ValueError as error:  # a configuration that contradicts itself
        sys.exit(f"spherule: {error}")
    command.run()


def _facts() -> list[tuple[str, str]]:
    runtimes = openmp_runtimes()
    return [
        ("spherule", spherule.__version__),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("torch", f"{torch.__version__}, numpy {np.__version__}"),
        ("tyro", importlib.metadata.version("tyro")),
        (
            "threads",
            f"{torch.get_num_threads()} of torch, capability "
            f"{torch.backends.cpu.get_cpu_capability()}",
        ),
        (
            "OpenMP",
            "unknown on this system"
            if runtimes is None
            else f"{len(runtimes)}: {', '.join(runtimes)}",
        ),
        ("CUDA", torch.cuda.get_device_name() if torch.cuda.is_available() else "not available"),
    ]


def openmp_runtimes() -> list[str] | None:
    """The OpenMP libraries loaded in this process; more than one fight over the cores. None where
    /proc is missing.
    """
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return None
    loaded = {Path(path).name for path in re.findall(r"(/\S+)$", maps.read_text(), re.MULTILINE)}
    return sorted(name for name in loaded if re.match(r"lib(gomp|iomp|omp)[-.\d]", name))
