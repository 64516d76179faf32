"""The metrics of a model over held-out samples."""

from typing import Literal

import torch
from torch.distributed import ProcessGroup
from torch.utils.data import DataLoader, Subset

from spherule import checks
from spherule.models import Model
from spherule.objectives import Average
from spherule.train.batches import to_device
from spherule.train.task import Task


@torch.no_grad()
@checks.arguments
def measure(
    task: Task,
    model: Model,
    part: Literal["validation", "test"],
    *,
    samples: int | None = None,
    batch: int = 4,
    rank: int = 0,
    world: int = 1,
    device: torch.device | None = None,
    group: ProcessGroup | None = None,
) -> Average:
    """The metrics of a model over `validation` or `test` samples, all ranks of a group together; of
    all, by default.
    """
    model.eval()
    dataset, present = {
        "validation": (task.validation, task.validation_samples),
        "test": (task.test, task.test_samples),
    }[part]
    count = present if samples is None else checks.integer("samples", samples, low=1)
    if not task.endless and count > present:
        raise ValueError(f"samples={count}: the {part} part has {present}")
    average = Average()
    shard = Subset(dataset, range(rank, count, world))
    for pieces in DataLoader(shard, batch_size=batch):
        pieces = to_device(pieces, device or torch.device("cpu"))
        average.update(task.metrics(model, pieces), valid=task.valid(pieces))
    if world > 1:
        average.reduce(group)
    if count and not all(found.count for found in average.compute().values()):
        raise ValueError(f"the {part} part has no values that a prediction could be compared with")
    return average
