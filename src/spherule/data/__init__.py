"""Data to train on."""

from spherule.data.shallow_water import (
    ConsecutiveBatches,
    ShallowWaterConfig,
    ShallowWaterDataset,
    Statistics,
)
from spherule.data.store import StoredShallowWater, write_store

__all__ = [
    "ConsecutiveBatches",
    "ShallowWaterConfig",
    "ShallowWaterDataset",
    "Statistics",
    "StoredShallowWater",
    "write_store",
]
