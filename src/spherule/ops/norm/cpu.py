"""Mean and variance over points by the native library; csrc/norm.h says what it takes. Fields may
have 16 bits, all else has 32 or more.
"""

import torch
from torch import Tensor

from spherule import native
from spherule.ops.pointwise.cpu import Channels, Pointwise, columns


def moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each channel of each sample."""
    x, weights = columns(x), weights.contiguous()
    total = _totals(x, weights)
    mean, variance = (weights.new_empty(x.shape[:2]) for _ in range(2))
    native.call(
        "spherule_moments",
        Pointwise.of(x, x.shape[1]),
        weights.data_ptr(),
        _stride(weights),
        total.data_ptr(),
        Channels.of(x),
        mean.data_ptr(),
        variance.data_ptr(),
    )
    return mean, variance


def moments_backward(
    x: Tensor, weights: Tensor, mean: Tensor, dmean: Tensor, dvariance: Tensor
) -> Tensor:
    """The gradient with respect to x."""
    x, dx, weights = columns(x), x.new_empty(x.shape), weights.contiguous()
    total = _totals(x, weights)
    small = [t.contiguous() for t in (mean, dmean, dvariance)]
    native.call(
        "spherule_moments_backward",
        Pointwise.of(x, x.shape[1]),
        weights.data_ptr(),
        _stride(weights),
        total.data_ptr(),
        Channels.of(x),
        *(t.data_ptr() for t in small),
        Channels.of(dx),
    )
    return dx


def standardize(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """(x - mean) scale + shift."""
    x, y = columns(x), x.new_empty(x.shape)
    small = [t.contiguous() for t in (mean, scale, shift)]
    native.call(
        "spherule_standardize",
        Pointwise.of(x, x.shape[1]),
        Channels.of(x),
        *(t.data_ptr() for t in small),
        Channels.of(y),
    )
    return y


def standardize_backward(
    x: Tensor, mean: Tensor, scale: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients with respect to x and scale, and the sum of dy over the points."""
    x, dy, dx = columns(x), columns(dy), x.new_empty(x.shape)
    mean, scale = mean.contiguous(), scale.contiguous()
    dscale, total = (mean.new_empty(x.shape[:2]) for _ in range(2))
    native.call(
        "spherule_standardize_backward",
        Pointwise.of(x, x.shape[1]),
        Channels.of(x),
        mean.data_ptr(),
        scale.data_ptr(),
        Channels.of(dy),
        Channels.of(dx),
        dscale.data_ptr(),
        total.data_ptr(),
    )
    return dx, dscale, total


def instance_norm(
    x: Tensor, weights: Tensor, scale: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """What is normalized, and for its gradients the mean and 1 / sqrt(variance + eps)."""
    x, y, weights = columns(x), x.new_empty(x.shape), weights.contiguous()
    total, small = _totals(x, weights), torch.tensor(eps, dtype=torch.float64)
    scale, shift = scale.contiguous(), shift.contiguous()
    mean, inverse = (weights.new_empty(x.shape[:2]) for _ in range(2))
    native.call(
        "spherule_instance_norm",
        Pointwise.of(x, x.shape[1]),
        weights.data_ptr(),
        _stride(weights),
        total.data_ptr(),
        small.data_ptr(),
        Channels.of(x),
        scale.data_ptr(),
        shift.data_ptr(),
        Channels.of(y),
        mean.data_ptr(),
        inverse.data_ptr(),
    )
    return y, mean, inverse


def instance_norm_backward(
    x: Tensor, weights: Tensor, scale: Tensor, mean: Tensor, inverse: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients with respect to x, scale and shift."""
    x, dy, dx, weights = columns(x), columns(dy), x.new_empty(x.shape), weights.contiguous()
    total, scale = _totals(x, weights), scale.contiguous()
    dscale, dshift = (weights.new_empty(x.shape[:2]) for _ in range(2))
    native.call(
        "spherule_instance_norm_backward",
        Pointwise.of(x, x.shape[1]),
        weights.data_ptr(),
        _stride(weights),
        total.data_ptr(),
        Channels.of(x),
        *(t.data_ptr() for t in (scale, mean, inverse)),
        Channels.of(dy),
        Channels.of(dx),
        dscale.data_ptr(),
        dshift.data_ptr(),
    )
    return dx, dscale.sum(0), dshift.sum(0)


def _totals(x: Tensor, weights: Tensor) -> Tensor:
    return weights.double().sum(-1).expand(x.shape[0]).contiguous()


def _stride(weights: Tensor) -> int:
    """From one sample's to the next one's."""
    return weights.shape[-1] if weights.ndim == 2 else 0
