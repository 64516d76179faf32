"""Ring pairs in the order in which the native library walks them; mirrors csrc/disco.h."""

from ctypes import Structure, c_int64, c_void_p
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from spherule.geometry.filters import Stencil
from spherule.geometry.ring_pairs import RingPairs
from spherule.grids import Grid
from spherule.ops.tables import table

Form = Literal["spread", "gather", "merge"]
"""Where the hats are: on the targets, on the sources, or merged by a depthwise convolution."""

# Target rings that share their sources: large enough to copy few sources twice, small enough for
# the second cache and for even work among threads.
_BAND = 8
# Lanes past the end of a ring read at most a vector past its last shift.
_SLACK = 16
# Hats of an entry. No more cover a point, unless empty ones reach for it: then it has two entries.
_PARTS = 4
# Rings with a shorter period than this leave vectors empty: lanes are fields there.
SHORTEST = 16

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


class _Plan(Structure):
    """A C struct that keeps the arrays which it points to."""

    def __init__(self, **values: int | NDArray | None) -> None:
        arrays = {
            k: np.ascontiguousarray(v) for k, v in values.items() if isinstance(v, np.ndarray)
        }
        super().__init__(**(values | {name: a.ctypes.data for name, a in arrays.items()}))
        self.arrays = arrays


def _fields(numbers: str, pointers: str) -> list:
    return [(n, c_int64) for n in numbers.split()] + [(p, c_void_p) for p in pointers.split()]


class Shifts(_Plan):
    _fields_ = _fields(
        "period hats bands target_stride source_stride target_size source_size",
        "target_origin source_origin band_target band_source order base low start place hat value",
    )


class Points(_Plan):
    _fields_ = [
        *_fields(
            "rings hats targets sources longest",
            "nphi ringstart pairs source_start source_nphi phases step row start column hat value",
        ),
        ("spread", c_int64),
    ]


@table(maxsize=128)
def plan(stencil: Stencil, transposed: bool, form: Form, dtype: torch.dtype) -> Shifts | Points:
    """One for each pair of grids and direction, shared between layers."""
    pairs = stencil.pairs.transpose if transposed else stencil.pairs
    if shifts_everywhere(stencil):
        return _shifts(pairs, stencil.basis, form, _NUMPY[dtype])
    assert form != "merge"
    return _points(pairs, stencil.basis, form, _NUMPY[dtype])


def shifts_everywhere(stencil: Stencil) -> bool:
    """Whether all rings shift into each other, far enough to fill vectors with longitudes."""
    return stencil.period >= SHORTEST


def _shifts(pairs: RingPairs, basis: int, form: Form, dtype: type) -> Shifts:
    period = int(pairs.period[0])
    r, s = pairs.ring[pairs.pair].T
    phases, step = (int(g.nphi[0]) // period for g in (pairs.target, pairs.source))
    target, source = r * phases + pairs.phase, s * step + pairs.column % step
    # Shifts both ways, so that few values are copied twice.
    shift = (pairs.column // step + period // 2) % period - period // 2
    targets, sources = pairs.target.nrings * phases, pairs.source.nrings * step
    target_hats = basis if form == "spread" else 1
    source_hats = basis if form == "gather" else 1
    if form == "spread":
        target = target * basis + pairs.hat
    if form == "gather":
        source = source * basis + pairs.hat
    order = np.lexsort((pairs.hat, shift, source, target))
    target, source, shift = (a[order] for a in (target, source, shift))
    hat: NDArray = pairs.hat[order].astype(np.int64)
    value: NDArray = pairs.value[order].astype(dtype)
    if form == "merge":
        first, hat, value = _merged(np.stack([target, source, shift]), hat, value)
        target, source, shift = target[first], source[first], shift[first]
    rows = sources * source_hats
    low, high = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    np.maximum.at(low, source, -shift)
    np.maximum.at(high, source, shift)
    base = np.concatenate([[0], np.cumsum(low + period + high + _SLACK)])
    start = np.searchsorted(target, np.arange(targets * target_hats + 1))
    per_band = _BAND * phases * target_hats
    band = np.minimum(
        np.arange(0, targets * target_hats + per_band, per_band), targets * target_hats
    )
    spans = [source[start[a] : start[b]] for a, b in pairwise(band)]
    return Shifts(
        period=period,
        hats=basis,
        bands=len(spans),
        target_stride=phases,
        source_stride=step,
        target_size=target_hats * pairs.target.size,
        source_size=source_hats * pairs.source.size,
        target_origin=_origins(pairs.target, phases, target_hats),
        source_origin=_origins(pairs.source, step, source_hats),
        band_target=band,
        band_source=np.array([(x.min(), x.max()) if x.size else (0, -1) for x in spans]),
        order=np.argsort([-x.size for x in spans], kind="stable"),
        base=base,
        low=low,
        start=start,
        place=base[source] + low[source] + shift,
        hat=hat if form == "merge" else None,
        value=value,
    )


def _merged(key: NDArray, hat: NDArray, value: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Runs of columns of equal key, of at most _PARTS: where they start, and (runs, _PARTS) of
    their hats and values, 0 to fill up.
    """
    new = np.append(True, np.any(key[:, 1:] != key[:, :-1], axis=0))
    start = np.flatnonzero(new)
    new |= (np.arange(new.size) - start[np.cumsum(new) - 1]) % _PARTS == 0
    first, run = np.flatnonzero(new), np.cumsum(new) - 1
    place = run, np.arange(run.size) - first[run]
    hats, values = (
        np.zeros((first.size, _PARTS), hat.dtype),
        np.zeros((first.size, _PARTS), value.dtype),
    )
    hats[place], values[place] = hat, value
    return first, hats, values


def _origins(grid: Grid, phases: int, hats: int) -> NDArray[np.int64]:
    """Where each row (ring, phase, hat) begins in a field (hat, point)."""
    first = grid.ringstart[:, None] + np.arange(phases)
    return (first[..., None] + grid.size * np.arange(hats)).ravel()


def _points(pairs: RingPairs, basis: int, form: Form, dtype: type) -> Points:
    r, s = pairs.ring.T
    most = np.maximum.reduceat(np.diff(pairs.start), pairs.row[:-1])
    return Points(
        rings=pairs.target.nrings,
        hats=basis,
        targets=pairs.target.size,
        sources=pairs.source.size,
        longest=int(np.bincount(r, most).max()),
        nphi=pairs.target.nphi,
        ringstart=pairs.target.ringstart,
        pairs=np.searchsorted(r, np.arange(pairs.target.nrings + 1)),
        source_start=pairs.source.ringstart[s],
        source_nphi=pairs.source.nphi[s],
        phases=np.diff(pairs.row),
        step=pairs.source.nphi[s] // pairs.period,
        row=pairs.row,
        start=pairs.start,
        column=pairs.column,
        hat=pairs.hat,
        value=pairs.value.astype(dtype),
        spread=int(form == "spread"),
    )
