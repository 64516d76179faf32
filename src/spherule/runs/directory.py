"""A run's directory: every name in it stands here, once."""

import multiprocessing.util
import os
import shlex
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spherule.files import read_json, write_json
from spherule.train.checkpoint import Checkpoint, checkpoints, damage, newest_whole, remove
from spherule.train.journal import Journal, read_journal
from spherule.train.run_config import RunConfig


@dataclass(frozen=True)
class RunDirectory:
    """The files of a run; what its task makes beside them has names of the task's own.

    config.json        what was asked for
    metadata.json      names, units and statistics of the data: what predictions need
    metrics.jsonl      every step, every epoch
    checkpoints/       the last two and the best
    evaluation.json    metrics over test samples, when they were made
    scores.json        of a forecast, in its variables' own units
    tensorboard/       where TensorBoard is installed
    report.html, rollout/    what these commands make, unless they are told where
    run.json           of a published model, in place of config, metadata and checkpoints
    """

    path: Path

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    @property
    def metadata(self) -> Path:
        # Version 0.1.0 called it problem.json.
        old, new = self.path / "problem.json", self.path / "metadata.json"
        return old if old.exists() and not new.exists() else new

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def evaluation(self) -> Path:
        return self.path / "evaluation.json"

    @property
    def scores(self) -> Path:
        return self.path / "scores.json"

    @property
    def published(self) -> Path:
        return self.path / "run.json"

    @property
    def tensorboard(self) -> Path:
        return self.path / "tensorboard"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def rollout(self) -> Path:
        return self.path / "rollout"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    def exists(self) -> bool:
        """Whether a run was begun here."""
        return self.config.exists()

    def require(self) -> "RunDirectory":
        """Itself, or an error where no run was begun."""
        if self.path.parent.name == self.checkpoints.name:
            run = self.path.parent.parent
            raise ValueError(f"{self.path} is a checkpoint of a run; give the run itself, {run}")
        if not self.exists():
            raise FileNotFoundError(
                f"{self.path} holds no run: begin one with spherule train RECIPE --out "
                f"{shlex.quote(str(self.path))}"
            )
        return self

    def read_config(self) -> RunConfig:
        """What was asked for."""
        return RunConfig.load(self.require().config)

    def read_metadata(self) -> dict[str, Any]:
        """What the task kept of its data."""
        try:
            return read_json(self.metadata)
        except FileNotFoundError as error:
            raise ValueError(
                f"{error}: the run was stopped as it began; begin it anew with --overwrite"
            ) from None

    def write_metadata(self, values: dict[str, Any]) -> None:
        """Keep what predictions need to know of the data."""
        write_json(self.metadata, values)

    def journal(self, after: int) -> Journal:
        """To write to; records after a step are forgotten."""
        return Journal(self.metrics, after=after, board=self.tensorboard)

    def records(self) -> list[dict[str, Any]]:
        """What the journal says."""
        return read_journal(self.metrics)

    def newest(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest checkpoint that is whole, and what is wrong with those after it."""
        return newest_whole(self.checkpoints)

    def at(self, step: int | None) -> Checkpoint | None:
        """The checkpoint of a step, if it is there and whole."""
        for checkpoint in checkpoints(self.checkpoints):
            if checkpoint.step == step and damage(checkpoint) is None:
                return checkpoint
        return None

    def clear(self) -> None:
        """Remove the run's own files, links among them unfollowed, and nothing else."""
        own = (self.config, self.metadata, self.evaluation, self.scores, self.metrics)
        for path in (*own, self.checkpoints, self.tensorboard):
            remove(path)
        remove(self.metadata)  # where there was an old one beside the new

    @contextmanager
    def locked(self) -> Iterator[None]:
        """For one training at a time. The lock dies with its process, however that ends."""
        try:
            import fcntl
        except ModuleNotFoundError:  # not on Windows
            yield
            return
        with self.lock.open("a+") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                other = file.read().strip() or "another process"
                raise BlockingIOError(
                    f"{self.path} is being trained by {other}: wait for it, or give another --out"
                ) from None
            # Else workers, which look for their parent every few seconds only, would keep it.
            multiprocessing.util.register_after_fork(file, type(file).close)
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            yield
