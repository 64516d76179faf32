"""One field over several ranks: what each has to do, hold and send, counted; and what two ranks on
two cores take for a training step of the local Transformer, beside one process with two threads.

    python benchmarks/distributed.py --counted     the table alone, which takes seconds
"""

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from spherule.allocator import keep_memory
from spherule.distributed.balance import WINDOW, Balance, Runs, balanced_runs, ring_work
from spherule.distributed.halo import needed_runs, rings_beside, rings_within
from spherule.distributed.shards import point_runs
from spherule.grids import Grid
from spherule.models import Transformer, TransformerConfig
from timing import machine

FIELDS = 3
CONFIG = TransformerConfig(local=True)
GRIDS = ("clenshaw_curtis:721x1440", "O320", "H256")
RANKS = (1, 2, 4, 8, 64)
MEASURED = "gauss:128x256"
REPEATS = 15


@dataclass(frozen=True)
class Counted:
    """Rank by rank, for one training step of one sample in float32."""

    points: np.ndarray
    """Of the grid, its own."""
    latent_points: np.ndarray
    halo: np.ndarray
    """Points of the latent grid that come from others, for attention."""
    pairs: np.ndarray
    """Of queries and keys, of one layer of attention."""
    sent: np.ndarray
    """Bytes to other ranks, without the gradients of weights."""


def count(grid: Grid, ranks: int, balance: Balance) -> Counted:
    latent = grid.coarsen()
    radius = 3 * latent.spacing  # the default of filters, on grids of many points
    cutoff = latent.cutoff(WINDOW)
    fine, coarse = (balanced_runs(g, ranks, balance) for g in (grid, latent))
    hats = 9
    exchanges = [
        # source, its runs, target's needs, channels, how often
        (grid, fine, needed_runs(latent, coarse, partial(rings_within, grid, radius)), FIELDS, 1),
        (
            latent,
            coarse,
            needed_runs(latent, coarse, partial(rings_within, latent, cutoff)),
            2 * CONFIG.width,
            CONFIG.depth,
        ),
        (
            latent,
            coarse,
            needed_runs(grid, fine, partial(rings_beside, latent)),
            FIELDS * hats,
            1,
        ),
        (
            grid,
            fine,
            needed_runs(grid, fine, partial(rings_within, grid, radius)),
            FIELDS * hats,
            1,
        ),
    ]
    sent = np.zeros(ranks)
    for source, owned, needs, channels, times in exchanges:
        out, back = _sent(source, owned, needs)
        sent += 4 * channels * times * (out + back)
    halo = _sizes(latent, exchanges[1][2]) - _sizes(latent, coarse)
    work = np.concatenate([[0.0], np.cumsum(ring_work(latent, cutoff))])
    pairs = np.array([work[b] - work[a] for a, b in coarse])
    return Counted(_sizes(grid, fine), _sizes(latent, coarse), halo, pairs, sent)


def _sizes(grid: Grid, runs: Runs) -> np.ndarray:
    return np.array([b - a for a, b in point_runs(grid, runs)])


def _sent(grid: Grid, owned: Runs, needs: Runs) -> tuple[np.ndarray, np.ndarray]:
    """Points that each rank sends in the forward pass, and gradients in the backward pass."""
    have, want = (np.array(point_runs(grid, runs)) for runs in (owned, needs))
    common = np.minimum(have[:, None, 1], want[None, :, 1]) - np.maximum(
        have[:, None, 0], want[None, :, 0]
    )
    common = np.maximum(common, 0)
    np.fill_diagonal(common, 0)
    return common.sum(1), common.sum(0)


def print_counted() -> None:
    print("One training step of one sample in float32, local Transformer, width 128, 4 layers.")
    print("points, halo points, pairs: the largest of any rank, and over the mean of all.")
    head = (
        "grid",
        "balance",
        "ranks",
        "points",
        "latent points",
        "halo points",
        "pairs",
        "MB sent",
    )
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for name in GRIDS:
        grid = Grid.from_name(name)
        balances: tuple[Balance, ...] = ("work", "points")
        for balance in balances if grid.regular else balances[:1]:
            for ranks in RANKS:
                c = count(grid, ranks, balance)
                cells = [_cell(v) for v in (c.points, c.latent_points, c.halo, c.pairs)]
                row = (name, balance, str(ranks), *cells, f"{c.sent.max() / 1e6:.1f}")
                print("| " + " | ".join(row) + " |", flush=True)
    for name in GRIDS:
        latent = Grid.from_name(name).coarsen()
        work = ring_work(latent, latent.cutoff(WINDOW))
        print(
            f"{latent.name}: the ring with most pairs has 1/{work.sum() / work.max():.0f} of all: "
            "beyond so many ranks whole rings cannot balance pairs"
        )


def _cell(values: np.ndarray) -> str:
    return f"{values.max():,.0f} ({values.max() / values.mean():.2f})" if values.any() else "0"


def steps(pipe: Any, rank: int | None, store: str) -> None:
    """A process that does a training step for each message, and says how long it took and what its
    memory was at most; first, what that is when all has been imported, by a step of a tiny model.
    """
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    keep_memory()  # as training does
    torch.set_num_threads(2 if rank is None else 1)
    torch.manual_seed(0)
    mesh = None
    if rank is not None:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
        mesh = init_device_mesh("cpu", (2,))
    training_step(TransformerConfig(width=8, depth=1, local=True), "gauss:12x24", mesh)()
    pipe.send(_peak())
    step = training_step(CONFIG, MEASURED, mesh)
    while pipe.recv() is not None:
        began = time.perf_counter()
        step()
        pipe.send((1e3 * (time.perf_counter() - began), _peak()))


def training_step(config: TransformerConfig, name: str, mesh: Any) -> Callable[[], None]:
    from torch.nn.parallel import DistributedDataParallel

    from spherule.distributed import Shards
    from spherule.objectives import squared_l2

    place: Any = Grid.from_name(name)
    model: torch.nn.Module = Transformer(config, place, FIELDS, FIELDS)
    if mesh is not None:
        place = Shards(place, mesh)
        model = DistributedDataParallel(model.on(place))  # type: ignore[operator]
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(2, 1, FIELDS, *place.shape)
    ranks = 1 if mesh is None else 2

    def step() -> None:
        optimizer.zero_grad()
        (squared_l2(model(x), y, place).mean() * ranks).backward()
        optimizer.step()

    return step


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_measured() -> None:
    """Both sides in turns, so that a noisy machine is noisy for both."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        pipes, processes = [], []
        for rank in (None, 0, 1):
            here, there = context.Pipe()
            process = context.Process(target=steps, args=(there, rank, f"{directory}/store"))
            process.start()
            pipes.append(here)
            processes.append(process)
        idle = [pipe.recv() for pipe in pipes]
        times: list[tuple[float, float]] = []
        peaks = [0.0, 0.0, 0.0]
        for _ in range(REPEATS + 2):
            turn = []
            for side in (pipes[:1], pipes[1:]):
                for pipe in side:
                    pipe.send("step")
                answers = [pipe.recv() for pipe in side]
                turn.append(max(took for took, _ in answers))
                for pipe, (_, peak) in zip(side, answers, strict=True):
                    peaks[pipes.index(pipe)] = peak
            times.append((turn[0], turn[1]))
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join()
    times = times[2:]
    ratios = sorted(ranks / serial for serial, ranks in times)
    serial, ranks = (statistics.median(side) for side in zip(*times, strict=True))
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    print(f"{machine()}, torch {torch.__version__}; a training step at {MEASURED}, batch 1:")
    print(
        f"one process with two threads {serial:.0f} ms, two ranks with one each {ranks:.0f} ms: "
        f"ratio {ranks / serial:.2f} (quartiles {low:.2f} to {high:.2f}; at most 1.15 is the aim)"
    )
    above = [peak - base for peak, base in zip(peaks, idle, strict=True)]
    print(
        f"peak memory above an idle process: {above[0]:.0f} MB, and {above[1]:.0f} and "
        f"{above[2]:.0f} MB of the ranks: ratio {max(above[1:]) / above[0]:.2f} (at most 0.62)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counted", action="store_true", help="what is counted only")
    arguments = parser.parse_args()
    print_counted()
    if not arguments.counted:
        print_measured()


if __name__ == "__main__":
    main()
