"""DISCO convolutions on GPUs: launches the Triton kernels next door.

Whoever imports this needs Triton. Tables are made once for each stencil and device.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spherule import cuda
from spherule.geometry.filters import Stencil
from spherule.geometry.ring_pairs import RingPairs
from spherule.ops.disco import triton_kernels
from spherule.ops.disco.plans import shifts_everywhere
from spherule.ops.tables import table

TILE = 64
"""Points of a tile, consecutive."""

# Programs that give the weight's gradient, at most: each keeps a part of it.
_PARTS = 64


class Tables(NamedTuple):
    """Entries of psi, by rows: those of hat k of row t are start[t, k] <= e < start[t, k + 1].

    Where all rings shift into each other, a row is all points of a ring that do, `period` of them;
    an entry is the first point and a column of a source ring, and a value. Else a row is a tile,
    and an entry one source and value for each of its points; value 0 fills up.
    """

    sources: Tensor
    values: Tensor
    start: Tensor
    shape: Tensor
    """Tiles of a row, period, rows of a ring; columns to the next source, and in a source ring."""
    tiles: int
    shifts: bool


@table(maxsize=64)
def tables(stencil: Stencil, transposed: bool, device: torch.device) -> Tables:
    pairs = stencil.pairs.transpose if transposed else stencil.pairs
    shifts = shifts_everywhere(stencil)
    *arrays, tiles = (_by_rings if shifts else _by_tiles)(pairs, stencil.basis)
    tensors = [torch.as_tensor(a, device=device) for a in arrays]
    return Tables(tensors[0], tensors[1], tensors[2], tensors[3], tiles, shifts)


def _by_rings(pairs: RingPairs, hats: int) -> tuple:
    period = int(pairs.period[0])
    phases, step = (int(g.nphi[0]) // period for g in (pairs.target, pairs.source))
    r, s = pairs.ring[pairs.pair].T
    group = (r * phases + pairs.phase) * hats + pairs.hat
    order = np.argsort(group, kind="stable")
    rows = pairs.target.nrings * phases
    start = np.concatenate([[0], np.cumsum(np.bincount(group, minlength=rows * hats))])
    sources = np.stack([pairs.source.ringstart[s], pairs.column], axis=1)[order]
    each = -(-period // TILE)
    shape = np.array([each, period, phases, step, period * step])
    values = pairs.value[order].astype(np.float32)
    ints = (a.astype(np.int32) for a in (sources, start, shape))
    sources, start, shape = ints
    return sources, values, start, shape, rows * each


def _by_tiles(pairs: RingPairs, hats: int) -> tuple:
    entries = pairs.entries()
    tiles = -(-pairs.target.size // TILE)
    group = entries.target // TILE * hats + entries.hat
    # The n-th entry of a point under a hat.
    order = np.lexsort((entries.source, entries.target, group))
    group, target, source = group[order], entries.target[order], entries.source[order]
    new = np.append(True, (group[1:] != group[:-1]) | (target[1:] != target[:-1]))[: group.size]
    nth = np.arange(group.size) - np.flatnonzero(new)[np.cumsum(new) - 1]
    width = np.zeros(tiles * hats, np.int64)
    np.maximum.at(width, group, nth + 1)
    start = np.concatenate([[0], np.cumsum(width)])
    if start[-1] * TILE >= 2**31:
        raise ValueError(f"{pairs.target!r}: a stencil of too many entries for 32-bit tables")
    sources = np.zeros((start[-1], TILE), np.int32)
    values = np.zeros((start[-1], TILE), np.float32)
    place = start[group] + nth, target % TILE
    sources[place], values[place] = source, entries.value[order]
    return sources, values, start.astype(np.int32), np.zeros(5, np.int32), tiles


def convolve(
    x: Tensor, weight: Tensor, stencil: Stencil, transposed: bool
) -> tuple[Tensor, Tensor | None]:
    """x (batch, groups in, points) with weight (groups, out, in, hats), filtered and mixed at
    once.
    """
    groups, out, in_, hats = weight.shape
    table, depthwise = tables(stencil, transposed, x.device), _depthwise(weight.shape)
    points = (stencil.in_grid if transposed else stencil.out_grid).size
    y = x.new_empty(x.shape[0], groups * out, points)
    if depthwise:
        groups, out, in_ = 1, groups, groups
    packed = weight.reshape(-1, hats).T if depthwise else weight.permute(0, 3, 1, 2)
    settings = options(hats, in_, out, shifts=table.shifts, depthwise=depthwise)
    programs = (table.tiles, x.shape[0] * groups, -(-out // settings["OUT"]))
    with cuda.device(x):
        triton_kernels.convolve[programs](
            *(x.contiguous(), packed.contiguous(), y, *table[:4]),
            *(groups, in_, out, x.shape[-1], points),
            **settings,
        )
    return y, None


def correlate(
    x: Tensor,
    dy: Tensor,
    x_hats: Tensor | None,
    dy_hats: Tensor | None,
    groups: int,
    stencil: Stencil,
    transposed: bool,
) -> Tensor:
    """The gradient (groups, out, in, hats) of `convolve` with respect to its weight."""
    table, hats, batch = tables(stencil, transposed, x.device), stencil.basis, x.shape[0]
    shape = (groups, dy.shape[1] // groups, x.shape[1] // groups, hats)
    depthwise = _depthwise(shape)
    groups, out, in_ = (1, groups, groups) if depthwise else shape[:3]
    settings = options(hats, in_, out, shifts=table.shifts, depthwise=depthwise)
    blocks = -(-in_ // settings["IN"]) * (1 if depthwise else -(-out // settings["OUT"]))
    each = -(-table.tiles // max(1, min(table.tiles, _PARTS)))
    chunks = -(-table.tiles // each)
    size = (hats, in_) if depthwise else (groups, hats, out, in_)
    part = x.new_empty(chunks, *size, dtype=torch.float32)
    with cuda.device(x):
        triton_kernels.correlate[(chunks, groups * hats, blocks)](
            *(x.contiguous(), dy.contiguous(), part, *table[:4]),
            *(batch, groups, in_, out, x.shape[-1], dy.shape[-1], table.tiles, each),
            **settings,
        )
    total = part.sum(0).to(x.dtype)
    # Compilers are told that the gradient is contiguous.
    grad = total.T.reshape(shape) if depthwise else total.permute(0, 2, 3, 1)
    return grad.clone(memory_format=torch.contiguous_format)


def _depthwise(shape: torch.Size | tuple[int, ...]) -> bool:
    return tuple(shape[1:3]) == (1, 1)


def options(hats: int, in_: int, out: int, *, shifts: bool, depthwise: bool) -> dict:
    """How the kernels are compiled for `in_` and `out` channels of a group."""
    blocks = {"IN": min(32, cuda.padded(in_)), "OUT": min(64, cuda.padded(out))}
    kinds = {"SHIFTS": shifts, "DEPTHWISE": depthwise, "PRECISION": cuda.precision()}
    return {"HATS": hats, "TILE": TILE, **blocks, **kinds, "num_warps": 8}
