"""Which samples a step sees, how a batch is split and where it goes."""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset, default_collate

from spherule.distributed import Shards


class Repeated(Dataset[Any]):
    """A data set for `Batches`' numbers: e n + i is sample i of n, in whichever epoch e."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, number: int) -> Any:
        return self.dataset[number % len(self.dataset)]

    def on(self, shards: Shards) -> "Repeated":
        return Repeated(on_shards(self.dataset, shards))


def on_shards(dataset: Any, shards: Shards) -> Any:
    """This rank's part of a data set's fields: what the set itself reads or makes of them where it
    can, else a part of what it gives.
    """
    return dataset.on(shards) if hasattr(dataset, "on") else Scattered(dataset, shards)


class Scattered(Dataset[Any]):
    """Parts of fields, in tuples or dictionaries."""

    def __init__(self, dataset: Any, shards: Shards) -> None:
        self.dataset, self.shards = dataset, shards

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, number: int) -> Any:
        sample = self.dataset[number]
        if isinstance(sample, dict):
            return {name: self._part(field) for name, field in sample.items()}
        return tuple(self._part(field) for field in sample)

    def _part(self, field: Tensor) -> Tensor:
        return self.shards.scatter(field).clone()  # so that the whole field is freed


class Batches:
    """The samples of steps start, start + 1, ... < stop, as lists of numbers.

    They are a function of the step alone, so a run goes on where it stopped. A finite set of n
    `samples` is shuffled anew each epoch, and sample i of epoch e has the number e n + i, which is
    what augmentation is drawn from; numbers of endless data (`samples=None`) just go up. Of each
    batch a rank takes its own consecutive part.
    """

    def __init__(
        self,
        samples: int | None,
        batch: int,
        seed: int,
        *,
        start: int,
        stop: int,
        rank: int = 0,
        ranks: int = 1,
    ) -> None:
        self.samples, self.batch, self.seed = samples, batch, seed
        self.start, self.stop = start, stop
        self.part = slice(rank * batch // ranks, (rank + 1) * batch // ranks)

    def __len__(self) -> int:
        return self.stop - self.start

    def __iter__(self) -> Iterator[list[int]]:
        for step in range(self.start, self.stop):
            yield self.numbers(step)[self.part]

    def numbers(self, step: int) -> list[int]:
        """The whole batch of a step."""
        if self.samples is None:
            return list(range(step * self.batch, (step + 1) * self.batch))
        epoch, place = divmod(step, max(self.samples // self.batch, 1))
        places = np.arange(place * self.batch, (place + 1) * self.batch) % self.samples
        chosen = _order(self.samples, self.seed, epoch)[places]
        return (epoch * self.samples + chosen).tolist()


@lru_cache(maxsize=2)
def _order(samples: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """Of the samples of an epoch."""
    return np.random.default_rng((seed, epoch)).permutation(samples)


def first_samples(dataset: Any, count: int) -> Any:
    """The first samples as one batch."""
    return default_collate([dataset[i] for i in range(count)])


def to_device(batch: Any, device: torch.device) -> Any:
    """A batch, however it is built, on a device."""
    if isinstance(batch, Tensor):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, dict):
        return {name: to_device(value, device) for name, value in batch.items()}
    return [to_device(value, device) for value in batch]


def split(batch: Any, part: int, parts: int) -> Any:
    """A part of a batch, however it is built."""
    if isinstance(batch, Tensor):
        return batch.tensor_split(parts)[part]
    if isinstance(batch, dict):
        return {name: split(value, part, parts) for name, value in batch.items()}
    return [split(value, part, parts) for value in batch]
