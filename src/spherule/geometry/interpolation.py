"""Interpolation from a ring grid: which of its points, with which weights, make another."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.great_circles import haversine
from spherule.grids import Grid


class Entries(NamedTuple):
    """A sparse matrix as a list of entries."""

    row: NDArray[np.int64]
    column: NDArray[np.int64]
    weight: NDArray[np.float64]


def bilinear_entries(source: Grid, theta: NDArray[np.float64], phi: NDArray[np.float64]) -> Entries:
    """Linear in longitude on the two rings around a point, then linear in colatitude.

    Beyond the last ring, the pole itself is the next: its value is the mean of that ring, which is
    second order as well. Rows sum to 1.
    """
    rows = np.arange(theta.size)
    north = np.searchsorted(source.theta, theta, side="right") - 1  # -1 is the pole
    south = north + 1
    upper = np.where(north < 0, 0.0, source.theta[np.maximum(north, 0)])
    last = source.nrings - 1
    lower = np.where(south > last, np.pi, source.theta[np.minimum(south, last)])
    # On a ring at the south pole itself there is nothing below.
    t = np.where(lower > upper, (theta - upper) / np.where(lower > upper, lower - upper, 1.0), 0.0)
    parts = []
    for ring, share in ((north, 1 - t), (south, t)):
        inside = (ring >= 0) & (ring <= last) & (share > 0)
        parts += _on_ring(source, rows[inside], ring[inside], phi[inside], share[inside])
        for pole, edge in ((ring < 0, 0), (ring > last, last)):
            parts += _ring_mean(source, rows[pole & (share > 0)], edge, share[pole & (share > 0)])
    return Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def nearest_points(
    source: Grid, theta: NDArray[np.float64], phi: NDArray[np.float64]
) -> NDArray[np.int64]:
    """For each point (theta, phi) the index of the source point at the least geodesic distance."""
    below = np.searchsorted(source.theta, theta)
    best = np.full(theta.size, np.inf)
    index = np.zeros(theta.size, dtype=np.int64)
    for direction, first in ((-1, below - 1), (1, below)):
        # Walk away from the point's latitude until a ring alone is farther than the best point so
        # far.
        for step in range(source.nrings):
            ring = first + direction * step
            rows = np.flatnonzero((ring >= 0) & (ring < source.nrings))
            ring = ring[rows]
            away = haversine(theta[rows], source.theta[ring], 0.0)
            near = away < best[rows]
            if not near.any():
                break
            rows, ring = rows[near], ring[near]
            position = _position(source, ring, phi[rows])
            column = np.rint(position)
            turn = (position - column) * (2 * np.pi) / source.nphi[ring]
            distance = haversine(theta[rows], source.theta[ring], turn)
            closer = distance < best[rows]
            rows, ring, column = rows[closer], ring[closer], column[closer]
            best[rows] = distance[closer]
            index[rows] = source.ringstart[ring] + column.astype(np.int64) % source.nphi[ring]
    return index


def _position(source: Grid, ring: NDArray[np.int64], phi: NDArray[np.float64]) -> NDArray:
    """Longitude in cells from the ring's first point; whole, up to rounding, at a point."""
    position = (phi - source.phi0[ring]) * source.nphi[ring] / (2 * np.pi)
    whole = np.rint(position)
    return np.where(np.abs(position - whole) < 1e-9, whole, position)


def _on_ring(
    source: Grid, rows: NDArray, ring: NDArray, phi: NDArray, share: NDArray
) -> list[Entries]:
    position = _position(source, ring, phi)
    west = np.floor(position)
    s = position - west
    parts = []
    for column, part in ((west, 1 - s), (west + 1, s)):
        used = part > 0
        point = source.ringstart[ring] + column.astype(np.int64) % source.nphi[ring]
        parts.append(Entries(rows[used], point[used], (share * part)[used]))
    return parts


def _ring_mean(source: Grid, rows: NDArray, ring: int, share: NDArray) -> list[Entries]:
    nphi = int(source.nphi[ring])
    points = source.ringstart[ring] + np.arange(nphi)
    return [
        Entries(np.repeat(rows, nphi), np.tile(points, rows.size), np.repeat(share / nphi, nphi))
    ]
