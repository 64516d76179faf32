"""Derivatives of fields (..., points) along parallels and meridians."""

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spherule.geometry.differences import at_poles, shear_entries, slope_entries
from spherule.geometry.interpolation import Entries
from spherule.grids import Grid
from spherule.ops.ring_groups import ring_groups
from spherule.ops.sparse import SparseMap


def slope(u: Tensor, grid: Grid) -> Tensor:
    """d_theta u by finite differences."""
    return _map(slope_entries, grid, u.dtype, u.device)(u)


def shear(u: Tensor, grid: Grid, *, spectral: bool) -> Tensor:
    """d_phi u / sin(theta): by FFT ring by ring, or by finite differences."""
    if not spectral or u.numel() == 0:  # MKL's FFT refuses an empty batch
        return _map(shear_entries, grid, u.dtype, u.device)(u)
    rings, factors = ring_groups(grid, u.device), _factors(grid, u.dtype, u.device)
    parts = []
    for group, order, scale in zip(rings.groups, factors.order, factors.scale, strict=True):
        orders = torch.fft.rfft(u[..., group.points].unflatten(-1, (-1, group.nphi)))
        east = torch.fft.irfft(1j * order * orders, group.nphi)
        parts.append((east * scale).flatten(-2))
    east = parts[0] if len(parts) == 1 else torch.cat(parts, -1)[..., rings.point_order]
    if factors.poles is None:
        return east
    limit = _map(shear_entries, grid, u.dtype, u.device)(u)
    return torch.where(factors.poles, limit, east)


def eroded(mask: Tensor, grid: Grid) -> Tensor:
    """Points (..., points) that are seen with all that the differences there are made of."""
    hidden = (~mask).float()
    missing = _map(_stencil, grid, hidden.dtype, hidden.device)(hidden)
    return mask & (missing < 0.5)


def _stencil(grid: Grid) -> Entries:
    parts = slope_entries(grid), shear_entries(grid)
    row, column = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    places = np.unique(row * grid.size + column)
    return Entries(places // grid.size, places % grid.size, np.ones(places.size))


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # what validation made first, training uses too
def _map(
    entries: Callable[[Grid], Entries], grid: Grid, dtype: torch.dtype, device: torch.device
) -> SparseMap:
    row, column, weight = entries(grid)
    return SparseMap.build(row, column, weight, (grid.size, grid.size), dtype, device)


class _Factors(NamedTuple):
    """What turns ring spectra into shears, by group of rings."""

    order: list[Tensor]
    scale: list[Tensor]
    poles: Tensor | None
    """Points at a pole, where there are any."""


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _factors(grid: Grid, dtype: torch.dtype, device: torch.device) -> _Factors:
    poles = at_poles(grid)
    sines = torch.tensor(1 / np.where(poles, 1.0, np.sin(grid.theta)), dtype=dtype, device=device)
    groups = ring_groups(grid, device).groups
    orders = []
    for group in groups:
        order = torch.arange(group.nphi // 2 + 1, dtype=dtype, device=device)
        if group.nphi % 2 == 0:
            order[-1] = 0  # the highest order of an even ring has no derivative at the points
        orders.append(order)
    at_pole = torch.tensor(np.repeat(poles, grid.nphi), device=device)
    return _Factors(
        orders,
        [sines[group.rings, None] for group in groups],
        at_pole if poles.any() else None,
    )
