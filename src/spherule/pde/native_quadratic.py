"""The quadratic terms of the shallow water equations by the native library: the same sums as in
`transform`, on one state or two after the other, which stay in the caches, with the symmetries of
rings about the equator and of longitudes about two meridians. The struct mirrors
csrc/shallow_water.h.
"""

import math
from ctypes import Structure, c_int32, c_int64, c_void_p

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import native
from spherule.geometry.transforms import SCALAR, SHEAR, SLOPE
from spherule.ops.served import served
from spherule.pde.transform import quadratic_grid

_ROW = 32
"""SPHERULE_ROW: rows of tables are padded to a multiple of this."""


def preferred(y: Tensor) -> bool:
    """Whether the library may do it: it knows no gradients."""
    wanted = y.requires_grad and torch.is_grad_enabled()
    return served(y) and not wanted and not torch.compiler.is_compiling()


class NativeQuadratic:
    """For spectra as `transform.pack` makes them; `coriolis` are such, (order, part, degree)."""

    def __init__(self, lmax: int, *, radius: float, coriolis: Tensor) -> None:
        grid = quadratic_grid(lmax)
        pairs, nphi = grid.nrings // 2, grid.shape[1]
        theta, weights = grid.theta[:pairs], grid.ring_weights[:pairs]
        scalar, slope, shear = (b.values(lmax, theta) for b in (SCALAR, SLOPE, SHEAR))
        degree = np.arange(lmax + 1)
        eigenvalue = (degree * (degree + 1.0))[:, None]
        even = ((degree + degree[:, None]) % 2 == 0)[..., None]
        wind = np.stack([np.where(even, shear, slope), np.where(even, slope, shear)])
        spin = scalar * eigenvalue / (2 * radius**2)
        segments = np.concatenate(
            [weights * t for t in (shear / radius, -slope / radius, spin)], axis=2
        )
        half = lmax // 2 + 1
        analysis = np.zeros((2, lmax + 1, 3 * pairs, half))
        for m in range(lmax + 1):
            for parity in range(2):
                terms = segments[m, m + parity :: 2]
                analysis[parity, m, :, : len(terms)] = terms.T
        # Longitudes (j + 1/2) of nphi, their angles reduced as integers before they are rounded.
        order = 2 * np.arange(half) + np.arange(2)[:, None]
        turns = (2 * np.arange(nphi // 4) + 1)[:, None] * order[:, None, :] % (2 * nphi)
        angle = math.pi / nphi * turns
        waves = np.stack(
            [np.cos(angle), -np.sin(angle)], axis=1
        )  # (parity, part, longitude, order)
        both_signs = np.where(order > 0, 2.0, 1.0)[:, None, None, :]
        arrays = (
            _padded(scalar),
            _padded(wind * (-radius / np.maximum(eigenvalue, 1))),
            _padded(analysis),
            both_signs * waves,
            np.ascontiguousarray(waves.swapaxes(2, 3)),
        )
        self._tables = [torch.from_numpy(a).to(coriolis.dtype).contiguous() for a in arrays]
        self._tables.append(coriolis.contiguous())
        self._sizes = lmax, pairs, nphi // 4

    def __call__(self, y: Tensor) -> Tensor:
        """Spectra of -div(a V), -div(b V) and curl(b V) - laplacian |V|^2 / 2, where a is the
        geopotential, b the absolute vorticity and V the wind.
        """
        assert y.dtype == self._tables[0].dtype, f"states of {y.dtype} and other tables"
        y = y.contiguous()
        tendencies = torch.empty_like(y)
        lmax, pairs, quarter = self._sizes
        struct = ShallowWater(
            lmax,
            y.shape[3],
            pairs,
            quarter,
            *(t.data_ptr() for t in self._tables),
            native.DTYPES[y.dtype],
            torch.get_num_threads(),
        )
        native.call("spherule_shallow_water_quadratic", struct, y.data_ptr(), tendencies.data_ptr())
        return tendencies


class ShallowWater(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("lmax", "states", "pairs", "quarter")),
        *((name, c_void_p) for name in ("scalar", "wind", "analysis", "to_points", "to_orders")),
        ("coriolis", c_void_p),
        ("dtype", c_int32),
        ("threads", c_int32),
    )


def _padded(table: NDArray[np.float64]) -> NDArray[np.float64]:
    missing = -table.shape[-1] % _ROW
    return np.pad(table, [(0, 0)] * (table.ndim - 1) + [(0, missing)])
