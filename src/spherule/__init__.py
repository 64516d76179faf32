"""Attention, and everything around it, for fields that live on a sphere."""

from importlib.metadata import version

from spherule import data, distributed, geometry, grids, models, nn, objectives, ops, pde, rooms
from spherule.geometry import Neighborhood
from spherule.grids import Grid
from spherule.ops import equivariance_error

__version__ = version("spherule")
__all__ = [
    "Grid",
    "Neighborhood",
    "__version__",
    "data",
    "distributed",
    "equivariance_error",
    "geometry",
    "grids",
    "models",
    "nn",
    "objectives",
    "ops",
    "pde",
    "rooms",
]
