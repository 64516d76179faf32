"""A task with its data at hand: what training, evaluation and reports ask of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn
from torch.utils.data import Dataset

from spherule.grids import Grid

Say = Callable[[str], None]
"""Tell the user."""


class Problem(ABC):
    """Data, loss and metrics. Batches are what `default_collate` makes of the datasets' items."""

    grid: Grid
    in_channels: int
    out_channels: int
    training: Dataset[Any]
    validation: Dataset[Any]
    test: Dataset[Any]
    samples: int
    """Training samples of an epoch."""
    validation_samples: int
    test_samples: int
    endless: bool = False
    """The training data have no end: sample i is never seen twice."""
    columns: ClassVar[dict[str, str]]
    """The paper's metrics and their headings, with an arrow that says what is better."""

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """One value a sample, differentiable."""

    @abstractmethod
    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        """One value a sample of each column; `loss` is one of them."""

    def counted(self, batch: Any) -> Tensor | None:
        """Which samples have metrics at all; None: all."""
        return None

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Plain values that a trained model needs to meet new data: names, units, statistics."""


class Repeated(Dataset[Any]):
    """A data set for `Batches`' numbers: e n + i is sample i of n, in whichever epoch e."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, number: int) -> Any:
        return self.dataset[number % len(self.dataset)]


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
        order = np.random.default_rng((self.seed, epoch)).permutation(self.samples)
        chosen = order[np.arange(place * self.batch, (place + 1) * self.batch) % self.samples]
        return (epoch * self.samples + chosen).tolist()
