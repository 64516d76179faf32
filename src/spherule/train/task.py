"""What a task is: a config, which is a value, and the task itself, with its data at hand.

`class MyConfig(TaskConfig, task="mine", title="My task")` is all it takes to be known: runs store
the name, flags come from the fields, and training, evaluation and reports ask nothing beyond what
stands here.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

from spherule import checks
from spherule.distributed import Shards
from spherule.models import Model
from spherule.train.batches import on_shards
from spherule.train.figures import Section
from spherule.train.scene import Image, Variable

Log = Callable[[str], None]
"""Tell the user."""
TASKS: dict[str, type["TaskConfig"]] = {}
"""All that are known, by the names that configs store."""


@dataclass(frozen=True)
class TaskConfig(ABC):
    """What is learned, from which data. Every field is a flag of the command line."""

    name: ClassVar[str]
    title: ClassVar[str]
    """What pages call it."""

    def __init_subclass__(cls, task: str | None = None, title: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if task is not None:
            cls.name, cls.title = task, title or task
            TASKS[task] = cls

    def __post_init__(self) -> None:
        checks.config(self)

    @abstractmethod
    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Log = print,
    ) -> "Task":
        """The task with its data. What it must make for that goes into `directory`; what an earlier
        opening measured (`metadata`) is not measured again.
        """

    def predict(
        self,
        model: Model,
        metadata: dict[str, Any],
        source: Any,
        target: Path,
        *,
        steps: int = 1,
        device: torch.device,
        log: Log = print,
    ) -> None:
        """Apply a trained model to a user's file, without the data that it was trained on; a
        forecast goes on from what it predicts for so many steps.
        """
        raise ValueError(f"{self.title} has no predictions of files")


@dataclass(frozen=True, eq=False)
class Example:
    """A test sample: how a model is called with it, and what a globe shows of it."""

    forward: Callable[[], Tensor]
    variables: Sequence[Variable] = ()
    image: Image | None = None


@dataclass(frozen=True)
class Trained:
    """A trained model with the title that reports give it, and the task that it was trained on."""

    title: str
    model: Model
    task: Any
    """A Task; of the same class for all models of a report."""
    device: torch.device


class Task(ABC):
    """Data, loss and metrics. Batches are what `default_collate` makes of the datasets' items."""

    grid: Any
    """Where the fields live: a grid, or shards of one."""
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
    lead: float = 0.0
    """Seconds that a forecast looks ahead; 0: it is none. Those that are have `variables`, `units`,
    `statistics`, `step` and `trajectories`."""
    variables: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    statistics: Any = None
    earth: bool = False
    """Whether maps have coasts."""
    columns: ClassVar[dict[str, str]]
    """Metrics and their headings, with an arrow that says what is better."""

    def on(self, shards: Shards) -> "Task":
        """The same task, of which this rank sees its own part of each field only."""
        raise ValueError(
            f"domain={shards.ranks}: {type(self).__name__} cannot share a sample among processes; "
            "leave --domain at 1, or start one process"
        )

    def _moved(self, shards: Shards) -> Any:
        """A copy on shards, with the data on them: what `on` starts from."""
        part = copy.copy(self)
        part.grid = shards
        part.training, part.validation, part.test = (
            on_shards(dataset, shards) for dataset in (self.training, self.validation, self.test)
        )
        return part

    def begin_step(self, seed: int, step: int, steps: int) -> None:  # noqa: B027
        """Told to all ranks before each training step, for what the task itself draws or
        schedules: a function of these numbers, so that a resumed run goes on bit by bit.
        """

    def fitting_batches(self, count: int) -> Iterable[Any]:
        """So many training samples (input, target, ...), or all, for what models find by least
        squares.
        """
        return ()

    @abstractmethod
    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        """One value a sample, differentiable."""

    @abstractmethod
    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        """One value a sample of each column; `loss` is one of them."""

    def valid(self, batch: Any) -> Tensor | None:
        """Which samples have metrics at all; None: all."""
        return None

    @abstractmethod
    def metadata(self) -> dict[str, Any]:
        """Plain values that a trained model needs to meet new data: names, units, statistics."""

    @abstractmethod
    def test_data(self) -> dict[str, Any]:
        """Plain values that say which samples `test` has: numbers are compared where they agree."""

    def example(self, model: Model) -> Example:
        """The first test sample."""
        raise ValueError(f"{type(self).__name__} has no example to show")

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        """What a report shows of these models of one kind of task, each on its own task's data."""
        return []

    def step(self, model: nn.Module, state: Tensor) -> Tensor:
        """A forecast a lead ahead."""
        raise NotImplementedError

    def following(self, prediction: Tensor, state: Tensor) -> Tensor:
        """The state that a forecast goes on from."""
        return prediction

    def longest(self) -> int | None:
        """How many leads test samples can be followed; None: any number."""
        return None

    def trajectories(self, leads: int) -> Any:
        """The test samples with so many targets, each a lead after the one before."""
        raise NotImplementedError
