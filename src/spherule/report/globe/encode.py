"""Fields as a page holds them: rings closed at the poles, 16-bit codes, differences, deflate."""

import base64
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spherule.grids import Grid
from spherule.ops import resample

MISSING = 65535
STEPS = (65534, 4094, 1022)
"""Steps from the least value of a field to the largest: 16 bits, or 12 or 10 where 16 are too
many. The last are right to a thousandth still.
"""
POLE = 1e-9


@dataclass(frozen=True, eq=False)
class Codes:
    """A field's frames (frames, points) as whole numbers: value = offset + scale code."""

    codes: NDArray[np.uint16]
    offset: float
    scale: float

    def payload(self, row: int) -> dict[str, Any]:
        return {
            "offset": self.offset,
            "scale": self.scale,
            "frames": len(self.codes),
            "data": base64.b64encode(pack(self.codes, row)).decode(),
        }


def rings(grid: Grid) -> dict[str, Any]:
    """The rings of a grid, with a point at each pole that has none: all places lie between two."""
    north, south = _open_poles(grid)

    def closed(values: NDArray, first: float, last: float) -> list[float]:
        return [*([first] * north), *values.tolist(), *([last] * south)]

    return {
        "name": grid.name,
        "theta": closed(grid.theta, 0.0, np.pi),
        "nphi": closed(grid.nphi, 1, 1),
        "phi0": closed(grid.phi0, 0.0, 0.0),
        # A pole that was added covers no area.
        "weight": closed(grid.ring_weights, 0.0, 0.0),
        "row": row_length(grid),
    }


def row_length(grid: Grid) -> int:
    """How far back the point to the north is, where it is as far for all; else 0."""
    return int(grid.shape[1]) if grid.regular else 0


def close(values: NDArray, grid: Grid, *, classes: bool = False) -> NDArray:
    """(frames, points) with the poles that `rings` adds: a ring's mean, or its commonest class."""
    ends = [values[:, : grid.nphi[0]], values[:, grid.ringstart[-1] :]]
    poles = [_commonest(e) if classes else _mean(e) for e in ends]
    north, south = _open_poles(grid)
    parts = [poles[0]] * north + [values] + [poles[1]] * south
    return np.concatenate(parts, axis=1)


def quantize(values: NDArray, steps: int) -> Codes:
    """Whole numbers from 0 to `steps`, MISSING where a value is not finite."""
    finite = np.isfinite(values)
    low, high = (
        (float(values[finite].min()), float(values[finite].max())) if finite.any() else (0.0, 0.0)
    )
    scale = (high - low) / steps if high > low else 1.0
    codes = np.rint((np.where(finite, values, low) - low) / scale)
    return Codes(np.where(finite, codes, MISSING).astype(np.uint16), low, scale)


def pack(codes: NDArray[np.uint16], row: int) -> bytes:
    """Deflated differences: from the point to the north, then twice from the point to the west.

    Fields are smooth, so that most are near 0. They are folded to be positive, and all high bytes
    come before all low ones. Arithmetic is modulo 2^16: nothing is lost.
    """
    d = codes.copy()
    if row:
        d[:, row:] -= codes[:, :-row]
    for _ in range(2):
        d[:, 1:] -= d[:, :-1].copy()
    signed = d.view(np.int16)
    folded = ((signed << 1) ^ (signed >> 15)).view(np.uint16).ravel()
    planes = [(folded >> 8).astype(np.uint8), (folded & 255).astype(np.uint8)]
    return zlib.compress(np.concatenate(planes).tobytes(), 6)


def unpack(data: bytes, frames: int, row: int) -> NDArray[np.uint16]:
    """The inverse of `pack`, as the page does it."""
    planes = np.frombuffer(zlib.decompress(data), np.uint8).reshape(2, frames, -1).astype(np.uint16)
    folded = planes[0] << 8 | planes[1]
    d = folded >> 1 ^ (-(folded & 1).astype(np.int16)).view(np.uint16)
    for _ in range(2):
        d = np.cumsum(d, axis=1, dtype=np.uint16)
    for i in range(row, d.shape[1] if row else 0):
        d[:, i] += d[:, i - row]
    return d


def coarsen(values: NDArray, source: Grid, target: Grid, *, classes: bool = False) -> NDArray:
    """(frames, points) on another grid; missing where most of the place is."""
    u = torch.from_numpy(np.ascontiguousarray(values)).reshape(-1, *source.shape)
    if classes:
        return resample(u, source, target, mode="nearest").flatten(1).numpy()
    u = u.float()
    share = resample(u.isfinite().float(), source, target)
    mean = resample(u.nan_to_num(0.0, 0.0, 0.0), source, target) / share.clamp(min=1e-6)
    return mean.masked_fill(share < 0.5, torch.nan).flatten(1).numpy()


def _open_poles(grid: Grid) -> tuple[bool, bool]:
    return bool(grid.theta[0] > POLE), bool(grid.theta[-1] < np.pi - POLE)


def _mean(ring: NDArray) -> NDArray:
    finite = np.isfinite(ring)
    total = np.where(finite, ring, 0).sum(axis=1, keepdims=True, dtype=np.float64)
    count = finite.sum(axis=1, keepdims=True)
    # As between points: what is mostly missing is missing.
    return np.where(2 * count >= ring.shape[1], total / np.maximum(count, 1), np.nan)


def _commonest(ring: NDArray) -> NDArray:
    return np.array([[np.bincount(r.astype(np.int64)).argmax()] for r in ring], dtype=ring.dtype)
