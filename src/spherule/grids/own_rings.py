"""Rings at latitudes that no family has: which areas their points stand for."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]


class Bands(NamedTuple):
    """Colatitudes, the area of each whole ring, and where its edges come from."""

    theta: Reals
    areas: Reals
    how: str


class Points(NamedTuple):
    """Rings as `Grid.from_rings` takes them, with the area of each whole ring."""

    theta: Reals
    nphi: NDArray[np.int64]
    phi0: Reals
    areas: Reals
    how: str


def cover_the_sphere(lat: NDArray) -> bool:
    """Whether latitudes, from north to south, leave no more than a step to either pole."""
    if lat.size < 3:
        return False
    step = -np.diff(lat)
    margin = 1.05
    return bool(90 - lat[0] <= margin * step[0] and 90 + lat[-1] <= margin * step[-1])


def are_uneven(lat: NDArray) -> bool:
    """Steps differ by more than those of a Gaussian grid, or of one with a row too few."""
    step = -np.diff(lat)
    return bool(step.max() > 1.05 * step.min())


def bands(lat: NDArray, bounds: NDArray | None = None, *, whole: bool = True) -> Bands:
    """From north to south; edges in the middle between rings where `bounds` don't tile. Unless they
    are the `whole` sphere, the outermost rings end as far from their points as they begin.
    """
    theta = np.radians(90 - np.clip(lat, -90, 90))
    middle = (theta[1:] + theta[:-1]) / 2
    ends = (0.0, np.pi) if whole else (2 * theta[0] - middle[0], 2 * theta[-1] - middle[-1])
    edges = np.concatenate([ends[:1], middle, ends[1:]])
    how = "the middle between them"
    if bounds is not None and bounds.shape == (lat.size, 2):
        given = np.radians(90 - np.clip(bounds.astype(np.float64), -90, 90))
        north, south = given.min(1), given.max(1)
        reach = np.allclose([north[0], south[-1]], [0, np.pi], atol=1e-5)
        if reach and np.allclose(north[1:], south[:-1], atol=1e-5):
            edges, how = np.append(north, np.pi), "their bounds"
            edges[0] = 0.0
    return Bands(theta, 2 * np.pi * -np.diff(np.cos(edges)), how)


def of_points(
    lat: NDArray, lon: NDArray, tolerance: float, *, partial: bool = False
) -> Points | None:
    """The rings of scattered points, if each latitude's longitudes are equally spaced; `partial`:
    also if they leave out a cap.
    """
    order = np.argsort(-lat, kind="stable")
    breaks = np.flatnonzero(-np.diff(lat[order]) > tolerance) + 1
    groups = np.split(order, breaks)
    latitudes = np.array([lat[group].mean() for group in groups])
    whole = cover_the_sphere(latitudes)
    if not whole and (not partial or latitudes.size < 3):
        return None
    first = []
    for group, latitude in zip(groups, latitudes, strict=True):
        cell = 360 / group.size
        offsets = np.sort(lon[group] % 360) - cell * np.arange(group.size)
        # A point just west of the meridian comes last, a cell later than the rest.
        if np.ptp(offsets) * np.cos(np.radians(latitude)) > 2 * tolerance:
            return None
        first.append(np.radians(offsets.mean()))
    theta, areas, how = bands(latitudes, whole=whole)
    return Points(theta, np.array([g.size for g in groups]), np.array(first), areas, how)
