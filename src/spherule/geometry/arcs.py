"""Neighborhoods as tables: for each pair of rings, the arc of keys around a query.

Longitudes of two rings with nq and nk points are compared in units of pi / (nq nk UNIT): key j lies
from query i at

    D = 2 UNIT (j nq - i nk) + shift    (modulo 2 UNIT nq nk),

and belongs to its disk if |D| <= reach. All of it is integers, and `reach` is the same whichever
ring asks, so membership is exactly symmetric, does not change when a grid is turned onto itself,
and is the same in every kernel.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid

UNIT = 2**28

# Points on the rim belong to the disk, also when rounding moved them out: six micrometers on the
# Earth.
RIM = 1e-12

# Of rings, in a table: a gigabyte, and four while it is made.
MOST_PAIRS = 2**25

# Of queries of global attention: enough runs for threads, long enough to share what is looked up,
# short enough for 64-bit longitudes.
_RUNS, _SHORTEST_RUN, _LONGEST_RUN = 64, 32, 2**15

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Rings:
    """One side of a neighborhood."""

    theta: NDArray[np.float64]
    nphi: Ints
    phi0: NDArray[np.float64]
    ringstart: Ints


@dataclass(frozen=True, eq=False)
class ArcTable:
    """What kernels walk along. Query ring r meets `pairs[r + 1] - pairs[r]` key rings from
    `first[r]` on.
    """

    query: Rings
    key: Rings
    first: Ints
    pairs: Ints
    shift: Ints
    """Per pair of rings: D of the first key from the first query, half a turn at most."""
    reach: Ints
    """Per pair of rings: the largest |D| in the disk; UNIT nq nk is the whole ring."""
    inner: Ints
    """Per pair of rings: the largest |D| of full weight, where a soft edge begins; -1 for none."""
    order: Ints
    """Query rings, those with the largest neighborhoods first, for even work among threads."""
    columns: tuple[Ints, Ints] | None = None
    """Windows: first key column and number of columns of each query column, in place of the arcs.
    """

    def pairs_of(self, r: int) -> zip:
        """(pair, key ring) for the key rings that query ring r meets."""
        pairs = range(self.pairs[r], self.pairs[r + 1])
        return zip(pairs, range(self.first[r], self.first[r] + len(pairs)), strict=True)

    def arcs(
        self, r: int | Ints, queries: Ints, pair: int | Ints, s: int | Ints
    ) -> tuple[Ints, Ints]:
        """First key (it may lie before or past the ring's ends) and number of keys of queries on
        ring r, on key ring s.
        """
        if self.columns is not None:
            return self.columns[0][queries], self.columns[1][queries]
        nq, nk = self.query.nphi[r], self.key.nphi[s]
        middle = 2 * UNIT * nk * queries - self.shift[pair]
        first = -((self.reach[pair] - middle) // (2 * UNIT * nq))
        last = (self.reach[pair] + middle) // (2 * UNIT * nq)
        return first, np.clip(last - first + 1, 0, nk)

    def angle(
        self, r: int, queries: Ints, keys: Ints, pair: int | Ints, s: int | Ints
    ) -> NDArray[np.float64]:
        """Difference of longitude between queries on ring r and keys on ring s."""
        nq, nk = self.query.nphi[r], self.key.nphi[s]
        return (2 * UNIT * (keys * nq - queries * nk) + self.shift[pair]) * (
            math.pi / (nq * nk * UNIT)
        )


def runs(lengths: Ints) -> tuple[Ints, Ints]:
    """Of runs one after the other: which run, and which place in it."""
    run = np.repeat(np.arange(lengths.size), lengths)
    return run, np.arange(run.size) - np.repeat(np.cumsum(lengths) - lengths, lengths)


def disk_table(query: Grid, key: Grid, cutoff: float, edge_width: float) -> ArcTable:
    """The table of disks of radius `cutoff`, with an edge from cutoff - edge_width / 2 to cutoff +
    edge_width / 2.
    """
    outer, inner = cutoff + edge_width / 2 + RIM, cutoff - edge_width / 2 + RIM
    r, s = _pairs_within(query.theta, key.theta, outer)
    distance = np.abs(query.theta[r] - key.theta[s])
    nq, nk = query.nphi[r], key.nphi[s]
    if np.any(nq * nk >= 2**33):
        raise ValueError(
            f"rings of {nq.max()} and {nk.max()} points are too fine for 64-bit longitudes"
        )

    shift = np.rint((key.phi0[s] - query.phi0[r]) * (nq * nk) * (UNIT / math.pi)).astype(np.int64)
    # Half a turn either way, so that sums with places and reaches stay within 64 bits.
    half = UNIT * nq * nk
    shift = (shift + half) % (2 * half) - half
    arguments = (query.theta[r], key.theta[s], distance, nq * nk)
    reach = _reach(outer, *arguments)
    meets = np.bincount(r, minlength=query.theta.size)
    pairs = np.concatenate([[0], np.cumsum(meets)])
    first = np.zeros(meets.size, np.int64)
    first[meets > 0] = s[pairs[:-1][meets > 0]]
    keys = np.bincount(r, np.minimum(reach / (UNIT * nq), nk), minlength=query.theta.size)
    return ArcTable(
        _rings(query),
        _rings(key),
        first=first,
        pairs=pairs,
        shift=shift,
        reach=reach,
        inner=_reach(inner, *arguments) if edge_width else reach,
        order=np.argsort(-keys, kind="stable"),
    )


def _pairs_within(
    theta_q: NDArray[np.float64], theta_k: NDArray[np.float64], distance: float
) -> tuple[Ints, Ints]:
    """Rings no farther from each other, those of each query ring in order. Rings come in order, so
    that only those that meet are looked at.
    """
    low = np.searchsorted(theta_k, theta_q - distance - RIM)
    counts = np.searchsorted(theta_k, theta_q + distance + RIM, side="right") - low
    if (total := int(counts.sum())) > MOST_PAIRS:
        raise ValueError(
            f"a disk of cutoff={distance:g} between {theta_q.size} and {theta_k.size} rings meets "
            f"{total} pairs of rings, and a table holds {MOST_PAIRS} at most: take a smaller "
            "cutoff, or coarser grids"
        )
    r, place = runs(counts)
    s = low[r] + place
    met = np.abs(theta_q[r] - theta_k[s]) <= distance
    return r[met], s[met]


def _reach(
    cutoff: float,
    theta_q: NDArray[np.float64],
    theta_k: NDArray[np.float64],
    distance: NDArray[np.float64],
    points: Ints,
) -> Ints:
    """Half the arc in which disks around one ring meet another, from
    sin^2(dphi / 2) = sin((c + d) / 2) sin((c - d) / 2) / (sin t sin t').

    The textbook's cosines lose the rings at exactly the distance c to rounding.
    """
    above = np.sin((cutoff + distance) / 2) * np.sin(np.maximum(cutoff - distance, 0) / 2)
    below = np.sin(theta_q) * np.sin(theta_k)
    # A point at a pole is as near to all points of a ring. So is, to rounding, the antipode of the
    # pole.
    whole = (above >= below) | (below < 1e-14) | (cutoff >= math.pi)
    sine = np.sqrt(np.where(whole, 1.0, above / np.where(whole, 1.0, below)))
    half = np.where(whole, points * UNIT, np.floor(2 * np.arcsin(sine) * points * (UNIT / math.pi)))
    return np.where(distance <= cutoff, half, -1).astype(np.int64)


def whole_table(queries: int, key: Grid, transposed: bool) -> ArcTable:
    """The table of all pairs of so many queries, wherever they are, and the points of a grid. The
    queries come in runs that pose as rings, since work is shared out by rings.
    """
    run = max(_SHORTEST_RUN, min(-(-queries // _RUNS), _LONGEST_RUN))
    start = np.arange(0, queries, run)
    none = np.zeros(start.size)
    sides = [Rings(none, np.diff(start, append=queries), none, start), _rings(key)]
    query, key_rings = reversed(sides) if transposed else sides
    nq, nk = query.nphi, key_rings.nphi
    reach = (UNIT * nq[:, None] * nk).reshape(-1)
    return ArcTable(
        query,
        key_rings,
        first=np.zeros_like(nq),
        pairs=np.arange(nq.size + 1) * nk.size,
        shift=np.zeros_like(reach),
        reach=reach,
        inner=reach,
        order=np.argsort(-nq, kind="stable"),
    )


def window_table(shape: tuple[int, int], size: tuple[int, int], transposed: bool) -> ArcTable:
    """The table of windows on a plane; transposed, of the queries whose windows hold a key."""
    rows, columns = (_interval(n, w, transposed) for n, w in zip(shape, size, strict=True))
    nlat, nlon = shape
    rings = Rings(np.zeros(nlat), np.full(nlat, nlon), np.zeros(nlat), np.arange(nlat) * nlon)
    none = np.zeros(0, dtype=np.int64)
    pairs = np.concatenate([[0], np.cumsum(rows[1])])
    return ArcTable(
        rings, rings, rows[0], pairs, none, none, none, np.argsort(-rows[1], kind="stable"), columns
    )


def _interval(n: int, width: int, transposed: bool) -> tuple[Ints, Ints]:
    start = np.clip(np.arange(n) - width // 2, 0, n - width)
    if not transposed:
        return start, np.full(n, width)
    # Starts never decrease, so the windows that hold a point are neighbors too.
    first = np.searchsorted(start, np.arange(n) - width + 1, side="left")
    return first, np.searchsorted(start, np.arange(n), side="right") - first


def _rings(grid: Grid) -> Rings:
    return Rings(grid.theta, grid.nphi, grid.phi0, grid.ringstart)
