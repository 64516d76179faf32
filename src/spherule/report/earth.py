"""Lines of the Earth: coasts and meridians.

`coastlines.json` is Natural Earth's land at 1:110 million (public domain, naturalearthdata.com),
simplified to a quarter of a degree: for each line the first longitude and latitude in tenths of a
degree, then differences.
"""

import json
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

Line = NDArray[np.float64]
"""Unit vectors (points, 3)."""


@cache
def coastline_numbers() -> list[list[int]]:
    """As they are stored."""
    text = resources.files("spherule.report").joinpath("coastlines.json").read_text("utf-8")
    numbers: list[list[int]] = json.loads(text)
    return numbers


@cache
def coastlines() -> list[Line]:
    """Of all continents and the larger islands."""
    lines = (np.cumsum(np.reshape(row, (-1, 2)), axis=0) / 10 for row in coastline_numbers())
    return [unit(*line.T) for line in lines]


@cache
def graticule(step: int = 30) -> list[Line]:
    """Parallels and meridians."""
    fine = np.arange(-180.0, 181.0, 3.0)
    parallels = [unit(fine, np.full(fine.size, lat)) for lat in range(step - 90, 90, step)]
    to_pole = np.arange(-90.0, 91.0, 3.0)
    meridians = [unit(np.full(to_pole.size, lon), to_pole) for lon in range(-180, 180, step)]
    return parallels + meridians


def unit(longitude: NDArray, latitude: NDArray) -> Line:
    """Unit vectors of places in degrees."""
    lon, lat = np.radians(longitude), np.radians(latitude)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
