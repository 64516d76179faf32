"""The command line: `spherule info`, `spherule demo`."""

import importlib.metadata
import platform
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.table import Table

import spherule


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


Command = (
    Annotated[Info, tyro.conf.subcommand("info")] | Annotated[Demo, tyro.conf.subcommand("demo")]
)


def main() -> None:
    tyro.cli(Command, prog="spherule", description=spherule.__doc__).run()


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
