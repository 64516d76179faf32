"""A run on disk, opened: its best model, or its last."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spherule import checks, tasks
from spherule.allocator import keep_memory
from spherule.models import Model, from_pretrained
from spherule.runs.directory import RunDirectory
from spherule.train.checkpoint import Checkpoint
from spherule.train.run_config import RunConfig
from spherule.train.task import Log, Task

assert tasks.__all__  # imported for the tasks that it makes known


@dataclass(frozen=True)
class Run:
    """A run with a trained model."""

    directory: RunDirectory
    config: RunConfig
    checkpoint: Checkpoint
    model: Model
    metadata: dict[str, Any]

    @classmethod
    @checks.arguments
    def open(cls, directory: Path | str, *, which: Literal["best", "last"] = "best") -> "Run":
        """The best model of a run by validation, or the last; damaged checkpoints are left out."""
        keep_memory()
        where = RunDirectory(Path(directory))
        config = where.read_config()
        last, problems = where.newest()
        if last is None:
            raise ValueError(
                f"{directory} has no whole checkpoint: "
                + ("; ".join(problems) or "the run was stopped before its first; --resume it")
            )
        best = where.at(last.state()["best"]) if which == "best" else None
        chosen = best or last
        return cls(where, config, chosen, from_pretrained(chosen.path), where.read_metadata())

    @property
    def name(self) -> str:
        """Of its recipe."""
        return self.config.recipe

    def task(self, log: Log = print) -> Task:
        """The task with its data."""
        return self.config.task.open(
            self.config.training.seed, self.directory.path, metadata=self.metadata, log=log
        )
