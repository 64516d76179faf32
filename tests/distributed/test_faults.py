"""A rank that fails ends all of them, and is named."""

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.distributed import pool

pytestmark = pytest.mark.xdist_group("ranks")

TIME_OUT = {"raises": 240, "dies": 240, "hangs": 20}
"""Seconds that ranks wait for each other: long, where it must not come to that."""


def _rank(rank: int, ranks: int, store: str, what: str, pipe: Any) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh

    from spherule import Grid, nn
    from spherule.distributed import Shards, faults, named_faults

    torch.set_num_threads(1)
    patience = timedelta(seconds=TIME_OUT[what])
    dist.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=ranks, timeout=patience
    )
    faults.PATIENCE = 5.0
    try:
        with named_faults():
            shards = Shards(Grid.gauss(8, 16), DeviceMesh("cpu", list(range(ranks))))
            layer = nn.SphericalAttention(4, shards.grid, cutoff=0.8).on(shards)
            layer(torch.randn(1, 4, *shards.shape))
            began = time.monotonic()
            if rank == 1 and what == "raises":
                raise ValueError("no such thing")
            if rank == 1 and what == "dies":
                os._exit(9)
            if rank == 1 and what == "hangs":
                time.sleep(600)
            layer(torch.randn(1, 4, *shards.shape))
    except Exception as error:
        pipe.send((type(error).__name__, str(error), time.monotonic() - began))


@pytest.mark.parametrize(
    ("what", "ranks", "words"),
    [
        ("raises", 2, "rank 1 failed: ValueError: no such thing"),
        ("dies", 3, "rank 1 of 3 no longer answer"),
        ("hangs", 2, "rank 1 of 2 no longer answer"),
    ],
)
def test_the_others_end_and_name_the_rank(
    tmp_path: Path, what: str, ranks: int, words: str
) -> None:
    context = pool.processes()
    processes, pipes = [], []
    for rank in range(ranks):
        here, there = context.Pipe()
        args = (rank, ranks, str(tmp_path / "store"), what, there)
        process = context.Process(target=_rank, args=args, daemon=True)
        process.start()
        there.close()
        processes.append(process)
        pipes.append(here)
    try:
        for rank in range(ranks):
            if rank == 1:
                continue
            assert pipes[rank].poll(2 * TIME_OUT["dies"]), f"rank {rank} says nothing"
            kind, message, seconds = pipes[rank].recv()
            assert kind == "RankError"
            assert message.startswith(words), message
            # A rank that is gone is noticed at once, and no longer than others have patience.
            assert seconds < TIME_OUT["dies"] / 2
        if what == "raises":
            assert pipes[1].recv()[:2] == ("ValueError", "no such thing")
    finally:
        for process in processes:
            process.kill()
