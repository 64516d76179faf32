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
from spherule.ops.sparse import SparseMap


def slope(u: Tensor, grid: Grid) -> Tensor:
    """d_theta u by finite differences."""
    return _map(slope_entries, grid, u.dtype, u.device)(u)


def shear(u: Tensor, grid: Grid, *, spectral: bool) -> Tensor:
    """d_phi u / sin(theta): by FFT ring by ring, or by finite differences."""
    if not spectral or u.numel() == 0:  # MKL's FFT refuses an empty batch
        return _map(shear_entries, grid, u.dtype, u.device)(u)
    rings = _rings(grid, u.dtype, u.device)
    parts = []
    for group in rings.groups:
        orders = torch.fft.rfft(u[..., group.points].unflatten(-1, (-1, group.nphi)))
        east = torch.fft.irfft(1j * group.order * orders, group.nphi)
        parts.append((east * group.scale).flatten(-2))
    east = parts[0] if len(parts) == 1 else torch.cat(parts, -1)[..., rings.place]
    if rings.poles is None:
        return east
    limit = _map(shear_entries, grid, u.dtype, u.device)(u)
    return torch.where(rings.poles, limit, east)


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


class _Group(NamedTuple):
    """Rings of as many points, which share an FFT."""

    nphi: int
    points: slice | Tensor
    order: Tensor
    scale: Tensor


class _Rings(NamedTuple):
    groups: list[_Group]
    place: Tensor
    """Of each point among those of the groups, one after the other."""
    poles: Tensor | None


@lru_cache(maxsize=32)
@torch.inference_mode(False)
def _rings(grid: Grid, dtype: torch.dtype, device: torch.device) -> _Rings:
    poles = at_poles(grid)
    scale = 1 / np.where(poles, 1.0, np.sin(grid.theta))
    counts = np.unique(grid.nphi)
    groups, all_points = [], []
    for nphi in counts:
        rings = np.flatnonzero(grid.nphi == nphi)
        points = (grid.ringstart[rings, None] + np.arange(nphi)).ravel()
        order = np.arange(nphi // 2 + 1)
        if nphi % 2 == 0:
            order[-1] = 0  # the highest order of an even ring has no derivative at the points
        everything = slice(None) if counts.size == 1 else torch.tensor(points, device=device)
        numbers = (torch.tensor(a, dtype=dtype, device=device) for a in (order, scale[rings, None]))
        groups.append(_Group(int(nphi), everything, *numbers))
        all_points.append(points)
    place = torch.tensor(np.argsort(np.concatenate(all_points)), device=device)
    at_pole = torch.tensor(np.repeat(poles, grid.nphi), device=device)
    return _Rings(groups, place, at_pole if poles.any() else None)
