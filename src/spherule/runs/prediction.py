"""A run's model on a user's file."""

from pathlib import Path

from spherule import checks
from spherule.data.field_files import Source
from spherule.runs.run import Run
from spherule.train import ranks
from spherule.train.task import Log


@checks.arguments
def predict(
    run: Run,
    source: Source,
    target: Path,
    *,
    steps: int = 1,
    device: str = "auto",
    log: Log = print,
) -> None:
    """What comes out is the task's business: fields a lead later, or an image. Forecasts go on from
    there for so many steps. Processes under torchrun share each field.
    """
    where = ranks.choose_device(device)
    with ranks.process_group(where):
        run.config.task.predict(
            run.model, run.metadata, source, target, steps=steps, device=where, log=log
        )
