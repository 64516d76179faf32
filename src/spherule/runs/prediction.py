"""A run's model on a user's file."""

from pathlib import Path

from spherule import checks
from spherule.data.field_files import Source
from spherule.runs.run import Run
from spherule.tasks.fields import FieldConfig
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
    where, task, model = ranks.choose_device(device), run.config.task, run.model
    with ranks.process_group(where):
        if isinstance(task, FieldConfig):
            task.predict(model, run.metadata, source, target, steps=steps, device=where, log=log)
            return
        if steps != 1 or not isinstance(source, (str, Path)):
            raise ValueError(f"{run.name} is no forecast: it takes a file, and one step")
        task.predict(model, run.metadata, Path(source), target, device=where, log=log)
