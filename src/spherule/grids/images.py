"""The grid of panoramas."""

from functools import lru_cache

from spherule import checks
from spherule.grids.grid import Grid


@checks.arguments
def image_grid(rows: int, columns: int) -> Grid:
    """The grid of an image's pixels: they are equal cells in latitude and longitude, and its points
    their centers.
    """
    checks.integer("rows", rows, low=1, high=2**15)
    checks.integer("columns", columns, low=1, high=2**16)
    return _grid(rows, columns)


@lru_cache(maxsize=8)
def _grid(rows: int, columns: int) -> Grid:
    return Grid.fejer(rows, columns, offset=0.5)
