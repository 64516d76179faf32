"""Runs: tasks with data, training, checkpoints, evaluation."""

from spherule.train.config import RunConfig, Training
from spherule.train.fields import ForecastTask, ShallowWaterTask
from spherule.train.loop import Interrupted, Report, Trainer
from spherule.train.measure import measure
from spherule.train.panoramas import DepthTask, SegmentationTask
from spherule.train.run import Run, train

__all__ = [
    "DepthTask",
    "ForecastTask",
    "Interrupted",
    "Report",
    "Run",
    "RunConfig",
    "SegmentationTask",
    "ShallowWaterTask",
    "Trainer",
    "Training",
    "measure",
    "train",
]
