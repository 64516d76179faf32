"""What every op says when its input does not fit."""

import torch
from torch import Tensor

from spherule import checks
from spherule.grids import Grid

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def require_tensors(**tensors: Tensor) -> None:
    """Tensors on one device."""
    for name, x in tensors.items():
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: expected a torch tensor, got {type(x).__name__}")
        if x.layout != torch.strided or x.is_nested:
            came = "a nested one" if x.is_nested else x.layout
            raise TypeError(f"{name}: expected a dense tensor, got {came}")
    first = next(iter(tensors.values()))
    if any(x.device != first.device for x in tensors.values()):
        devices = ", ".join(str(x.device) for x in tensors.values())
        raise ValueError(f"{', '.join(tensors)} must be on one device, got {devices}")


def require_floats(**tensors: Tensor) -> None:
    """Tensors on one device, of one floating-point dtype."""
    require_tensors(**tensors)
    for name, x in tensors.items():
        if x.dtype not in FLOATS:
            raise TypeError(f"{name}: expected a floating-point tensor, got {x.dtype}")
    first = next(iter(tensors.values()))
    if any(x.dtype != first.dtype for x in tensors.values()):
        dtypes = ", ".join(str(x.dtype) for x in tensors.values())
        raise TypeError(f"{', '.join(tensors)} must share a dtype, got {dtypes}")


def require_qkv(q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None) -> None:
    """The arguments of an attention, which fit each other."""
    require_floats(q=q, k=k, v=v)
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not q.ndim == k.ndim == v.ndim == 4:
        raise ValueError(f"expected (batch, heads, points, dim), got {shapes}")
    if q.shape[:2] != k.shape[:2] or k.shape[:3] != v.shape[:3] or q.shape[3] != k.shape[3]:
        raise ValueError(
            f"batch and heads of q, k, v, points of k and v, dim of q and k must agree, got "
            f"{shapes}"
        )
    if q.shape[3] == 0:
        raise ValueError(f"dim of q and k must be at least 1, got {shapes}")
    if key_mask is None:
        return
    require_tensors(q=q, key_mask=key_mask)
    if key_mask.dtype != torch.bool:
        raise TypeError(f"key_mask: expected bool, got {key_mask.dtype}")
    if key_mask.shape not in ((k.shape[2],), (k.shape[0], k.shape[2])):
        wanted = f"({k.shape[2]},) or ({k.shape[0]}, {k.shape[2]})"
        raise ValueError(
            f"key_mask: expected {wanted} for k {tuple(k.shape)}, got {tuple(key_mask.shape)}"
        )


def require_field(name: str, u: Tensor, grid: Grid) -> None:
    """A float32 or float64 tensor (..., *grid.shape)."""
    require_tensors(**{name: u})
    if u.dtype not in (torch.float32, torch.float64):
        raise TypeError(
            f"{name}: expected float32 or float64, got {u.dtype}; convert with {name}.float()"
        )
    require_points(name, u, grid)


def require_points(name: str, u: Tensor, grid: Grid) -> None:
    """A tensor of any dtype (..., *grid.shape)."""
    require_tensors(**{name: u})
    if tuple(u.shape[u.ndim - len(grid.shape) :]) != grid.shape or u.ndim < len(grid.shape):
        wanted = ", ".join(map(str, grid.shape))
        raise ValueError(f"{name}: expected (..., {wanted}) for {grid!r}, got {tuple(u.shape)}")


def require_coeffs(name: str, coeffs: Tensor) -> None:
    """A complex tensor (..., lmax + 1, lmax + 1)."""
    require_tensors(**{name: coeffs})
    if coeffs.dtype not in (torch.complex64, torch.complex128):
        raise TypeError(
            f"{name}: expected complex64 or complex128 coefficients, got {coeffs.dtype}"
        )
    if coeffs.ndim < 2 or coeffs.shape[-1] != coeffs.shape[-2] or coeffs.shape[-1] == 0:
        raise ValueError(f"{name}: expected (..., lmax + 1, lmax + 1), got {tuple(coeffs.shape)}")


def require_degree(name: str, lmax: int, grid: Grid) -> int:
    """A degree that the grid can tell apart from others."""
    degree = checks.integer(name, lmax)
    if not 0 <= degree <= grid.lmax:
        raise ValueError(f"{name}={degree} must be in [0, {grid.lmax}], what {grid!r} can resolve")
    return degree
