"""Attention, and everything around it, for fields that live on a sphere."""

from importlib.metadata import version

from spherule import data, geometry, grids, ops, pde
from spherule.grids import Grid

__version__ = version("spherule")
__all__ = ["Grid", "__version__", "data", "geometry", "grids", "ops", "pde"]
