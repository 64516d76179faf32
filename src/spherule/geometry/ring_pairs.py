"""A sparse matrix between two ring grids, stored per pair of rings as far as they shift into each
other.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid

Ints = NDArray[np.int64]


class Samples(NamedTuple):
    """Entries of one target ring, which repeats `period` times around."""

    period: int
    ring: Ints
    """The source ring of each entry."""
    phase: Ints
    column: Ints
    hat: Ints
    value: NDArray[np.float64]


class Entries(NamedTuple):
    """All entries, one by one."""

    target: Ints
    source: Ints
    hat: Ints
    value: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RingPairs:
    """Entry e, of pair of rings (r, s) with period P, couples for every q = 0 ... P - 1 the points

    phase + q nphi_r / P of target ring r    and    column + q nphi_s / P of source ring s

    (modulo nphi_s), through `hat`, with the same `value`. On regular grids P is the greatest common
    divisor of the two numbers of longitudes; rings that have nothing in common have P = 1.
    """

    target: Grid
    source: Grid
    ring: Ints
    """(pairs, 2): target ring and source ring, ordered."""
    period: Ints
    """(pairs,)"""
    pair: Ints
    """(entries,), as the rest; entries are ordered by pair, phase, column, hat."""
    phase: Ints
    column: Ints
    hat: Ints
    value: NDArray[np.float64]

    @classmethod
    def build(cls, target: Grid, source: Grid, rings: list[Samples]) -> "RingPairs":
        """From the samples of each target ring."""
        if not rings:  # a part of a grid may be empty
            none = np.zeros(0, np.int64)
            rings = [Samples(1, none, none, none, none, np.zeros(0))]
        r = np.repeat(np.arange(len(rings)), [samples.value.size for samples in rings])
        s = np.concatenate([samples.ring for samples in rings])
        key, pair = np.unique(r * source.nrings + s, return_inverse=True)
        ring = np.stack([key // source.nrings, key % source.nrings], axis=1)
        period = np.array([samples.period for samples in rings])[ring[:, 0]]
        rest = [np.concatenate([samples[i] for samples in rings]) for i in (2, 3, 4, 5)]
        return cls._ordered(target, source, ring, period, pair, *rest)

    @cached_property
    def transpose(self) -> "RingPairs":
        """The same entries, seen from the sources."""
        period = self.period[self.pair]
        r, s = self.ring[self.pair].T
        phases, step = self.target.nphi[r] // period, self.source.nphi[s] // period
        # Start where the source point is the first of its kind.
        q = -(self.column // step) % period
        order = np.lexsort((self.ring[:, 0], self.ring[:, 1]))
        return self._ordered(
            self.source,
            self.target,
            self.ring[order][:, ::-1],
            self.period[order],
            np.argsort(order)[self.pair],
            self.column % step,
            self.phase + q * phases,
            self.hat,
            self.value,
        )

    @property
    def nonzeros(self) -> int:
        """Entries, counted one by one."""
        return int(self.period[self.pair].sum())

    def entries(self) -> Entries:
        period = self.period[self.pair]
        e = np.repeat(np.arange(self.pair.size), period)
        q = np.arange(e.size) - np.repeat(np.cumsum(period) - period, period)
        r, s = self.ring[self.pair[e]].T
        i = self.phase[e] + q * (self.target.nphi[r] // period[e])
        j = (self.column[e] + q * (self.source.nphi[s] // period[e])) % self.source.nphi[s]
        starts = self.target.ringstart[r], self.source.ringstart[s]
        return Entries(starts[0] + i, starts[1] + j, self.hat[e], self.value[e])

    @classmethod
    def _ordered(
        cls,
        target: Grid,
        source: Grid,
        ring: Ints,
        period: Ints,
        pair: Ints,
        phase: Ints,
        column: Ints,
        hat: Ints,
        value: NDArray[np.float64],
    ) -> "RingPairs":
        # All in one number: sorted at once, and faster where much of it is in order already.
        key = pair
        for place in (phase, column, hat):
            key = key * (place.max(initial=0) + 1) + place
        order = np.argsort(key, kind="stable")
        places = pair[order], phase[order], column[order], hat[order]
        return cls(target, source, ring, period, *places, value[order])
