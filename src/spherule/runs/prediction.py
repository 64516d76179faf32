"""A run's model on a user's file."""

from pathlib import Path

from spherule.runs.run import Run
from spherule.train.ranks import choose_device
from spherule.train.task import Log


def predict(
    run: Run, source: Path, target: Path, *, device: str = "auto", log: Log = print
) -> None:
    """What comes out is the task's business: fields a lead later, or an image."""
    where = choose_device(device)
    run.config.task.predict(run.model, run.metadata, source, target, device=where, log=log)
