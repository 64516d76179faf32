"""A run's directory: begin it, go on with it, open it.

config.json        what was asked for
problem.json       names, units and statistics of the data: what predictions need
metrics.jsonl      every step, every epoch
checkpoints/       the last two and the best
evaluation.json    metrics over test samples, when they were made
"""

import dataclasses
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch

from spherule.models import Model, build, from_pretrained
from spherule.train import ranks
from spherule.train.checkpoint import Checkpoint, checkpoints, damage, newest_whole
from spherule.train.config import RunConfig, differences
from spherule.train.journal import METRICS
from spherule.train.loop import Trainer, Watch
from spherule.train.problem import Problem, Say

CONFIG, PROBLEM, EVALUATION, CHECKPOINTS = (
    "config.json",
    "problem.json",
    "evaluation.json",
    "checkpoints",
)
MAY_CHANGE = {
    "training.epochs",
    "training.workers",
    "training.device",
    "training.save_every",
    "training.accumulate",
}
"""What may be another when a run is resumed."""


def train(
    config: RunConfig,
    directory: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    init: Path | None = None,
    watch: Watch | None = None,
    say: Say = print,
) -> Path:
    """Train to the end, in this directory; `init` is a run whose best weights are the start."""
    device = ranks.choose_device(config.training.device)
    with ranks.process_group(device) as (rank, world):
        if rank == 0:
            _require_free(config, directory, resume=resume, overwrite=overwrite)
            directory.mkdir(parents=True, exist_ok=True)
            problem = config.task.open(config.training.seed, directory, say)
            if overwrite:
                _clear(directory)
            config.save(directory / CONFIG)
        ranks.wait()
        if rank != 0:
            problem = config.task.open(config.training.seed, directory)
        model = build_for(config, problem)
        trainer = Trainer(config, problem, model, directory, rank=rank, world=world, say=say)
        found = _found(directory, say if rank == 0 else _silent) if resume else None
        if found is not None:
            trainer.restore(found)
            say(f"going on from step {trainer.step} of {trainer.steps}")
        elif init is not None:
            _start_from(model, init)
        if rank == 0 and found is None:
            (directory / PROBLEM).write_text(json.dumps(problem.describe(), indent=2) + "\n")
        ranks.wait()
        trainer.run(watch)
    return directory


def build_for(config: RunConfig, problem: Problem) -> Model:
    """The model with the grid and channels of the problem, and weights of the run's seed."""
    torch.manual_seed(config.training.seed)
    return build(
        dataclasses.replace(
            config.model,
            grid=problem.grid.name,
            in_channels=problem.in_channels,
            out_channels=problem.out_channels,
        )
    )


@dataclass(frozen=True)
class Run:
    """A run on disk, with a trained model."""

    directory: Path
    config: RunConfig
    checkpoint: Checkpoint
    model: Model
    problem: dict[str, Any]

    @classmethod
    def open(cls, directory: Path, *, which: Literal["best", "last"] = "best") -> "Run":
        """The best model of a run by validation, or the last; damaged checkpoints are left out."""
        config = RunConfig.load(_require_run(directory) / CONFIG)
        last, problems = newest_whole(directory / CHECKPOINTS)
        if last is None:
            raise ValueError(
                f"{directory} has no whole checkpoint: "
                + ("; ".join(problems) or "the run was stopped before its first; --resume it")
            )
        chosen = last
        if which == "best":
            best = last.state()["best"]
            for other in checkpoints(directory / CHECKPOINTS):
                if other.step == best and damage(other) is None:
                    chosen = other
        described = json.loads((directory / PROBLEM).read_text())
        return cls(directory, config, chosen, from_pretrained(chosen.path), described)

    @property
    def name(self) -> str:
        """Of its recipe."""
        return self.config.recipe

    def data(self) -> Problem:
        """The task with its data."""
        return self.config.task.open(self.config.training.seed, self.directory)


def recorded_config(directory: Path) -> RunConfig:
    """The config of the run in a directory."""
    return RunConfig.load(_require_run(directory) / CONFIG)


def _require_free(config: RunConfig, directory: Path, *, resume: bool, overwrite: bool) -> None:
    """This run may go into the directory."""
    there = (directory / CONFIG).exists()
    if resume and overwrite:
        raise ValueError("--resume and --overwrite exclude each other")
    if resume:
        changed = differences(RunConfig.load(_require_run(directory) / CONFIG), config)
        if refused := sorted(changed.keys() - MAY_CHANGE):
            raise ValueError(
                f"{directory} holds another run: "
                + ", ".join(f"{k}={changed[k][0]!r} there, {changed[k][1]!r} here" for k in refused)
                + "; give another --out for it"
            )
    elif there and not overwrite:
        raise FileExistsError(
            f"{directory} already holds a run: --resume goes on with it, --overwrite begins anew"
        )


def _clear(directory: Path) -> None:
    """Remove a run's own files, and nothing else."""
    for name in (CONFIG, PROBLEM, EVALUATION, METRICS):
        (directory / name).unlink(missing_ok=True)
    for name in (CHECKPOINTS, "tensorboard"):
        shutil.rmtree(directory / name, ignore_errors=True)


def _found(directory: Path, say: Say) -> Checkpoint | None:
    """The checkpoint to go on from; damaged ones are named and left behind."""
    found, problems = newest_whole(directory / CHECKPOINTS)
    for problem in problems:
        say(f"damaged: {problem}")
    if problems:
        say(
            f"using {found.path.name} instead"
            if found
            else "no checkpoint is whole: beginning anew"
        )
    elif found is None:
        say("no checkpoint yet: beginning anew")
    return found


def _start_from(model: Model, init: Path) -> None:
    weights = Run.open(init).model.state_dict()
    own = model.state_dict()
    wrong = [n for n in own.keys() | weights.keys()
             if n not in own or n not in weights or own[n].shape != weights[n].shape]  # fmt: skip
    if wrong:
        raise ValueError(
            f"init={init}: its weights don't fit this model: {', '.join(sorted(wrong)[:5])}"
        )
    model.load_state_dict(weights)


def _require_run(directory: Path) -> Path:
    if not (directory / CONFIG).exists():
        raise FileNotFoundError(
            f"{directory} holds no run: begin one with spherule train RECIPE --out {directory}"
        )
    return directory


def _silent(text: str) -> None:
    pass
