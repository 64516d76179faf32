"""A neighborhood cut into tiles: what GPU kernels walk along.

A tile is a block of points close together, over several rings, the centers; windows list the
points that any of them needs, with a bit for each center that does. So membership is that of
`arcs.ArcTable` to the last point, and little is listed that few need. Both grids look the same when
turned by a part of a circle, by a column or a quarter mostly, and so do their tiles: they are kept
for one part, and programs say by how many parts they are turned. Named from the queries' side; the
transpose gives the tiles of the keys.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.arcs import UNIT, ArcTable, runs
from spherule.geometry.neighborhood import Neighborhood

Ints = NDArray[np.int32]

# A program with more windows than this many times the mean is split: the last to finish must not
# keep the others waiting. Fewer windows than _LEAST are not worth a split.
_MOST = 1.5
_LEAST = 4

# Rings and places in one number, the ring in its upper half.
_HALF = 2**16
_MOST_PLACES = _HALF // 2

# The place of a center that is not there, past the end of any ring.
_NOWHERE = _HALF - 1

# Tiles that are made at a time, so that memory is that of the result.
_TOGETHER = 64


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tables that kernels read. Rings are those of the centers, then those of the points that
    windows list; a point is 2^16 times its ring plus its place there.
    """

    programs: Ints
    """(programs, 5), most windows first: tile; parts of a circle that it is turned by; first and
    last + 1 of its windows; where a part of a split tile leaves its result, -1 for a whole tile.
    """
    splits: Ints
    """(split tiles, 4): tile and turn; first and last + 1 of the parts."""
    centers: Ints
    """(tiles, block). Past the end of its ring there is none."""
    windows: Ints
    """(windows, window)"""
    bits: Ints
    """(windows, words, window): bit c of word w for the tile's center 32 w + c; 0 fills up."""
    rings: Ints
    """(rings, 2): first point; 2^16 times the number of points plus the places that a turn moves on
    by.
    """
    numbers: NDArray[np.float32]
    """(rings, 2): log2 of the quadrature weight (0 on the side that has none), sine of theta."""
    angles: NDArray[np.int64]
    """(rings, 3): theta, longitude of the first point, longitude from point to point, where 2^64 is
    a full turn, so that sums and differences are exact and go around by themselves.
    """
    parts: int
    """Parts of split tiles."""

    @property
    def work(self) -> NDArray[np.int64]:
        """Windows of each program."""
        return (self.programs[:, 3] - self.programs[:, 2]).astype(np.int64)


def cut(neighborhood: Neighborhood, block: int, window: int) -> Tiles:
    """Tiles of `block` centers and windows of `window` points."""
    table = neighborhood.table
    origin, nphi = _both(table, "ringstart", "nphi")
    if max(nphi.max(), nphi.size) >= _MOST_PLACES:
        raise ValueError(
            f"{neighborhood!r}: tables on GPUs hold fewer than {_MOST_PLACES} rings, and points of "
            f"a ring, got {nphi.size} and {nphi.max()}"
        )
    turns, steps = _steps(table, block)
    ring, place = _centers(table, steps, block)
    made = [
        _windows(neighborhood, ring[i : i + _TOGETHER], place[i : i + _TOGETHER], window)
        for i in range(0, len(ring), _TOGETHER)
    ]
    work, windows, bits = (np.concatenate(x) for x in zip(*made, strict=True))
    # Not all turns are whole: what lies past the end of its ring has been there before.
    turned = place + np.arange(turns)[:, None, None] * steps[ring]
    programs, splits = _programs(work, np.argwhere((turned < nphi[ring]).any(axis=2).T))
    words = bits[:, None] >> np.arange(0, block, 32)[:, None]
    return Tiles(
        programs.astype(np.int32),
        splits.astype(np.int32),
        (ring * _HALF + place).astype(np.int32),
        windows.astype(np.int32),
        words.astype(np.int32),  # which keeps the lower half
        np.column_stack([origin, nphi * _HALF + steps]).astype(np.int32),
        _numbers(neighborhood),
        _angles(table),
        int(splits[-1, 3]) if len(splits) else 0,
    )


def estimate(table: ArcTable, block: int, window: int) -> float:
    """Windows of all tiles, nearly, without making them: a compact tile of area b, and all within
    a radius r of it, have the area b + 4 sqrt(b) r + pi r^2.
    """
    queries, keys = int(table.query.nphi.sum()), int(table.key.nphi.sum())
    if table.columns is not None:
        disk = float(np.diff(table.pairs).mean() * table.columns[1].mean())
    else:
        r, s = _pairs(table)
        held = np.minimum((table.reach + 1) / UNIT, table.query.nphi[r] * table.key.nphi[s])
        disk = float(held.sum()) / queries
    tile = block * keys / queries
    points = min(tile + 4 * math.sqrt(tile * disk / math.pi) + disk, keys)
    return queries / block * (points / window + 0.5)


def _steps(table: ArcTable, block: int) -> tuple[int, NDArray[np.int64]]:
    """How many turns there are, and the places that each ring moves on by in one."""
    (nphi,) = _both(table, "nphi")
    if table.columns is not None:
        return 1, nphi
    common, many = math.gcd(*nphi.tolist()), 1
    if np.ptp(table.query.nphi) == 0:
        # Whole tiles, however few rings they spread over.
        many = min(block // math.gcd(block, int(nphi[0]) // common), common)
    return -(-common // many), nphi // common * many


def _centers(table: ArcTable, steps: NDArray[np.int64], block: int) -> NDArray[np.int64]:
    """(2, tiles, block): rings and places of one turn, in bands of rings as high as a tile is wide,
    there and back again, so that all tiles are full but the last.
    """
    rings = table.query
    steps = steps[: rings.nphi.size]
    cells = np.ones(rings.nphi.size)  # width over height; on a plane, or nowhere, they are squares
    if np.ptp(rings.theta) > 0:
        cells = np.sin(rings.theta) * 2 * math.pi / rings.nphi / np.gradient(rings.theta)
    height = np.maximum(np.rint(np.sqrt(block * cells)), 1).astype(np.int64)
    band, last = np.zeros(rings.nphi.size, np.int64), 0
    while last < band.size:
        last += int(height[last])
        band[last:] += 1
    ring, place = runs(steps)
    along = (place / rings.nphi[ring] + rings.phi0[ring] / (2 * math.pi)) % 1
    order = np.lexsort((ring, np.where(band[ring] % 2, -along, along), band[ring]))
    tiles = -(-ring.size // block)
    centers = np.zeros((2, tiles * block), np.int64)
    centers[1] = _NOWHERE
    centers[:, : ring.size] = ring[order], place[order]
    return centers.reshape(2, tiles, block)


def _windows(
    neighborhood: Neighborhood, ring: NDArray[np.int64], place: NDArray[np.int64], window: int
) -> tuple[NDArray[np.int64], ...]:
    """Of tiles with these centers: how many windows each has; their points; their bits."""
    table = neighborhood.table
    tile, s, bit, first, count = _arcs(neighborhood, ring, place)
    # A stretch is what a tile needs of a ring.
    new = (np.diff(tile, prepend=-1) != 0) | (np.diff(s, prepend=-1) != 0)
    heads, stretch = np.flatnonzero(new), np.cumsum(new) - 1
    tile, s = tile[heads], s[heads]
    size = table.key.nphi[s]
    low = np.minimum.reduceat(first, heads)
    length = np.minimum(np.maximum.reduceat(first + count, heads) - low, size)
    # Bits are switched on where an arc begins and off where it ends; on a whole ring it may go on
    # at the beginning.
    start = np.cumsum(length) - length
    begin = (first - low[stretch]) % size[stretch]
    around = np.maximum(begin + count - length[stretch], 0)
    change = np.zeros(length.sum() + 1, np.int64)
    for where, switch in (
        (begin, bit),
        (begin + count - around, -bit),
        (0, np.where(around, bit, 0)),
        (around, np.where(around, -bit, 0)),
    ):
        np.add.at(change, start[stretch] + where, switch)
    bits = np.cumsum(change)[:-1]
    stretch, nth = runs(length)
    points = (table.query.nphi.size + s) * _HALF
    points = points[stretch] + (low[stretch] + nth) % size[stretch]
    used = bits != 0
    tile = tile[stretch][used]
    # Each tile begins with a new window.
    each = np.bincount(tile, minlength=len(ring))
    work = -(-each // window)
    filled = np.zeros((2, work.sum() * window), np.int64)
    nth = np.arange(tile.size) - (np.cumsum(each) - each)[tile]
    filled[:, (np.cumsum(work) - work)[tile] * window + nth] = points[used], bits[used]
    return work, *filled.reshape(2, -1, window)


def _arcs(
    neighborhood: Neighborhood, ring: NDArray[np.int64], place: NDArray[np.int64]
) -> tuple[NDArray[np.int64], ...]:
    """Arcs that are not empty, sorted by tile and ring: tile, ring, bit of the center, first place,
    number of places.
    """
    table, logw = neighborhood.table, neighborhood.ring_log_weights
    tile, center = np.nonzero(place < _NOWHERE)
    each, nth = runs(np.diff(table.pairs)[ring[tile, center]])
    tile, center = tile[each], center[each]
    r, query = ring[tile, center], place[tile, center]
    s, pair = table.first[r] + nth, table.pairs[r] + nth
    first, count = table.arcs(r, query, pair, s)
    keep = count > 0
    if logw is not None:
        # A ring of weight 0 contributes nothing.
        keep &= logw[r if neighborhood.transposed else s] > -np.inf
    bit = np.left_shift(1, center, dtype=np.int64)
    order = np.flatnonzero(keep)
    order = order[np.lexsort((s[order], tile[order]))]
    return tuple(x[order] for x in (tile, s, bit, first, count))


def _programs(
    work: NDArray[np.int64], placed: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Whole tiles and parts of heavy ones, and the list of those split. `placed`: tile, turn."""
    first, work = (np.cumsum(work) - work)[placed[:, 0]], work[placed[:, 0]]
    parts = np.maximum(-(-work // _longest(work)), 1)
    which, nth = runs(parts)
    ends = (first[which] + work[which] * (nth + n) // parts[which] for n in (0, 1))
    split = parts > 1
    slots = np.where(split[which], np.cumsum(split[which]) - 1, -1)
    programs = np.column_stack([placed[which], *ends, slots])
    last = np.cumsum(parts[split])
    splits = np.column_stack([placed[split], last - parts[split], last])
    return programs[np.argsort(programs[:, 2] - programs[:, 3], kind="stable")], splits


def _longest(work: NDArray[np.int64]) -> int:
    """Windows that a program may have: splits make more programs, and their mean smaller."""
    sizes, number = np.unique(work, return_counts=True)
    for most in range(int(sizes[-1]), _LEAST, -1):
        programs = (number * np.maximum(-(-sizes // most), 1)).sum()
        if most * programs <= _MOST * (number * sizes).sum():
            return most
    return _LEAST


def _numbers(neighborhood: Neighborhood) -> NDArray[np.float32]:
    table, logw = neighborhood.table, neighborhood.ring_log_weights
    (theta,) = _both(table, "theta")
    numbers = np.stack([np.zeros(theta.size), np.sin(theta)], axis=1)
    if logw is not None:
        first = 0 if neighborhood.transposed else table.query.nphi.size
        weights = np.where(logw > -np.inf, logw, 0) / math.log(2)
        numbers[first : first + logw.size, 0] = weights
    return numbers.astype(np.float32)


def _angles(table: ArcTable) -> NDArray[np.int64]:
    theta, phi0, nphi = _both(table, "theta", "phi0", "nphi")
    turns = np.stack([theta / (2 * math.pi), phi0 / (2 * math.pi), 1 / nphi], axis=1)
    # 2^64 itself, a ring of one point, is 0.
    whole = [[round(math.ldexp(t, 64)) % 2**64 for t in row] for row in turns.tolist()]
    return np.array(whole, np.uint64).view(np.int64)


def _both(table: ArcTable, *names: str) -> list[NDArray]:
    """Of the rings of both sides."""
    sides = (table.query, table.key)
    return [np.concatenate([getattr(side, name) for side in sides]) for name in names]


def _pairs(table: ArcTable) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rings that meet."""
    r, nth = runs(np.diff(table.pairs))
    return r, table.first[r] + nth
