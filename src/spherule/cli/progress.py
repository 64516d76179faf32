"""What is seen of a run while it trains: a bar on a terminal, a line an epoch elsewhere."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spherule.train import Report

Watch = Callable[[Report], None]
Say = Callable[[str], None]


@contextmanager
def watching() -> Iterator[tuple[Watch, Say]]:
    """A function that is told of each step, and one that prints messages beside the bar."""
    if int(os.environ.get("RANK", "0")) > 0:
        yield (lambda report: None), (lambda text: None)
        return
    console = Console(soft_wrap=True)
    if _crowded():
        console.print(
            "note: the machine is busy; OMP_WAIT_POLICY=passive in the environment may help a lot",
            highlight=False,
        )
    if console.is_terminal:
        with Progress(
            TextColumn("epoch {task.fields[epoch]}"),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("loss {task.fields[loss]:.4g}"),
            TextColumn("rate {task.fields[rate]:.2g}"),
            TextColumn("{task.fields[speed]:.3g} samples/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False, compact=True),
            console=console,
        ) as progress:
            bar = progress.add_task(
                "", total=None, epoch=1, loss=float("nan"), rate=float("nan"), speed=0.0
            )

            def watch(report: Report) -> None:
                progress.update(
                    bar,
                    completed=report.step,
                    total=report.steps,
                    epoch=report.epoch + 1,
                    loss=report.loss,
                    rate=report.learning_rate,
                    speed=report.samples_per_second,
                )
                if report.validation is not None:
                    progress.console.print(_line(report), highlight=False)

            yield watch, lambda text: progress.console.print(text, highlight=False)
    else:
        began = time.monotonic()

        def lines(report: Report) -> None:
            if report.validation is not None:
                elapsed = time.monotonic() - began
                print(
                    f"{_line(report)}, {report.samples_per_second:.3g} samples/s, {elapsed:.0f} s",
                    flush=True,
                )

        yield lines, lambda text: print(text, flush=True)


def _crowded() -> bool:
    """Others use the cores, and OpenMP's threads would spin while they wait for them."""
    known = "OMP_WAIT_POLICY" in os.environ or "GOMP_SPINCOUNT" in os.environ
    return not known and hasattr(os, "getloadavg") and os.getloadavg()[0] > (os.cpu_count() or 1)


def _line(report: Report) -> str:
    assert report.validation is not None
    values = ", ".join(f"{name} {v.mean:.4g}" for name, v in report.validation.items())
    return f"epoch {report.epoch + 1}, step {report.step} of {report.steps}: validation {values}"
