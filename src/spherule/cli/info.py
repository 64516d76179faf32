"""`spherule info`."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import spherule
from spherule import cuda, native


@dataclass(frozen=True)
class Info:
    """Print versions, threads, OpenMP runtimes in the process, and which kernels are active and
    why.
    """

    def run(self) -> None:
        table = Table(show_header=False, box=None, pad_edge=False)
        for name, value in _facts():
            table.add_row(f"[bold]{name}[/bold]", escape(value))
        Console(soft_wrap=True).print(table)


def _facts() -> list[tuple[str, str]]:
    runtimes = openmp_runtimes()
    openmp = (
        "unknown on this system" if runtimes is None else f"{len(runtimes)}: {', '.join(runtimes)}"
    )
    threads = (
        f"{torch.get_num_threads()} of torch, which uses {torch.backends.cpu.get_cpu_capability()}"
    )
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "not available"
    return [
        ("spherule", spherule.__version__),
        ("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ("torch", f"{torch.__version__}, numpy {np.__version__}"),
        ("threads", threads),
        ("OpenMP", openmp),
        ("CUDA", device),
        ("kernels", _kernels()),
        ("GPU kernels", cuda.kernels()),
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
