"""Legendre transforms without tables: P_lm are made by the native library where they are used, so
that large transforms need no more memory than their data. The structs mirror csrc/legendre.h.
"""

from ctypes import Structure, c_int32, c_int64, c_void_p
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import native
from spherule.grids import Grid
from spherule.ops.linear_map import LinearMap

LARGEST_PRODUCT = 2**22
"""Bytes of a table times fields. Below, a product with a table that is kept takes less time."""


def preferred(grid: Grid, lmax: int, x: Tensor) -> bool:
    """Whether to make values on the fly, for what has rings or degrees and orders last."""
    if x.device.type != "cpu" or torch.compiler.is_compiling() or native.load()[0] is None:
        return False
    table = (lmax + 1) ** 2 * grid.nrings * x.real.dtype.itemsize
    return table * x.shape[:-2].numel() > LARGEST_PRODUCT


class Rings(NamedTuple):
    """Rings in pairs that mirror each other at the equator, from the poles on. Of each pair, its
    northern half, and which rings they are; -1 for one that is not there.
    """

    nrings: int
    y: NDArray[np.float64]
    log2_sin: NDArray[np.float64]
    north: NDArray[np.int64]
    south: NDArray[np.int64]

    @classmethod
    def of(cls, theta: NDArray[np.float64]) -> "Rings":
        theta = np.asarray(theta, dtype=np.float64)
        is_south = theta > np.pi / 2
        above = np.where(is_south, np.pi - theta, theta)
        pairs: list[tuple[float, int, int]] = []
        for ring in np.argsort(above, kind="stable"):
            angle, north, south = pairs[-1] if pairs else (-1.0, 0, 0)
            # Of halves that differ in the last bit, either may come first. Near the pole the
            # northern one knows its angle better.
            if abs(above[ring] - angle) > 1e-15 or (south if is_south[ring] else north) >= 0:
                pairs.append((above[ring], *((-1, ring) if is_south[ring] else (ring, -1))))
            else:
                pairs[-1] = (angle, north, ring) if is_south[ring] else (above[ring], ring, south)
        angles, norths, souths = (np.array(column) for column in zip(*pairs, strict=True))
        with np.errstate(divide="ignore"):
            log2_sin = np.log2(np.sin(angles))
        y = 2 * np.sin(angles / 2) ** 2
        return cls(theta.size, y, log2_sin, norths.astype(np.int64), souths.astype(np.int64))


@lru_cache(maxsize=64)
def rings_of(grid: Grid) -> Rings:
    """All rings of a grid."""
    return Rings.of(grid.theta)


def to_rings(coeffs: Tensor, rings: Rings, orders: tuple[int, ...]) -> Tensor:
    """sum over l of P_lm coeffs[..., l, m], for these orders m: (..., ring, order)."""
    return _Transform.apply(coeffs, rings, orders, coeffs.shape[-2] - 1, False)


def to_coeffs(spectra: Tensor, rings: Rings, orders: tuple[int, ...], lmax: int) -> Tensor:
    """The transpose of `to_rings`: sum over rings of P_lm spectra[..., ring, m]."""
    return _Transform.apply(spectra, rings, orders, lmax, True)


class _Transform(LinearMap):
    @staticmethod
    def forward(
        x: Tensor, rings: Rings, orders: tuple[int, ...], lmax: int, transposed: bool
    ) -> Tensor:
        x = x.resolve_conj().resolve_neg().contiguous()
        rows = lmax + 1 if transposed else rings.nrings
        y = x.new_empty(*x.shape[:-2], rows, len(orders))
        name = "spherule_legendre_" + ("analysis" if transposed else "synthesis")
        wanted = np.array(orders, dtype=np.int64)
        arrays = (*rings[1:], wanted, _start(lmax))
        fields = x.shape[:-2].numel()
        struct = Legendre(
            fields,
            lmax,
            rings.nrings,
            rings.y.size,
            len(orders),
            *(a.ctypes.data for a in arrays),
            native.DTYPES[x.real.dtype],
            torch.get_num_threads(),
        )
        native.call(name, struct, x.data_ptr(), y.data_ptr())
        return y


class Legendre(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("fields", "lmax", "rings", "pairs", "orders")),
        *((name, c_void_p) for name in ("y", "log2_sin", "north", "south", "order", "start")),
        ("dtype", c_int32),
        ("threads", c_int32),
    )


@lru_cache(maxsize=64)
def _start(lmax: int) -> NDArray[np.float64]:
    """P_mm / sin(theta)^m of m = 0 ... lmax, with the Condon-Shortley phase."""
    m = np.arange(1, lmax + 1)
    steps = np.concatenate([[np.sqrt(0.25 / np.pi)], -np.sqrt((2 * m + 1) / (2 * m))])
    return np.cumprod(steps)
