"""Mean and variance over points, in plain PyTorch: computed in 32 bits at least, whatever a field
has.
"""

import torch
from torch import Tensor


def wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of x (batch, channels, points) by weights (points) or (batch, points)."""
    x = x.to(wide(x))
    total = weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    shares = (weights / total)[..., None]
    mean = (x @ shares)[..., 0]
    variance = ((x - mean[..., None]).square() @ shares)[..., 0]
    return mean, variance


def standardize(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """(x - mean) scale + shift, in the dtype of x."""
    centered = x.to(wide(x)) - mean[..., None]
    return torch.addcmul(shift[:, None], centered, scale[..., None]).to(x.dtype)


def instance_norm(x: Tensor, weights: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps) scale + shift, in the dtype of x."""
    mean, variance = moments(x, weights)
    return standardize(x, mean, scale * (variance + eps).rsqrt(), shift)
