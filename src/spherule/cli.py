"""The command line: one dataclass a command, its fields are the flags."""

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
from spherule import native
from spherule.data import ShallowWaterConfig, write_store
from spherule.grids import Grid


@dataclass(frozen=True)
class Info:
    """Print versions, threads, OpenMP runtimes in the process, and which kernels are active and
    why.
    """

    def run(self) -> None:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in _facts():
            table.add_row(f"[bold]{name}[/bold]", value)
        Console(soft_wrap=True).print(table)


@dataclass(frozen=True)
class Demo:
    """Draw a random field on several grids, with its spectrum."""

    out: Path = Path("out/demo")
    """Directory for the picture."""
    seed: int = 0
    """Seed of the random field."""

    def run(self) -> None:
        from spherule.report.gallery import draw_gallery

        print(f"wrote {draw_gallery(self.out / 'grids.png', seed=self.seed)}")


@dataclass(frozen=True)
class PlotNeighborhood:
    """Draw the disk of keys around a point on the globe, with their weights."""

    cutoff: float
    """Radius of the disk in radians."""
    grid: str = "O32"
    """Name of the grid: gauss:64x128, H32, O32, N80 ..."""
    at: str = "60,30"
    """Latitude and longitude of the query in degrees."""
    edge_width: float = 0.0
    """Width of the soft edge in radians."""
    out: Path = Path("neighborhood.png")
    """The picture."""

    def run(self) -> None:
        from spherule.report.neighborhoods import plot_neighborhood

        summary = plot_neighborhood(
            self.out,
            Grid.from_name(self.grid),
            self.cutoff,
            _place(self.at),
            edge_width=self.edge_width,
        )
        print(f"wrote {self.out}: {summary}")


@dataclass(frozen=True)
class PlotPanels:
    """Draw the paper's comparison near a pole: planar window, disk, weights, soft edge."""

    out: Path = Path("panels.png")
    """The picture."""

    def run(self) -> None:
        from spherule.report.neighborhoods import plot_panels

        plot_panels(self.out)
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class Plot:
    """Pictures of the geometry."""

    what: (
        Annotated[PlotNeighborhood, tyro.conf.subcommand("neighborhood", prefix_name=False)]
        | Annotated[PlotPanels, tyro.conf.subcommand("panels", prefix_name=False)]
    ) = field()

    def run(self) -> None:
        self.what.run()


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


Command = (
    Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


def main() -> None:
    try:
        command = tyro.cli(
            Command,
            prog="spherule",
            description=spherule.__doc__,
            config=(tyro.conf.OmitArgPrefixes,),
        )
        command.run()
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"spherule: {error}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spherule"):
            raise
        sys.exit(f"spherule: {error}; pip install 'spherule[data,plot]'")


def _facts() -> list[tuple[str, str]]:
    runtimes = openmp_runtimes()
    openmp = (
        "unknown on this system" if runtimes is None else f"{len(runtimes)}: {', '.join(runtimes)}"
    )
    threads = (
        f"{torch.get_num_threads()} of torch, which uses {torch.backends.cpu.get_cpu_capability()}"
    )
    cuda = torch.cuda.get_device_name() if torch.cuda.is_available() else "not available"
    return [
        ("spherule", spherule.__version__),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("torch", f"{torch.__version__}, numpy {np.__version__}"),
        ("threads", threads),
        ("OpenMP", openmp),
        ("CUDA", cuda),
        ("kernels", _kernels()),
    ]


def _kernels() -> str:
    library, reason = native.load()
    if library is None:
        return f"reference in plain torch (slow): {reason}"
    return f"native CPU library, {reason}: the widest instruction set that this machine has"


def openmp_runtimes() -> list[str] | None:
    """The OpenMP libraries in this process: two would fight over the cores. None without /proc."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return None
    loaded = {Path(path).name for path in re.findall(r"(/\S+)$", maps.read_text(), re.MULTILINE)}
    return sorted(name for name in loaded if re.match(r"lib(gomp|iomp|omp)[-.\d]", name))


def _place(text: str) -> tuple[float, float]:
    try:
        latitude, longitude = (float(number) for number in text.split(","))
    except ValueError:
        raise ValueError(
            f"--at {text!r}: expected latitude,longitude in degrees, such as 60,30"
        ) from None
    return latitude, longitude
