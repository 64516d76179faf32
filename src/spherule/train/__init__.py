"""Training: what knows no task. Loop, optimizer, schedule, checkpoints, journal, ranks."""

from spherule.train.loop import Interrupted, StepEvent, Trainer
from spherule.train.measure import measure
from spherule.train.run_config import RunConfig
from spherule.train.task import TASKS, Task, TaskConfig, Trained
from spherule.train.training_config import TrainingConfig

__all__ = [
    "TASKS",
    "Interrupted",
    "RunConfig",
    "StepEvent",
    "Task",
    "TaskConfig",
    "Trained",
    "Trainer",
    "TrainingConfig",
    "measure",
]
