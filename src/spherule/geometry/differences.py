"""Finite differences on ring grids, as sparse matrices: which points, with which weights, make a
derivative.

Meridians go on over the poles: behind the first ring lies that ring again, half a turn away.
"""

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.interpolation import Entries
from spherule.grids import Grid

_TINY = 1e-9


def slope_entries(grid: Grid) -> Entries:
    """d/dtheta: three rings, second order for rings at any distances.

    Where the rings' longitudes differ, their values at a point's longitude are interpolated
    cubically, which leaves the order as it is.
    """
    parts = []
    for ring in range(grid.nrings):
        here = grid.theta[ring]
        upper, lower = _neighbor(grid, ring, -1), _neighbor(grid, ring, 1)
        if upper is None or lower is None:
            continue
        above, below = here - upper[1], lower[1] - here
        parts += [
            _row(grid, ring, upper[0], upper[2], -below / (above * (above + below))),
            _row(grid, ring, ring, 0.0, (below - above) / (above * below)),
            _row(grid, ring, lower[0], lower[2], above / (below * (above + below))),
        ]
    return _summed(parts, grid.size)


def shear_entries(grid: Grid) -> Entries:
    """(1 / sin theta) d/dphi: central differences on the ring.

    At a pole it is the slope a quarter of a turn away, which is its limit.
    """
    parts = []
    for ring in range(grid.nrings):
        sin, step = np.sin(grid.theta[ring]), 2 * np.pi / grid.nphi[ring]
        if sin > _TINY:
            across, size = ring, 2 * step * sin
        elif (beside := _neighbor(grid, ring, 1 if ring == 0 else -1)) is not None:
            across, step = beside[0], np.pi / 2
            size = 2 * abs(beside[1] - grid.theta[ring])
        else:
            continue
        parts += [
            _row(grid, ring, across, step, 1 / size),
            _row(grid, ring, across, -step, -1 / size),
        ]
    return _summed(parts, grid.size)


def at_poles(grid: Grid) -> NDArray[np.bool_]:
    """Which rings are a pole."""
    return np.sin(grid.theta) <= _TINY


def _neighbor(grid: Grid, ring: int, direction: int) -> tuple[int, float, float] | None:
    """The next ring, its theta on the meridian circle, and the turn in longitude on the way."""
    other = ring + direction
    if 0 <= other < grid.nrings:
        return other, float(grid.theta[other]), 0.0
    # Over the pole: the same ring again, or from the pole itself the one beside it.
    other = ring if not at_poles(grid)[ring] else ring - direction
    if not 0 <= other < grid.nrings:
        return None
    theta = float(grid.theta[other])
    return other, -theta if direction < 0 else 2 * np.pi - theta, np.pi


def _row(grid: Grid, ring: int, other: int, turn: float, weight: float) -> Entries:
    """For each point of a ring, the value of another ring at its longitude plus a turn, times a
    weight.
    """
    start, count = int(grid.ringstart[ring]), int(grid.nphi[ring])
    phi = grid.point_phi[start : start + count] + turn
    nphi = int(grid.nphi[other])
    position = (phi - grid.phi0[other]) * nphi / (2 * np.pi)
    position = np.where(np.abs(position - np.rint(position)) < _TINY, np.rint(position), position)
    west = np.floor(position)
    s = position - west
    # Lagrange's polynomials through as many points as the ring can give.
    if nphi >= 4:
        shares = {
            -1: -s * (s - 1) * (s - 2) / 6,
            0: (s + 1) * (s - 1) * (s - 2) / 2,
            1: -(s + 1) * s * (s - 2) / 2,
            2: (s + 1) * s * (s - 1) / 6,
        }
    else:
        shares = {0: 1 - s, 1: s}
    rows = np.tile(np.arange(start, start + count), len(shares))
    columns = np.concatenate([(west.astype(np.int64) + k) % nphi for k in shares])
    return Entries(
        rows, grid.ringstart[other] + columns, weight * np.concatenate(list(shares.values()))
    )


def _summed(parts: list[Entries], size: int) -> Entries:
    """All entries, those of one place added up, zeros left out."""
    empty = Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    row, column, weight = (np.concatenate(arrays) for arrays in zip(empty, *parts, strict=True))
    places, index = np.unique(row * size + column, return_inverse=True)
    total = np.bincount(index, weight, minlength=places.size)
    used = np.abs(total) > 1e-12 * np.abs(weight).max(initial=0.0)
    return Entries(places[used] // size, places[used] % size, total[used])
