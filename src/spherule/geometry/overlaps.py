"""Conservative remapping: how much of each cell of one ring grid lies in which cells of another.

A ring's cells fill a band of latitudes whose area is that of its quadrature weights, and share it
out equally around its points. So integrals by quadrature are those of fields that are constant on
cells, and averaging over overlaps keeps them.
"""

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.interpolation import Entries, nearest_points
from spherule.grids import Grid

# Parts of a cell below this are rounding.
_DUST = 1e-13

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]


def overlap_entries(source: Grid, target: Grid) -> Entries:
    """For each target cell the source cells that it meets, by the part of its area in each; rows
    sum to 1.

    The mean over the sphere, by either grid's weights, stays what it is. A point of weight 0 has no
    area: it takes the value of the nearest source point.
    """
    north, south = _bands(source), _bands(target)
    edges = np.unique(np.concatenate([north, south]))
    middle = (edges[1:] + edges[:-1]) / 2
    rings = [np.searchsorted(b, middle, side="right") - 1 for b in (south, north)]
    parts = []
    for high, r, s in zip(np.diff(edges), *rings, strict=True):
        share = high / (south[r + 1] - south[r])
        if share > _DUST:
            i, j, wide = _along(target, int(r), source, int(s))
            place = target.ringstart[r] + i, source.ringstart[s] + j
            parts.append(Entries(*place, share * wide * target.nphi[r]))
    flat = np.flatnonzero(np.repeat(target.ring_weights == 0, target.nphi))
    nearest = nearest_points(source, target.point_theta[flat], target.point_phi[flat])
    parts.append(Entries(flat, nearest, np.ones(flat.size)))
    return Entries(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _bands(grid: Grid) -> Reals:
    """The edges of the rings' bands, as parts of the sphere's area from the north on."""
    if not grid.covers_sphere:
        raise ValueError(
            f"{grid!r} leaves out a part of the sphere, and conservative remapping needs all of "
            "it; take bilinear"
        )
    area = np.cumsum(grid.ring_weights * grid.nphi)
    return np.concatenate([[0.0], area / area[-1]])


def _along(target: Grid, r: int, source: Grid, s: int) -> tuple[Ints, Ints, Reals]:
    """Cells of two rings that meet, and over which part of a turn."""
    sizes = [(grid.nphi[ring], grid.phi0[ring]) for grid, ring in ((target, r), (source, s))]
    # Cells begin half a step before their points.
    starts = [phi0 / (2 * np.pi) - 0.5 / n for n, phi0 in sizes]
    cuts = [(start + np.arange(n) / n) % 1.0 for (n, _), start in zip(sizes, starts, strict=True)]
    edges = np.unique(np.concatenate([*cuts, [0.0, 1.0]]))
    wide, middle = np.diff(edges), (edges[1:] + edges[:-1]) / 2
    kept = wide > _DUST / sizes[0][0]
    i, j = (
        np.floor((middle[kept] - start) * n).astype(np.int64) % n
        for (n, _), start in zip(sizes, starts, strict=True)
    )
    return i, j, wide[kept]
