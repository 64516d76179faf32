"""Point sets on the sphere and their quadrature."""

from spherule.grids import healpix
from spherule.grids.grid import Grid
from spherule.grids.images import image_grid
from spherule.grids.match import Match

__all__ = ["Grid", "Match", "healpix", "image_grid"]
