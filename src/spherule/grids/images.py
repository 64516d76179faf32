"""The grid of panoramas."""

from functools import lru_cache

from spherule.grids.grid import Grid


@lru_cache(maxsize=8)
def image_grid(rows: int, columns: int) -> Grid:
    """The grid of an image's pixels: they are equal cells in latitude and longitude, and its points
    their centres.
    """
    return Grid.fejer(rows, columns, offset=0.5)
