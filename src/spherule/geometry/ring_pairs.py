"""A sparse matrix between two ring grids, stored per pair of rings as far as they shift into each
other.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Reals = NDArray[np.float64]


class Samples(NamedTuple):
    """Entries of one target ring, in any order."""

    ring: Ints
    """The source ring of each entry."""
    period: Ints
    """How often it repeats around: as often as all entries between the same rings."""
    phase: Ints
    column: Ints
    hat: Ints | Shorts
    value: Reals


class Entries(NamedTuple):
    """All entries, one by one."""

    target: Ints
    source: Ints
    hat: Shorts
    value: Reals


class _Ring(NamedTuple):
    """Entries of one target ring as `RingPairs` has them."""

    ring: Ints
    period: Ints
    length: Ints
    """Entries of each row."""
    column: Shorts
    hat: Shorts
    value: Reals


@dataclass(frozen=True, eq=False)
class RingPairs:
    """Entry e, of pair of rings (r, s) with period P, couples for every q = 0 ... P - 1 the points

    phase + q nphi_r / P of target ring r    and    column + q nphi_s / P of source ring s

    (modulo nphi_s), through `hat`, with the same `value`. On regular grids P is the greatest common
    divisor of the two numbers of longitudes; rings that have nothing in common have P = 1.

    A row is a pair with one of its nphi_r / P phases. Entries are as small as can be: large grids
    have many millions.
    """

    target: Grid
    source: Grid
    ring: Ints
    """(pairs, 2): target ring and source ring, ordered."""
    period: Ints
    """(pairs,)"""
    row: Ints
    """(pairs + 1,): the first row of each pair, of phase 0."""
    start: Ints
    """(rows + 1,): the first entry of each row."""
    column: Shorts
    """(entries,), as the rest; those of a row are ordered by column, then hat."""
    hat: Shorts
    value: Reals

    @classmethod
    def build(cls, target: Grid, source: Grid, samples: Callable[[int], Samples]) -> "RingPairs":
        """From the samples of each target ring."""
        # numpy lets go of Python's lock.
        with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as threads:
            rings = range(target.nrings)
            found = list(threads.map(lambda r: _in_order(samples(r), int(target.nphi[r])), rings))
        none = np.zeros(0, np.int64)  # a part of a grid may be empty
        found = found or [_in_order(Samples(none, none, none, none, none, np.zeros(0)), 1)]
        r = np.repeat(np.arange(len(found)), [ring.ring.size for ring in found])
        s, period, length, column, hat, value = map(np.concatenate, zip(*found, strict=True))
        row = _offsets(target.nphi[r] // period)
        return cls(
            target,
            source,
            np.stack([r, s], axis=1),
            period,
            row,
            _offsets(length),
            column,
            hat,
            value,
        )

    @cached_property
    def transpose(self) -> "RingPairs":
        """The same entries, seen from the sources."""
        order = np.lexsort((self.ring[:, 0], self.ring[:, 1]))
        first = np.searchsorted(self.ring[order, 1], np.arange(self.source.nrings + 1))
        pairs = [order[a:b] for a, b in pairwise(first)]
        return RingPairs.build(self.source, self.target, lambda s: self._seen_from(s, pairs[s]))

    def _seen_from(self, s: int, pairs: Ints) -> Samples:
        """The samples of source ring s, which these pairs have."""
        entry, pair, phase = self._of(pairs)
        r, period, column = self.ring[pair, 0], self.period[pair], self.column[entry]
        nphi, step = self.target.nphi[r], self.source.nphi[s] // period
        # Start where the source point is the first of its kind.
        turned = (phase - column // step * (nphi // period)) % nphi
        return Samples(r, period, column % step, turned, self.hat[entry], self.value[entry])

    @property
    def pair(self) -> Ints:
        """(entries,): the pair of each entry."""
        return self._of(np.arange(self.period.size))[1]

    @property
    def phase(self) -> Ints:
        """(entries,): the phase of each entry."""
        return self._of(np.arange(self.period.size))[2]

    def _of(self, pairs: Ints) -> tuple[Ints, Ints, Ints]:
        """The entries of some pairs, and the pair and phase of each."""
        phases = self.row[pairs + 1] - self.row[pairs]
        pair = np.repeat(pairs, phases)
        phase = np.arange(pair.size) - np.repeat(np.cumsum(phases) - phases, phases)
        row = self.row[pair] + phase
        first, count = self.start[row], self.start[row + 1] - self.start[row]
        entry = np.arange(count.sum()) + np.repeat(first - np.cumsum(count) + count, count)
        return entry, np.repeat(pair, count), np.repeat(phase, count)

    @property
    def nonzeros(self) -> int:
        """Entries, counted one by one."""
        return int((self.period * np.diff(self.start[self.row])).sum())

    def entries(self) -> Entries:
        """All of them. There are `nonzeros`."""
        entry, pair, phase = self._of(np.arange(self.period.size))
        period = self.period[pair]
        e = np.repeat(entry, period)
        q = np.arange(e.size) - np.repeat(np.cumsum(period) - period, period)
        r, s = self.ring[pair[e]].T
        i = phase[e] + q * (self.target.nphi[r] // period[e])
        j = (self.column[e] + q * (self.source.nphi[s] // period[e])) % self.source.nphi[s]
        starts = self.target.ringstart[r], self.source.ringstart[s]
        return Entries(starts[0] + i, starts[1] + j, self.hat[e], self.value[e])


def _in_order(samples: Samples, nphi: int) -> _Ring:
    """By source ring, phase, column, hat, all in one number. Ring by ring, what is sorted stays in
    the caches.
    """
    key = samples.ring
    for place in (samples.phase, samples.column, samples.hat):
        key = key * (int(place.max(initial=0)) + 1) + place
    order = np.argsort(key, kind="stable")
    ring, period = samples.ring[order], samples.period[order]
    first = np.flatnonzero(np.diff(ring, prepend=-1))
    row = _offsets(nphi // period[first])
    pair = np.repeat(np.arange(first.size), np.diff(first, append=ring.size))
    length = np.bincount(row[pair] + samples.phase[order], minlength=row[-1])
    column, hat = (x[order].astype(np.int32) for x in (samples.column, samples.hat))
    return _Ring(ring[first], period[first], length, column, hat, samples.value[order])


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(counts)])
