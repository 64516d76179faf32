"""Mean and variance over points, in plain PyTorch."""

import torch
from torch import Tensor


def moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Of x (batch, channels, points) by weights (points) or (batch, points)."""
    total = weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    shares = (weights / total)[..., None]
    mean = (x @ shares)[..., 0]
    variance = ((x - mean[..., None]).square() @ shares)[..., 0]
    return mean, variance


def standardize(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """(x - mean) scale + shift."""
    return torch.addcmul(shift[:, None], x - mean[..., None], scale[..., None])


def instance_norm(x: Tensor, weights: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """(x - mean) / sqrt(variance + eps) scale + shift."""
    mean, variance = moments(x, weights)
    return standardize(x, mean, scale * (variance + eps).rsqrt(), shift)
