"""Averages over the sphere, or over the part of it that a mask leaves."""

import torch
from torch import Tensor

from spherule.distributed import Place, area_shares, own, summed
from spherule.ops.checks import require_points, require_tensors
from spherule.ops.tables import table


def flat_pair(prediction: Tensor, target: Tensor, grid: Place) -> tuple[Tensor, Tensor]:
    """Two fields (batch, channels, *grid.shape) as (batch, channels, points), in float32 at
    least.
    """
    require_tensors(prediction=prediction, target=target)
    for name, u in (("prediction", prediction), ("target", target)):
        require_points(name, u, own(grid))
        if u.ndim != 2 + len(grid.shape):
            raise ValueError(f"{name}: expected (batch, channels, ...), got {tuple(u.shape)}")
        if not u.is_floating_point():
            raise TypeError(f"{name}: expected floating-point numbers, got {u.dtype}")
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction {tuple(prediction.shape)} and target {tuple(target.shape)} must have one "
            "shape: a broadcast would compare each with all"
        )
    dtype = torch.promote_types(prediction.dtype, target.dtype)
    dtype = torch.promote_types(dtype, torch.float32)
    return prediction.flatten(2).to(dtype), target.flatten(2).to(dtype)


def flat_mask(
    mask: Tensor | None, batch: int, channels: int, grid: Place, device: torch.device
) -> Tensor | None:
    """A mask `(*grid.shape)`, `(batch, *grid.shape)` or with a dimension for channels, as (batch or
    1, channels or 1, points).
    """
    if mask is None:
        return None
    require_points("mask", mask, own(grid))
    if mask.dtype != torch.bool:
        raise TypeError(f"mask: expected bool, True where a point counts, got {mask.dtype}")
    if mask.device != device:
        raise ValueError(
            f"mask: expected a tensor on {device}, as the fields are, got {mask.device}"
        )
    lead = mask.shape[: mask.ndim - len(grid.shape)]
    full = (1, 1) if not lead else (lead[0], 1) if len(lead) == 1 else tuple(lead)
    if len(full) != 2 or full[0] not in (1, batch) or full[1] not in (1, channels):
        raise ValueError(
            f"mask: {tuple(mask.shape)} does not fit a batch of {batch}, {channels} channels and "
            f"{grid!r}"
        )
    return mask.reshape(*full, own(grid).size)


def mean_over(values: Tensor, grid: Place, mask: Tensor | None) -> Tensor:
    """The average over the sphere of values (..., points) by quadrature, (...); 0 where the mask
    leaves nothing.
    """
    weights = area_weights(grid, values.dtype, values.device)
    if mask is None:
        return total(values * weights, grid)
    return ratio(total(values * mask * weights, grid), total(mask * weights, grid))


def mean_of_channels(means: Tensor, grid: Place, mask: Tensor | None) -> Tensor:
    """The average over the channels that the mask leaves something of, of (batch, channels) that
    are 0 where it leaves nothing.
    """
    if mask is None or mask.shape[1] == 1:
        return means.mean(1)
    present = total(mask * area_weights(grid, means.dtype, means.device), grid) > 0
    return ratio(means.sum(1), present.sum(1).to(means))


def total(values: Tensor, place: Place) -> Tensor:
    """The sum over all points, of all ranks, of values (..., points)."""
    return summed(values.sum(-1), place, shared=True)


@table(maxsize=32)
def area_weights(grid: Place, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Quadrature weights of a rank's points, (points,); the sum of all is 1."""
    return torch.tensor(area_shares(grid), dtype=dtype, device=device)


def ratio(part: Tensor, whole: Tensor) -> Tensor:
    """part / whole; where there is no whole, the part, which is 0 then or NaN."""
    return part / torch.where(whole == 0, 1.0, whole)
