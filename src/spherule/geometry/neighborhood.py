"""Which points of one grid belong to each point of another: geodesic disks, windows on a plane."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spherule import checks
from spherule.geometry import great_circles
from spherule.geometry.arcs import ArcTable, disk_table, whole_table, window_table
from spherule.grids import Grid
from spherule.grids.names import Names
from spherule.grids.rings import MOST_POINTS

# So that an operator in a compiled or exported program, which can hold no Python objects, finds its
# neighborhood.
_known: Names["Neighborhood"] = Names(recent=64)


@dataclass(frozen=True)
class Neighborhood(ABC):
    """The keys of each query, with a weight each. A value: frozen, hashable, shared between layers.

    Made by `Neighborhood.disk`, `.window` or `.whole`; its size in memory is the number of pairs
    of rings that meet.
    """

    cutoff: float = field(default=0.0, kw_only=True)
    edge_width: float = field(default=0.0, kw_only=True)
    transposed: bool = field(default=False, kw_only=True)

    @staticmethod
    @checks.arguments
    def disk(
        query_grid: Grid,
        key_grid: Grid,
        cutoff: float,
        *,
        edge_width: float = 0.0,
        weighted: bool = True,
    ) -> "Neighborhood":
        """Keys within a geodesic distance of a query, weighted by the key grid's quadrature.

        Args:
            query_grid: where queries are.
            key_grid: where keys are; any two ring grids will do.
            cutoff: the radius in radians; a disk that reaches the antipode is the whole sphere.
            edge_width: over this width around `cutoff` the weight falls linearly from 1 to 0.
            weighted: False counts all keys alike, wherever they crowd.

        >>> import spherule as sph
        >>> grid = sph.Grid.gauss(32, 64)
        >>> disk = sph.Neighborhood.disk(grid, grid, grid.cutoff(7))
        >>> int(disk.counts().min()), int(disk.counts().max())
        (47, 234)
        """
        for name, grid in (("query_grid", query_grid), ("key_grid", key_grid)):
            if not isinstance(grid, Grid):
                raise TypeError(f"{name}: expected a Grid, got {type(grid).__name__}")
        cutoff, edge_width = checks.radius("cutoff", cutoff), float(edge_width)
        if not 0 <= edge_width <= 2 * cutoff:
            raise ValueError(
                f"edge_width={edge_width:g} must be in [0, 2 cutoff = {2 * cutoff:g}] radians"
            )
        if cutoff + edge_width / 2 >= math.pi:
            cutoff, edge_width = math.pi, 0.0
        disk = Disk(
            query_grid,
            key_grid,
            bool(weighted),
            cutoff=cutoff,
            edge_width=edge_width,
        )
        disk.check_keys()
        return disk._register()

    @staticmethod
    @checks.arguments
    def window(shape: tuple[int, int], size: tuple[int, int]) -> "Neighborhood":
        """Windows of `size` points on a plane of `shape`; at the border they are shifted inside, so
        that all have as many keys. A window larger than the plane shrinks to the largest odd size
        that fits.
        """
        if min(shape) < 1 or shape[0] * shape[1] > MOST_POINTS:
            raise ValueError(
                f"shape={shape}: expected (rows, columns), each at least 1, and at most "
                f"{MOST_POINTS} points"
            )
        if any(n < 1 or n % 2 == 0 for n in size):
            raise ValueError(
                f"size={size}: expected two odd numbers, so that a window has a middle"
            )
        (rows, columns), (high, wide) = shape, size
        fit = (min(high, rows - 1 + rows % 2), min(wide, columns - 1 + columns % 2))
        return Window((rows, columns), fit)._register()

    @staticmethod
    @checks.arguments
    def whole(number: int, key_grid: Grid, *, weighted: bool = True) -> "Neighborhood":
        """All keys, for so many queries wherever they are, weighted by the key grid's quadrature,
        or all alike: global attention.

        Args:
            number: of queries.
            key_grid: where keys are.
            weighted: False counts all keys alike, as on a plane.
        """
        checks.integer("number", number, low=1, high=MOST_POINTS)
        return Whole(number, key_grid, weighted)._register()

    @staticmethod
    @checks.arguments
    def from_name(name: str) -> "Neighborhood":
        """The neighborhood of a `.name`; of rings of your own, while they are in use here."""
        if known := _known.get(name):
            return known
        kind, *words = name.split(" ")
        if kind == "window":
            return Neighborhood.window(*(checks.shape("name", word) for word in words))
        wanted = {"disk": 5, "whole": 3}.get(kind)
        if len(words) != wanted or words[-1] not in ("weighted", "unweighted"):
            raise ValueError(f"name={name!r} must be what a neighborhood calls itself")
        weighted = words.pop() == "weighted"
        if kind == "whole":
            number, key = words
            return Neighborhood.whole(int(number), Grid.from_name(key), weighted=weighted)
        query, key, cutoff, edge_width = words
        return Neighborhood.disk(
            Grid.from_name(query),
            Grid.from_name(key),
            float(cutoff),
            edge_width=float(edge_width),
            weighted=weighted,
        )

    @property
    @abstractmethod
    def name(self) -> str:
        """Says all that defines it; `Neighborhood.from_name` gives it back."""

    @property
    @abstractmethod
    def table(self) -> ArcTable:
        """What kernels walk along."""

    @property
    @abstractmethod
    def transpose(self) -> "Neighborhood":
        """The queries of each key. Weights stay those of the original's keys."""

    @property
    def ring_log_weights(self) -> NDArray[np.float64] | None:
        """Logarithm of the quadrature weight of a point on each key ring (transposed: query ring),
        None for all alike.
        """
        return None

    @cached_property
    def queries(self) -> int:
        """The number of queries."""
        return int(self.table.query.nphi.sum())

    @cached_property
    def keys(self) -> int:
        """The number of keys."""
        return int(self.table.key.nphi.sum())

    @checks.arguments
    def ring(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(nphi, most keys) of query ring r: indices of each query's keys and their log weights; -1
        and -inf fill up.
        """
        table, logw = self.table, self.ring_log_weights
        checks.integer("r", r, low=0, high=len(table.query.nphi) - 1)
        queries = np.arange(table.query.nphi[r])[:, None]
        indices, weights = [np.zeros((queries.size, 0), np.int64)], [np.zeros((queries.size, 0))]
        for pair, s in table.pairs_of(r):
            nk = table.key.nphi[s]
            first, count = table.arcs(r, queries, pair, s)
            keys = first + np.arange(count.max())
            member = keys < first + count
            w = (
                np.zeros(keys.shape)
                if logw is None
                else np.full(keys.shape, logw[r if self.transposed else s])
            )
            if self.edge_width:
                w += self._log_taper(r, s, table.angle(r, queries, keys, pair, s))
            indices.append(np.where(member, table.key.ringstart[s] + keys % nk, -1))
            weights.append(np.where(member, w, -np.inf))
        return np.concatenate(indices, axis=1), np.concatenate(weights, axis=1)

    def counts(self) -> NDArray[np.int64]:
        """The number of keys of each query."""
        rings = enumerate(self.table.query.nphi)
        return np.concatenate([self._ring_counts(r, np.arange(n)) for r, n in rings])

    @checks.arguments
    def indices(self, i: int) -> NDArray[np.int64]:
        """The keys of query i, in order."""
        return self._row(i)[0]

    @checks.arguments
    def weights(self, i: int) -> NDArray[np.float64]:
        """Their weights: quadrature times the soft edge; 1 where all keys count alike."""
        return np.exp(self._row(i)[1])

    def _row(self, i: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        i = checks.integer("i", i, low=0, high=self.queries - 1)
        r = int(np.searchsorted(self.table.query.ringstart, i, side="right")) - 1
        indices, weights = (a[i - self.table.query.ringstart[r]] for a in self.ring(r))
        keep = np.flatnonzero(indices >= 0)
        keep = keep[np.argsort(indices[keep])]
        return indices[keep], weights[keep]

    def _ring_counts(
        self, r: int, queries: NDArray[np.int64], *, positive: bool = False
    ) -> NDArray[np.int64]:
        """The number of keys of these queries of ring r, of positive weight only if asked."""
        table, logw = self.table, self.ring_log_weights
        if queries.size == 1:  # all rings at once: fine grids have millions of pairs
            pairs = np.arange(table.pairs[r], table.pairs[r + 1])
            rings = table.first[r] + np.arange(pairs.size)
            keys = np.broadcast_to(table.arcs(r, queries, pairs, rings)[1], pairs.shape)
            counted = keys if logw is None or not positive else keys[logw[rings] > -np.inf]
            return counted.sum(keepdims=True)
        counts = np.zeros(queries.size, np.int64)
        for pair, s in table.pairs_of(r):
            if not (positive and logw is not None and logw[s] == -np.inf):
                counts += table.arcs(r, queries, pair, s)[1]
        return counts

    def _log_taper(self, r: int, s: int, angle: NDArray[np.float64]) -> NDArray[np.float64]:
        t, u = self.table.query.theta[r], self.table.key.theta[s]
        distance = great_circles.distance(t, u, angle)
        with np.errstate(divide="ignore"):
            return np.log(np.clip((self.cutoff - distance) / self.edge_width + 0.5, 0.0, 1.0))

    def _register(self) -> "Neighborhood":
        # Known before torch.compile looks: it cannot follow numpy.
        _ = self.queries, self.keys
        known = _known.add(self.name, self)
        if known != self:
            raise ValueError(
                f"{self.name!r} already names another neighborhood: give the grids names that "
                "differ"
            )
        # One object for equal values: its tables are made once, and shared.
        return known

    def __reduce__(self) -> tuple:
        # Copies and pickles share the tables, do not carry them, and are known by name where they
        # are loaded.
        plain = self.transpose if self.transposed else self
        kept = {f.name: getattr(plain, f.name) for f in fields(plain)}
        return (_remake, (type(self), kept, self.transposed))

    def __repr__(self) -> str:
        return f"Neighborhood({self.name}{' transposed' if self.transposed else ''})"


@dataclass(frozen=True, repr=False)
class Disk(Neighborhood):
    """Made by `Neighborhood.disk`."""

    query_grid: Grid
    key_grid: Grid
    weighted: bool

    @cached_property
    def name(self) -> str:
        grids = f"{self.query_grid.name} {self.key_grid.name}"
        return f"disk {grids} {self.cutoff!r} {self.edge_width!r} {_word(self.weighted)}"

    @cached_property
    def table(self) -> ArcTable:
        return disk_table(self.query_grid, self.key_grid, self.cutoff, self.edge_width)

    @cached_property
    def transpose(self) -> "Neighborhood":
        return replace(
            self,
            query_grid=self.key_grid,
            key_grid=self.query_grid,
            transposed=not self.transposed,
        )

    @cached_property
    def ring_log_weights(self) -> NDArray[np.float64] | None:
        keys = self.query_grid if self.transposed else self.key_grid
        return _log_weights(keys) if self.weighted else None

    def check_keys(self) -> None:
        """That every query has a key of positive weight; a warning where keys are few."""
        table, fewest = self.table, []
        for r, nq in enumerate(table.query.nphi):
            # Where all rings have as many points, all queries of a ring have as many keys.
            met = slice(table.first[r], table.first[r] + table.pairs[r + 1] - table.pairs[r])
            alike = (table.key.nphi[met] == nq).all()
            counts = self._ring_counts(r, np.arange(1 if alike else nq), positive=True)
            if counts.min() == 0:
                point = int(np.argmin(counts))
                raise ValueError(
                    f"cutoff={self.cutoff:g} is too small for {self.key_grid!r}: no key of "
                    f"positive weight around point {point} of ring {r} of {self.query_grid!r}"
                )
            fewest.append(int(counts.min()))
        spacing = self.key_grid.spacing
        if self.cutoff < spacing and fewest:
            warnings.warn(
                f"cutoff={self.cutoff:g} is below the spacing {spacing:g} of {self.key_grid!r}: "
                f"queries have {min(fewest)} keys at least, {int(np.median(fewest))} in the middle",
                stacklevel=3,
            )


@dataclass(frozen=True, repr=False)
class Window(Neighborhood):
    """Made by `Neighborhood.window`."""

    shape: tuple[int, int]
    size: tuple[int, int]

    @cached_property
    def name(self) -> str:
        return f"window {'x'.join(map(str, self.shape))} {'x'.join(map(str, self.size))}"

    @cached_property
    def table(self) -> ArcTable:
        return window_table(self.shape, self.size, self.transposed)

    @cached_property
    def transpose(self) -> "Neighborhood":
        return replace(self, transposed=not self.transposed)


@dataclass(frozen=True, repr=False)
class Whole(Neighborhood):
    """Made by `Neighborhood.whole`."""

    number: int
    key_grid: Grid
    weighted: bool

    @cached_property
    def name(self) -> str:
        return whole_name(self.number, self.key_grid.name, weighted=self.weighted)

    @cached_property
    def table(self) -> ArcTable:
        return whole_table(self.number, self.key_grid, self.transposed)

    @cached_property
    def transpose(self) -> "Neighborhood":
        return replace(self, transposed=not self.transposed)

    @cached_property
    def ring_log_weights(self) -> NDArray[np.float64] | None:
        return _log_weights(self.key_grid) if self.weighted else None


def whole_name(number: int, key_grid: str, *, weighted: bool) -> str:
    """What `Neighborhood.whole` is called, for compiled programs, which can hold none."""
    return f"whole {number} {key_grid} {_word(weighted)}"


def _word(weighted: bool) -> str:
    return "weighted" if weighted else "unweighted"


def _log_weights(grid: Grid) -> NDArray[np.float64]:
    """Some rules weigh the poles 0, which is -inf here: such keys are members, but contribute
    nothing.
    """
    with np.errstate(divide="ignore"):
        return np.log(grid.ring_weights)


def _remake(kind: type[Neighborhood], values: dict[str, Any], transposed: bool) -> Neighborhood:
    made = kind(**values)._register()
    return made.transpose if transposed else made
