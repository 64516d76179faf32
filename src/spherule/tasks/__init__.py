"""Tasks: what models are trained for. One file each; importing it makes it known."""

from spherule.tasks.depth import DepthConfig, DepthTask
from spherule.tasks.forecast import ForecastConfig, ForecastTask
from spherule.tasks.segmentation import SegmentationConfig, SegmentationTask
from spherule.tasks.shallow_water import ShallowWaterTask, ShallowWaterTaskConfig

__all__ = [
    "DepthConfig",
    "DepthTask",
    "ForecastConfig",
    "ForecastTask",
    "SegmentationConfig",
    "SegmentationTask",
    "ShallowWaterTask",
    "ShallowWaterTaskConfig",
]
