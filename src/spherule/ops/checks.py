"""What every op says when its input does not fit."""

import operator

import torch
from torch import Tensor

from spherule.grids import Grid


def require_field(name: str, u: Tensor, grid: Grid) -> None:
    """A float32 or float64 tensor (..., *grid.shape)."""
    if not isinstance(u, Tensor):
        raise TypeError(f"{name}: expected a torch tensor, got {type(u).__name__}")
    if u.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{name}: expected float32 or float64, got {u.dtype}; convert with {name}.float()"
        )
    require_points(name, u, grid)


def require_points(name: str, u: Tensor, grid: Grid) -> None:
    """A tensor of any dtype (..., *grid.shape)."""
    if not isinstance(u, Tensor):
        raise TypeError(f"{name}: expected a torch tensor, got {type(u).__name__}")
    if tuple(u.shape[u.ndim - len(grid.shape) :]) != grid.shape or u.ndim < len(grid.shape):
        wanted = ", ".join(map(str, grid.shape))
        raise ValueError(f"{name}: expected (..., {wanted}) for {grid!r}, got {tuple(u.shape)}")


def require_coeffs(name: str, coeffs: Tensor) -> None:
    """A complex tensor (..., lmax + 1, lmax + 1)."""
    if not isinstance(coeffs, Tensor):
        raise TypeError(f"{name}: expected a torch tensor, got {type(coeffs).__name__}")
    if coeffs.dtype not in (torch.complex64, torch.complex128):
        raise TypeError(
            f"{name}: expected complex64 or complex128 coefficients, got {coeffs.dtype}"
        )
    if coeffs.ndim < 2 or coeffs.shape[-1] != coeffs.shape[-2] or coeffs.shape[-1] == 0:
        raise ValueError(f"{name}: expected (..., lmax + 1, lmax + 1), got {tuple(coeffs.shape)}")


def require_degree(name: str, lmax: int, grid: Grid) -> int:
    """A degree that the grid can tell apart from others."""
    try:
        degree = operator.index(lmax)
    except TypeError:
        raise TypeError(f"{name}={lmax!r} must be an integer, got {type(lmax).__name__}") from None
    if not 0 <= degree <= grid.lmax:
        raise ValueError(f"{name}={degree} must be in [0, {grid.lmax}], what {grid!r} can resolve")
    return degree
