"""Derivatives of fields (..., points) along parallels and meridians."""

from collections.abc import Callable
from functools import lru_cache

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
    """d_phi u / sin(theta): by FFT where asked for and where all rings are alike, else by finite
    differences.
    """
    # On reduced grids the points of a ring are as far apart as the rings: differences are as good.
    if not spectral or not grid.regular:
        return _map(shear_entries, grid, u.dtype, u.device)(u)
    rings = u.unflatten(-1, grid.shape)
    nlon = grid.shape[1]
    order = torch.arange(nlon // 2 + 1, dtype=u.dtype, device=u.device)
    if nlon % 2 == 0:
        order[-1] = 0  # the highest order of an even ring has no derivative at the points
    poles = at_poles(grid)
    scale = 1 / np.where(poles, 1.0, np.sin(grid.theta))
    east = torch.fft.irfft(1j * order * torch.fft.rfft(rings), nlon)
    east = east * torch.tensor(scale, dtype=u.dtype, device=u.device)[:, None]
    if poles.any():
        limit = _map(shear_entries, grid, u.dtype, u.device)(u).unflatten(-1, grid.shape)
        east = torch.where(torch.tensor(poles, device=u.device)[:, None], limit, east)
    return east.flatten(-2)


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
