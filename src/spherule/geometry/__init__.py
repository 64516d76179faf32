"""What follows from grids alone, without data: harmonics, transform tables, neighborhoods."""

from spherule.geometry.neighborhood import Neighborhood

__all__ = ["Neighborhood"]
