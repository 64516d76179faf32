"""A neighborhood cut into tiles: what GPU kernels walk along.

A tile is a block of consecutive points of one ring, the centers. Its list of windows covers, ring
by ring, the arcs of all of them; each center knows its own arc, so that a window may hold more
than it needs, and membership is that of `arcs.ArcTable` to the last point. Named from the queries'
side; the transpose gives the tiles of the keys.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.arcs import UNIT, ArcTable
from spherule.geometry.neighborhood import Neighborhood

Ints = NDArray[np.int32]

# A program with more windows than this many times the mean is split: the last to finish must not
# keep the others waiting. Fewer windows than _LEAST are not worth a split.
_MOST = 2.0
_LEAST = 8


@dataclass(frozen=True, eq=False)
class Tiles:
    """Tables of 32 bits; places on a ring run on past its end instead of starting again at 0."""

    block: int
    """Centers of a tile."""
    window: int
    """Places of a window."""
    programs: Ints
    """(programs, 6), most windows first: point, column and ring size of the first center; first and
    last + 1 of its windows; where a part of a split tile leaves its result, -1 for a whole tile.
    """
    splits: Ints
    """(split tiles, 5): point, column and ring size of the first center; first and last + 1 of the
    parts.
    """
    windows: Ints
    """(windows, 3): pair of rings, first and last + 1 of its places."""
    pairs: Ints
    """(pairs, 6): first point and size of the other ring; where its arcs begin in `arcs`; centers
    after which they repeat, and the places that they move on by then; places from the first point
    to the longitude of the first center, for distances.
    """
    numbers: NDArray[np.float32]
    """(pairs, 5): log2 of the quadrature weight; for distances, with angle = step x + rest,
    sin^2(distance / 2) = near + product sin^2(angle / 2): near, product, step, rest.
    """
    arcs: Ints
    """(arcs, 2): first place and number of places."""
    parts: int
    """Parts of split tiles."""

    @property
    def work(self) -> NDArray[np.int64]:
        """Windows of each program."""
        return (self.programs[:, 4] - self.programs[:, 3]).astype(np.int64)


def cut(neighborhood: Neighborhood, block: int, window: int) -> Tiles:
    """Tiles of `block` centers and windows of `window` places."""
    table = neighborhood.table
    if int(table.query.nphi.max()) * int(table.key.nphi.max()) >= 2**31:
        raise ValueError(f"{neighborhood!r}: rings are too fine for 32-bit tables")
    arcs = _Arcs(table)
    tiles, parts = [], []
    for r, nq in enumerate(table.query.nphi.tolist()):
        columns = np.arange(0, nq, block)
        point = int(table.query.ringstart[r]) + columns
        tiles.append(np.stack([point, columns, np.full(columns.size, nq)], axis=1))
        for pair, s in table.pairs_of(r):
            if not _counts(neighborhood, r, s):
                continue
            low, high = arcs.add(r, pair, s, block)
            parts.append(_windows(len(arcs.pairs) - 1, low, high, window, _before(tiles)))
    tile, windows = _joined(parts)
    order = np.argsort(tile, kind="stable")
    work = np.bincount(tile, minlength=_before(tiles) + len(tiles[-1]))
    programs, splits = _programs(np.concatenate(tiles), work)
    kept = [row[-1] for row in arcs.pairs]
    return Tiles(
        block,
        window,
        programs,
        splits,
        windows[order].astype(np.int32),
        np.array([row[:-1] for row in arcs.pairs], np.int32).reshape(-1, 6),
        _numbers(neighborhood, np.array(kept, np.int64).reshape(-1, 3)),
        np.concatenate(arcs.chunks).astype(np.int32) if arcs.chunks else np.zeros((0, 2), np.int32),
        int(splits[-1, 4]) if len(splits) else 0,
    )


def estimate(table: ArcTable, block: int, window: int) -> float:
    """Windows that `cut` would make, nearly, without making them."""
    if table.columns is not None:
        rows = np.repeat(np.arange(table.query.nphi.size), np.diff(table.pairs))
        nq, width = table.query.nphi[rows], float(table.columns[1].mean())
        return float((np.ceil(nq / block) * np.ceil((block - 1 + width) / window)).sum())
    r = np.repeat(np.arange(table.query.nphi.size), np.diff(table.pairs))
    s = np.arange(r.size) - table.pairs[r] + table.first[r]
    nq, nk = table.query.nphi[r], table.key.nphi[s]
    span = table.reach / (UNIT * nq) + 1 + np.minimum(block, nq) * nk / nq
    span = np.where(table.reach >= UNIT * nq * nk, nk, span)
    return float((np.ceil(nq / block) * np.ceil(span / window)).sum())


def _before(tiles: list) -> int:
    """Tiles of the rings before the last."""
    return sum(len(t) for t in tiles[:-1])


def _counts(neighborhood: Neighborhood, r: int, s: int) -> bool:
    """Whether the quadrature weight is positive: a ring of weight 0 contributes nothing."""
    logw = neighborhood.ring_log_weights
    return logw is None or bool(logw[r if neighborhood.transposed else s] > -np.inf)


class _Arcs:
    """The arcs of all pairs of rings, each kept as far as it does not repeat."""

    def __init__(self, table: ArcTable) -> None:
        self.table = table
        self.pairs: list[tuple] = []
        self.chunks: list[NDArray[np.int64]] = []
        self.size = 0

    def add(
        self, r: int, pair: int, s: int, block: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last + 1 of the places that each tile of ring r needs on ring s."""
        table = self.table
        nq, nk = int(table.query.nphi[r]), int(table.key.nphi[s])
        first, count = table.arcs(r, np.arange(nq), pair, s)
        turn = 0
        if table.columns is not None:
            repeat, step = nq, 0
            if self.chunks:
                self.size -= nq  # windows on a plane are the same on every row
        elif count.min() == nk:
            first, repeat, step = np.zeros_like(first), 1, 0
        else:
            common = math.gcd(nq, nk)
            repeat, step = nq // common, nk // common
            first = first - first[0] // nk * nk
        if table.columns is None:
            turn = (int(table.shift[pair]) + UNIT * nq) // (2 * UNIT * nq) % nk
        origin = int(table.key.ringstart[s])
        self.pairs.append((origin, nk, self.size, repeat, step, turn, (r, s, pair)))
        if table.columns is None or not self.chunks:
            self.chunks.append(np.stack([first[:repeat], count[:repeat]], axis=1))
        self.size += repeat
        rows = -(-nq // block)
        empty = count == 0
        padded = np.full((2, rows * block), np.iinfo(np.int64).max // 2)
        padded[0, :nq][~empty] = first[~empty]
        padded[1, :nq][~empty] = -(first + count)[~empty]
        low, high = padded.reshape(2, rows, block).min(axis=2)
        return low, -high


def _windows(
    pair: int, low: NDArray[np.int64], high: NDArray[np.int64], window: int, before: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tile of each window, and the windows."""
    each = np.maximum(-((low - high) // window), 0)
    tile = np.repeat(np.arange(low.size), each)
    nth = np.arange(tile.size) - np.repeat(np.cumsum(each) - each, each)
    start = low[tile] + nth * window
    end = np.minimum(start + window, high[tile])
    return before + tile, np.stack([np.full(tile.size, pair), start, end], axis=1)


def _joined(parts: list) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    if not parts:
        return np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
    tile, windows = (np.concatenate(x) for x in zip(*parts, strict=True))
    return tile, windows


def _programs(tiles: NDArray[np.int64], work: NDArray[np.int64]) -> tuple[Ints, Ints]:
    """Whole tiles and parts of heavy ones, and the list of those split."""
    most = max(_LEAST, math.ceil(_MOST * work.mean()))
    parts = np.maximum(-(-work // most), 1)
    tile = np.repeat(np.arange(work.size), parts)
    nth = np.arange(tile.size) - np.repeat(np.cumsum(parts) - parts, parts)
    start = (np.cumsum(work) - work)[tile]
    ends = (start + work[tile] * (nth + n) // parts[tile] for n in (0, 1))
    split = parts > 1
    slots = np.where(split[tile], np.cumsum(split[tile]) - 1, -1)
    programs = np.column_stack([tiles[tile], *ends, slots])
    last = np.cumsum(parts[split])
    splits = np.column_stack([tiles[split], last - parts[split], last])
    order = np.argsort(programs[:, 3] - programs[:, 4], kind="stable")
    return programs[order].astype(np.int32), splits.astype(np.int32)


def _numbers(neighborhood: Neighborhood, kept: NDArray[np.int64]) -> NDArray[np.float32]:
    table, logw = neighborhood.table, neighborhood.ring_log_weights
    r, s, pair = kept.T
    numbers = np.zeros((kept.shape[0], 5))
    if logw is not None:
        numbers[:, 0] = logw[r if neighborhood.transposed else s] / math.log(2)
    if neighborhood.edge_width:
        t, u = table.query.theta[r], table.key.theta[s]
        nq, nk = table.query.nphi[r], table.key.nphi[s]
        whole = 2 * UNIT * nq
        rest = (table.shift[pair] + whole // 2) % whole - whole // 2
        numbers[:, 1] = np.sin((t - u) / 2) ** 2
        numbers[:, 2] = np.sin(t) * np.sin(u)
        numbers[:, 3] = 2 * math.pi / (nq * nk)
        numbers[:, 4] = rest * (math.pi / UNIT) / (nq * nk)
    return numbers.astype(np.float32)
