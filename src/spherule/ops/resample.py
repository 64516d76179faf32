"""Fields from one ring grid to another."""

from typing import Literal

import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.geometry.interpolation import bilinear_entries, nearest_points
from spherule.geometry.overlaps import overlap_entries
from spherule.grids import Grid
from spherule.ops.checks import require_points
from spherule.ops.sparse import SparseMap
from spherule.ops.tables import table


@checks.arguments
def resample(
    u: Shaped[Tensor, "..."],
    source: Grid,
    target: Grid,
    *,
    mode: Literal["bilinear", "conservative", "nearest"] = "bilinear",
) -> Shaped[Tensor, "..."]:
    """A field at the points of another grid, `(..., *target.shape)`.

    Bilinear is second order for smooth fields, keeps constants, crosses the date line and the
    poles; for labels and other integers take "nearest". Neither averages: filter a field before you
    put it on a much coarser grid, or take "conservative", the average over what lies in each cell,
    which keeps the field's mean and bounds but is first order.

    Args:
        u: `(..., *source.shape)`.
        source: the grid that it is on.
        target: the grid that it shall be on; any two ring grids will do.
        mode: "bilinear", "conservative" or "nearest".

    >>> import torch, spherule as sph
    >>> source, target = sph.Grid.gauss(16, 32), sph.Grid.healpix(8)
    >>> tuple(sph.ops.resample(torch.zeros(2, 3, 16, 32), source, target).shape)
    (2, 3, 768)
    """
    require_points("u", u, source)
    if mode not in ("bilinear", "conservative", "nearest"):
        raise ValueError(f'mode={mode!r}: expected "bilinear", "conservative" or "nearest"')
    flat = u.reshape(*u.shape[: u.ndim - len(source.shape)], source.size)
    if mode == "nearest":
        result = flat[..., _nearest(source, target, u.device)]
    elif u.dtype in (torch.float32, torch.float64):
        result = _average(mode, source, target, u.dtype, u.device)(flat)
    elif u.dtype in (torch.float16, torch.bfloat16):
        result = _average(mode, source, target, torch.float32, u.device)(flat.float()).to(u.dtype)
    else:
        raise TypeError(
            f"u: {mode} needs a floating-point tensor, got {u.dtype}; for labels take "
            'mode="nearest"'
        )
    return result.reshape(*result.shape[:-1], *target.shape)


@table(maxsize=64)
def _average(
    mode: str, source: Grid, target: Grid, dtype: torch.dtype, device: torch.device
) -> SparseMap:
    if mode == "conservative":
        entries = overlap_entries(source, target)
    else:
        entries = bilinear_entries(source, target.point_theta, target.point_phi)
    return SparseMap.build(*entries, (target.size, source.size), dtype, device)


@table(maxsize=64)
def _nearest(source: Grid, target: Grid, device: torch.device) -> Tensor:
    return torch.tensor(nearest_points(source, target.point_theta, target.point_phi), device=device)
