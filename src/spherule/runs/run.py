"""A run on disk, opened: its best model, its last, or the one that was published of it."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from spherule import checks, tasks
from spherule.allocator import keep_memory
from spherule.files import read_json
from spherule.models import Model, from_pretrained
from spherule.runs.directory import RunDirectory
from spherule.train import ranks
from spherule.train.checkpoint import Checkpoint
from spherule.train.run_config import RunConfig
from spherule.train.task import Log, Task

PUBLISHED: dict[str, type] = {"config": dict, "metadata": dict, "step": int}
"""What is kept of the run of a published model."""

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
        """The best model of a run by validation, or the last; damaged checkpoints are left out. Of
        what `publish` wrote, the model.
        """
        keep_memory()
        where = RunDirectory(Path(directory))
        if where.published.exists():
            return cls._published(where)
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

    @classmethod
    def _published(cls, where: RunDirectory) -> "Run":
        kept = read_json(where.published, **PUBLISHED)
        checkpoint = Checkpoint(where.path, kept["step"])
        try:
            config = RunConfig.from_dict(kept["config"])
        except (TypeError, ValueError) as error:
            raise ValueError(f"{where.published}: {error}") from error
        return cls(where, config, checkpoint, from_pretrained(where.path), kept["metadata"])

    @property
    def name(self) -> str:
        """Of its recipe."""
        return self.config.recipe

    @property
    def is_forecast(self) -> bool:
        """Whether its model looks ahead in time; then it has scores, and can be rolled out."""
        return "lead" in self.metadata

    def task(self, log: Log = print) -> Task:
        """The task with its data."""
        try:
            with ranks.in_turn():  # what a task makes in the directory, the others find there
                return self.config.task.open(
                    self.config.training.seed, self.directory.path, metadata=self.metadata, log=log
                )
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error}; if the run's data have moved, spherule train --resume --out "
                f"{shlex.quote(str(self.directory.path))} --data WHERE tells it"
            ) from None
