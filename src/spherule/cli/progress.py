"""What is seen of a run while it trains: a bar on a terminal, a line an epoch elsewhere."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from spherule.train import StepEvent
from spherule.train.loop import OnStep
from spherule.train.task import Log


def first_rank() -> bool:
    """Under torchrun, one process speaks."""
    return int(os.environ.get("RANK", "0")) == 0


@contextmanager
def progress() -> Iterator[tuple[OnStep, Log]]:
    """`on_step`, which shows each step, and `log`, which prints beside the bar."""
    if not first_rank():
        yield (lambda event: None), (lambda text: None)
        return
    console = Console(soft_wrap=True)
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
        ) as shown:
            bar = shown.add_task(
                "", total=None, epoch=1, loss=float("nan"), rate=float("nan"), speed=0.0
            )

            def on_step(event: StepEvent) -> None:
                shown.update(
                    bar,
                    completed=event.step,
                    total=event.steps,
                    epoch=event.epoch + 1,
                    loss=event.loss,
                    rate=event.learning_rate,
                    speed=event.samples_per_second,
                )
                if event.validation is not None:
                    shown.console.print(_line(event), highlight=False)

            yield on_step, lambda text: shown.console.print(text, highlight=False)
    else:
        began = time.monotonic()

        def lines(event: StepEvent) -> None:
            if event.validation is not None:
                elapsed = time.monotonic() - began
                print(
                    f"{_line(event)}, {event.samples_per_second:.3g} samples/s, {elapsed:.0f} s",
                    flush=True,
                )

        yield lines, lambda text: print(text, flush=True)


def _line(event: StepEvent) -> str:
    assert event.validation is not None
    values = ", ".join(f"{name} {v.mean:.4g}" for name, v in event.validation.items())
    return f"epoch {event.epoch + 1}, step {event.step} of {event.steps}: validation {values}"
