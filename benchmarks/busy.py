"""How threads wait: a training step on a quiet machine, and with another program on one core.

Three ways, each in a process of its own: what the command line sets (`spherule.threads`), and to
compare with it OpenMP's default (spin long) and OMP_WAIT_POLICY=passive (sleep at once), which
users don't have and no other figure uses.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from spherule import threads  # which torch must not precede

GRID, BATCH, SECONDS = "gauss:64x128", 2, 12.0


def measure(way: str) -> None:
    if way == "ours":
        assert threads.spin_briefly()
    import torch

    from spherule import Grid, models
    from spherule.allocator import keep_memory
    from spherule.train import TrainingConfig
    from spherule.train.optim import Adam

    keep_memory()
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = models.build(models.TransformerConfig(), GRID, 3, 3)
    adam = Adam(model.parameters(), TrainingConfig())
    x, y = torch.randn(2, BATCH, 3, *Grid.from_name(GRID).shape)
    times, end = [], None
    while end is None or time.perf_counter() < end:
        start = time.perf_counter()
        adam.zero_grad()
        (model(x) - y).square().mean().backward()
        adam.step(1e-3)
        times.append(time.perf_counter() - start)
        end = end or time.perf_counter() + SECONDS
    print(*(1e3 * t for t in statistics.quantiles(times[1:], n=4)))


@contextmanager
def another_program(busy: bool) -> Iterator[None]:
    """A process that takes all it gets of one core."""
    command = [sys.executable, "-c", "while True: pass"]
    other = subprocess.Popen(command) if busy else None
    try:
        yield
    finally:
        if other:
            other.kill()
            other.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure")
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure)
        return
    print(f"a training step of the local Transformer, {GRID}, batch {BATCH}, 2 threads, in ms")
    passive = "OMP_WAIT_POLICY=passive, to compare with"  # no user has it: said beside its figure
    ways = {"default": {}, passive: {"OMP_WAIT_POLICY": "passive"}, "ours": {}}
    for busy in (False, True):
        medians = {}
        for way, said in ways.items():
            with another_program(busy):
                command = [sys.executable, __file__, "--measure", way]
                done = subprocess.run(
                    command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ | said
                )
            low, medians[way], high = map(float, done.stdout.split())
            place = "one core busy" if busy else "quiet"
            print(
                f"{place:14s} {way:40s} {medians[way]:7.1f} ({low:.1f} to {high:.1f})", flush=True
            )
        best = min(medians["default"], medians[passive])
        print(f"{'':14s} ours over the better of the others: {medians['ours'] / best:.2f}")


if __name__ == "__main__":
    main()
