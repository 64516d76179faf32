"""Distances and angles between points of the unit sphere, none of which loses digits for near ones.

Points are given by colatitude theta and longitude; `turn` is how far east the other one lies.
"""

import math

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


def haversine(theta: Reals | float, other: Reals | float, turn: Reals | float) -> Reals:
    """sin^2 of half the geodesic distance: grows with it, and is cheaper."""
    apart = np.sin((other - theta) / 2) ** 2
    return np.asarray(apart + np.sin(theta) * np.sin(other) * np.sin(turn / 2) ** 2)


def distance(theta: Reals | float, other: Reals | float, turn: Reals | float) -> Reals:
    """The geodesic distance, radians."""
    return np.asarray(2 * np.arcsin(np.sqrt(np.minimum(haversine(theta, other, turn), 1.0))))


def seen_from(theta: float, other: Reals, turn: Reals) -> tuple[Reals, Reals]:
    """The distances of other points, and their azimuths in [0, 2 pi) from south over east."""
    east = np.sin(other) * np.sin(turn)
    south = np.sin(other - theta) - 2 * np.sin(other) * np.cos(theta) * np.sin(turn / 2) ** 2
    return distance(theta, other, turn), np.arctan2(east, south) % (2 * math.pi)


def angles(xyz: Reals) -> tuple[Reals, Reals]:
    """Colatitude, and longitude in [-pi, pi], of vectors (..., 3) of any length."""
    x, y, z = np.moveaxis(xyz, -1, 0)
    return np.arctan2(np.hypot(x, y), z), np.arctan2(y, x)
