"""Training a run in its directory: begin it, go on with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from spherule import checks
from spherule.allocator import keep_memory
from spherule.models import Model, build
from spherule.runs.directory import RunDirectory
from spherule.runs.run import Run
from spherule.train import ranks
from spherule.train.checkpoint import Checkpoint
from spherule.train.loop import OnStep, Trainer
from spherule.train.run_config import RunConfig, differences
from spherule.train.task import Log, Task

MAY_CHANGE = {
    "training.epochs",
    "training.workers",
    "training.device",
    "training.save_every",
    "training.accumulate",
    "training.domain",
    "task.data",
}
"""What may be another when a run is resumed."""


@checks.arguments
def train(
    config: RunConfig,
    directory: Path | str,
    *,
    resume: bool = False,
    overwrite: bool = False,
    init: Path | None = None,
    on_step: OnStep | None = None,
    log: Log = print,
) -> Path:
    """Train to the end; the directory of the run is returned.

    Args:
        config: task, model and training, such as `recipes.get` gives.
        directory: where checkpoints and records go.
        resume: go on with what is there, after a kill too.
        overwrite: remove the run that is there.
        init: a run whose best weights are the start.
        on_step: called after each step with what happened.
        log: gets what is to be said on the way.
    """
    keep_memory()
    if resume and init is not None:
        raise ValueError(
            "--resume and --init exclude each other: a run goes on from its own weights"
        )
    where = RunDirectory(Path(directory))
    device = ranks.choose_device(config.training.device)
    with (
        ranks.process_group(device) as (rank, world),
        _claimed(where, config, rank, resume, overwrite),
    ):
        log = log if rank == 0 else _mute
        metadata = where.read_metadata() if resume else None
        task = _opened(config, where.path, metadata, log)
        model = build_for(config, task)
        trainer = Trainer(
            task, model, config.training, where.checkpoints, rank=rank, world=world, log=log
        )
        checkpoint = _checkpoint(where, log) if resume else None
        if checkpoint is not None:
            trainer.restore(checkpoint)
            if trainer.step > trainer.steps:
                raise ValueError(
                    f"{where.path} is at step {trainer.step} already, beyond the {trainer.steps} "
                    f"that --epochs {config.training.epochs} are"
                )
            log(f"going on from step {trainer.step} of {trainer.steps}")
        elif init is not None:
            _start_from(model, init)
        else:
            if rank == 0:
                model.fit(task.fitting_batches(model.fitting_samples), steady=True)
            ranks.agree(model)
        if rank == 0:  # not before: nothing is begun, or overwritten, for a run that cannot begin
            _write_down(where, config, task, overwrite=overwrite)
        ranks.wait()
        journal = where.journal(trainer.step) if rank == 0 else None
        try:
            trainer.run(journal, on_step)
        finally:
            if journal is not None:
                journal.close()
    return where.path


def _opened(config: RunConfig, directory: Path, metadata: dict[str, Any] | None, log: Log) -> Task:
    """The task with its data. What rank 0 makes in the directory, or measures of the data, the
    others find there or are told.
    """
    if ranks.is_first():
        task = config.task.open(config.training.seed, directory, metadata=metadata, log=log)
        metadata = task.metadata()
    metadata = ranks.from_first(metadata)
    if not ranks.is_first():
        task = config.task.open(config.training.seed, directory, metadata=metadata, log=log)
    return task


def build_for(config: RunConfig, task: Task) -> Model:
    """The model with the grid and channels of the task, and weights of the run's seed."""
    torch.manual_seed(config.training.seed)
    return build(config.model, task.grid, task.in_channels, task.out_channels)


@contextmanager
def _claimed(
    where: RunDirectory, config: RunConfig, rank: int, resume: bool, overwrite: bool
) -> Iterator[None]:
    """The directory is there and this training's own; one that was made for a run which could not
    begin goes again.
    """
    if rank != 0:
        yield
        return
    _require_free(config, where, resume=resume, overwrite=overwrite)
    new = [path for path in (where.path, *where.path.parents) if not path.exists()]
    where.path.mkdir(parents=True, exist_ok=True)
    with where.locked():
        try:
            _require_free(config, where, resume=resume, overwrite=overwrite)  # still, and for good
            yield
        except BaseException:
            if new and not where.exists():
                where.lock.unlink(missing_ok=True)
                for path in new:
                    if not any(path.iterdir()):
                        path.rmdir()
            raise


def _write_down(where: RunDirectory, config: RunConfig, task: Task, *, overwrite: bool) -> None:
    """What is asked for, and what the data are, unless that stands there already."""
    if overwrite:
        where.clear()
    if not where.exists() or differences(where.read_config(), config):
        config.save(where.config)
    if not where.metadata.exists():
        where.write_metadata(task.metadata())


def _require_free(config: RunConfig, where: RunDirectory, *, resume: bool, overwrite: bool) -> None:
    """This run may go into the directory."""
    if resume and overwrite:
        raise ValueError("--resume and --overwrite exclude each other")
    if where.published.exists():
        raise FileExistsError(f"{where.path} holds a published model; give another --out")
    if resume:
        changed = differences(where.read_config(), config)
        if refused := sorted(changed.keys() - MAY_CHANGE):
            raise ValueError(
                f"{where.path} holds another run: "
                + ", ".join(f"{k}={changed[k][0]!r} there, {changed[k][1]!r} here" for k in refused)
                + "; give another --out for it"
            )
    elif where.exists() and not overwrite:
        raise FileExistsError(
            f"{where.path} already holds a run: --resume goes on with it, --overwrite begins anew"
        )


def _checkpoint(where: RunDirectory, log: Log) -> Checkpoint | None:
    """The checkpoint to go on from; damaged ones are named and left behind."""
    checkpoint, problems = where.newest()
    for problem in problems:
        log(f"damaged: {problem}")
    if problems:
        log(
            f"using {checkpoint.path.name} instead"
            if checkpoint
            else "no checkpoint is whole: beginning anew"
        )
    elif checkpoint is None:
        log("no checkpoint yet: beginning anew")
    return checkpoint


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


def _mute(text: str) -> None:
    pass
