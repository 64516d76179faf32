"""Data to train on."""

from spherule.data.augment import Augmentation
from spherule.data.panorama_store import PanoramaSource, write_panoramas
from spherule.data.panoramas import (
    CLASSES,
    BadPanorama,
    Panorama,
    PanoramaDataset,
    PanoramaStatistics,
    depth_mask,
)
from spherule.data.shallow_water import (
    ConsecutiveBatches,
    ShallowWaterConfig,
    ShallowWaterDataset,
)
from spherule.data.shallow_water_store import StoredShallowWater, write_store
from spherule.data.stanford import StanfordSource
from spherule.data.statistics import Statistics
from spherule.data.trajectories import AgedShallowWater

__all__ = [
    "CLASSES",
    "AgedShallowWater",
    "Augmentation",
    "BadPanorama",
    "ConsecutiveBatches",
    "Panorama",
    "PanoramaDataset",
    "PanoramaSource",
    "PanoramaStatistics",
    "ShallowWaterConfig",
    "ShallowWaterDataset",
    "StanfordSource",
    "Statistics",
    "StoredShallowWater",
    "depth_mask",
    "write_panoramas",
    "write_store",
]
