"""Derivatives of fields (..., points) along parallels and meridians."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from spherule.distributed import Halo, Place, Shards, own, ring_halo, whole
from spherule.geometry.differences import at_poles, shear_entries, slope_entries
from spherule.geometry.interpolation import Entries
from spherule.grids import Grid
from spherule.ops.ring_groups import ring_groups
from spherule.ops.sparse import SparseMap
from spherule.ops.tables import table


def slope(u: Tensor, grid: Place) -> Tensor:
    """d_theta u by finite differences."""
    return _difference(slope_entries, u, grid)


def shear(u: Tensor, grid: Place, *, spectral: bool) -> Tensor:
    """d_phi u / sin(theta): by FFT ring by ring, or by finite differences."""
    if not spectral:
        return _difference(shear_entries, u, grid)
    # An exchange: on all ranks or on none, whoever owns the poles.
    poles = bool(at_poles(whole(grid)).any())
    limit = _difference(shear_entries, u, grid) if poles else None
    if u.numel() == 0:  # MKL's FFT refuses an empty batch
        return u if limit is None else limit
    rings, factors = ring_groups(own(grid), u.device), _factors(own(grid), u.dtype, u.device)
    parts = []
    for group, order, scale in zip(rings.groups, factors.order, factors.scale, strict=True):
        orders = torch.fft.rfft(u[..., group.points].unflatten(-1, (-1, group.nphi)))
        east = torch.fft.irfft(1j * order * orders, group.nphi)
        parts.append((east * scale).flatten(-2))
    east = parts[0] if len(parts) == 1 else torch.cat(parts, -1)[..., rings.point_order]
    return east if limit is None else torch.where(factors.poles, limit, east)


def eroded(mask: Tensor, grid: Place) -> Tensor:
    """Points (..., points) that are seen with all that the differences there are made of."""
    hidden = (~mask).float()
    missing = _difference(_stencil, hidden, grid)
    return mask & (missing < 0.5)


def _stencil(grid: Grid) -> Entries:
    parts = slope_entries(grid), shear_entries(grid)
    row, column = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    places = np.unique(row * grid.size + column)
    return Entries(places // grid.size, places % grid.size, np.ones(places.size))


def _difference(entries: Callable[[Grid], Entries], u: Tensor, grid: Place) -> Tensor:
    matrix, halo = _map(entries, grid, u.dtype, u.device)
    return matrix(halo(u))


@table(maxsize=32)
def _map(
    entries: Callable[[Grid], Entries], grid: Place, dtype: torch.dtype, device: torch.device
) -> tuple[SparseMap, Halo]:
    """The rows of a rank's own points, and the columns that they need."""
    row, column, weight = entries(whole(grid))
    halo, points = ring_halo(grid, grid), own(grid)
    first = grid.points.start if isinstance(grid, Shards) else 0
    mine = (row >= first) & (row < first + points.size)
    row, column, weight = row[mine] - first, column[mine] - halo.start, weight[mine]
    shape = (points.size, halo.seen.size)
    return SparseMap.build(row, column, weight, shape, dtype, device), halo


class _Factors(NamedTuple):
    """What turns ring spectra into shears, by group of rings."""

    order: list[Tensor]
    scale: list[Tensor]
    poles: Tensor
    """Which points are at a pole."""


@table(maxsize=32)
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
        at_pole,
    )
