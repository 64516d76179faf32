"""The metrics of a model over held-out samples."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Subset, default_collate

from spherule.models import Model
from spherule.objectives import Average
from spherule.train.problem import Problem


@torch.no_grad()
def measure(
    problem: Problem,
    model: Model,
    part: str,
    *,
    samples: int | None = None,
    batch: int = 4,
    rank: int = 0,
    world: int = 1,
    device: torch.device | None = None,
) -> Average:
    """The metrics of a model over `validation` or `test` samples, all ranks together."""
    model.eval()
    dataset, there = getattr(problem, part), getattr(problem, f"{part}_samples")
    count = there if samples is None else samples
    if not problem.endless and count > there:
        raise ValueError(f"samples={count}: the {part} part has {there}")
    average = Average()
    shard = Subset(dataset, range(rank, count, world))
    for pieces in DataLoader(shard, batch_size=batch):
        pieces = moved(pieces, device or torch.device("cpu"))
        average.update(problem.metrics(model, pieces), valid=problem.counted(pieces))
    average.reduce()
    return average


def first_samples(dataset: Any, count: int) -> Any:
    """The first samples as one batch."""
    return default_collate([dataset[i] for i in range(count)])


def moved(batch: Any, device: torch.device) -> Any:
    """A batch, however it is built, on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: moved(value, device) for name, value in batch.items()}
    return [moved(value, device) for value in batch]


def split(batch: Any, part: int, parts: int) -> Any:
    """A part of a batch, however it is built."""
    if isinstance(batch, Tensor):
        return batch.tensor_split(parts)[part]
    if isinstance(batch, dict):
        return {name: split(value, part, parts) for name, value in batch.items()}
    return [split(value, part, parts) for value in batch]
