"""Four processes for all distributed tests: each runs what it is told, on the first n of them."""

import multiprocessing
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

WORKERS = 4
PATIENCE = 480
"""Seconds that an answer may take, and twice what ranks wait for each other: some machines are
busy."""


def processes() -> Any:
    """Where the system can fork, what processes import is imported once for all of them."""
    can_fork = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if can_fork else "spawn")
    if can_fork:
        context.set_forkserver_preload(["tests.distributed.imports"])
    return context


class Failed(Exception):
    """What ranks raised, by rank."""

    def __init__(self, errors: dict[int, str]) -> None:
        super().__init__("\n".join(f"rank {rank}: {text}" for rank, text in errors.items()))
        self.errors = errors


class Pool:
    def __init__(self, store: Path) -> None:
        context = processes()
        self.pipes, self.processes = [], []
        for rank in range(WORKERS):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(rank, str(store), there), daemon=True)
            process.start()
            there.close()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, ranks: int, function: Callable, *args: Any) -> list[Any]:
        """function(mesh, *args) on the first ranks; what each returned, rank by rank."""
        for pipe in self.pipes[:ranks]:
            pipe.send((ranks, function, args))
        answers = []
        for rank, pipe in enumerate(self.pipes[:ranks]):
            if not pipe.poll(PATIENCE):
                raise TimeoutError(f"rank {rank} of {ranks} does not answer")
            answers.append(pipe.recv())
        if errors := {rank: text for rank, (text, _) in enumerate(answers) if text}:
            raise Failed(errors)
        return [value for _, value in answers]

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join(10)
            process.kill()


def _work(rank: int, store: str, pipe: Any) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import DeviceMesh

    import tests.distributed.imports  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=WORKERS,
        timeout=timedelta(seconds=PATIENCE / 2),
    )
    meshes = {n: DeviceMesh("cpu", list(range(n))) for n in range(1, WORKERS + 1)}
    while (message := _next(pipe)) is not None:
        ranks, function, args = message
        try:
            pipe.send((None, function(meshes[ranks], *args)))
        except Exception:
            pipe.send((traceback.format_exc(), None))
    dist.destroy_process_group()


def _next(pipe: Any) -> Any:
    try:
        return pipe.recv()
    except EOFError:  # whoever asked is gone
        return None
