"""Mean and variance of fields over their points, and fields that are centered and scaled by them:
one op, which reads and writes a field once; or two, between which ranks that share a field add up
what each has. Of fields, all keep their input alone. Dispatch and differentiation; the arithmetic
is next door.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spherule.ops.autocast import no_autocast
from spherule.ops.norm import cpu, reference
from spherule.ops.operator import operator
from spherule.ops.served import by_reference, differentiated, served


def moments(
    x: Float[Tensor, "batch channels points"], weights: Float[Tensor, "*batch points"]
) -> tuple[Float[Tensor, "batch channels"], Float[Tensor, "batch channels"]]:
    """Mean and variance of each channel of each sample, in 32 bits at least, whatever autocast
    says; 0 where the weights are.
    """
    (weights,) = _wide(x, weights)
    with no_autocast(x):
        return _moments(x, weights) if _served(x, weights) else reference.moments(x, weights)


def standardize(
    x: Float[Tensor, "batch channels points"],
    mean: Float[Tensor, "batch channels"],
    scale: Float[Tensor, "batch channels"],
    shift: Float[Tensor, "channels"],
) -> Float[Tensor, "batch channels points"]:
    """(x - mean) scale + shift, in the dtype of x."""
    inputs = x, *_wide(x, mean, scale, shift)
    with no_autocast(x):
        return _standardize(*inputs) if _served(*inputs) else reference.standardize(*inputs)


def instance_norm(
    x: Float[Tensor, "batch channels points"],
    weights: Float[Tensor, "*batch points"],
    scale: Float[Tensor, "channels"],
    shift: Float[Tensor, "channels"],
    eps: float,
) -> Float[Tensor, "batch channels points"]:
    """(x - mean) / sqrt(variance + eps) scale + shift, in the dtype of x, by its own moments."""
    weights, scale, shift = _wide(x, weights, scale, shift)
    with no_autocast(x):
        if not _served(x, weights, scale, shift):
            return reference.instance_norm(x, weights, scale, shift, eps)
        y, _, _ = _instance_norm(x, weights, scale, shift, eps)
        return y


def _wide(x: Tensor, *others: Tensor) -> list[Tensor]:
    return [t.to(reference.wide(x)) for t in others]


def _served(x: Tensor, first: Tensor, *others: Tensor) -> bool:
    """Fields may have 16 bits here: they are read and written, not multiplied."""
    field = x.dtype in (first.dtype, torch.bfloat16)
    return field and x.device == first.device and served(first, *others)


@operator("moments")
def _moments(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    return cpu.moments(x, weights)


@operator("moments_backward")
def _moments_backward(
    x: Tensor, weights: Tensor, mean: Tensor, dmean: Tensor, dvariance: Tensor
) -> Tensor:
    return cpu.moments_backward(x, weights, mean, dmean, dvariance)


@operator("standardize")
def _standardize(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return cpu.standardize(x, mean, scale, shift)


@operator("standardize_backward")
def _standardize_backward(
    x: Tensor, mean: Tensor, scale: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return cpu.standardize_backward(x, mean, scale, dy)


@operator("instance_norm")
def _instance_norm(
    x: Tensor, weights: Tensor, scale: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return cpu.instance_norm(x, weights, scale, shift, eps)


@operator("instance_norm_backward")
def _instance_norm_backward(
    x: Tensor, weights: Tensor, scale: Tensor, mean: Tensor, inverse: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return cpu.instance_norm_backward(x, weights, scale, mean, inverse, dy)


@_moments.register_fake
def _(x: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    return weights.new_empty(x.shape[:2]), weights.new_empty(x.shape[:2])


@_moments_backward.register_fake
def _(x: Tensor, weights: Tensor, mean: Tensor, dmean: Tensor, dvariance: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_standardize.register_fake
def _(x: Tensor, mean: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return x.new_empty(x.shape)


@_standardize_backward.register_fake
def _(x: Tensor, mean: Tensor, scale: Tensor, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), mean.new_empty(x.shape[:2]), mean.new_empty(x.shape[:2])


@_instance_norm.register_fake
def _(
    x: Tensor, weights: Tensor, scale: Tensor, shift: Tensor, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), weights.new_empty(x.shape[:2]), weights.new_empty(x.shape[:2])


@_instance_norm_backward.register_fake
def _(
    x: Tensor, weights: Tensor, scale: Tensor, mean: Tensor, inverse: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return x.new_empty(x.shape), scale.new_empty(x.shape[1:2]), scale.new_empty(x.shape[1:2])


def _keep_moments(ctx: Any, inputs: tuple, output: tuple) -> None:
    ctx.save_for_backward(*inputs, output[0])


def _backward_moments(ctx: Any, dmean: Tensor, dvariance: Tensor) -> tuple:
    x, weights, mean = ctx.saved_tensors
    if differentiated():
        (dx,) = by_reference(lambda x: reference.moments(x, weights), (x,), (dmean, dvariance))
        return dx, None
    return _moments_backward(x, weights, mean, dmean, dvariance), None


def _keep_standardize(ctx: Any, inputs: tuple, output: Tensor) -> None:
    x, mean, scale, _ = inputs
    ctx.save_for_backward(x, mean, scale)


def _backward_standardize(ctx: Any, dy: Tensor) -> tuple:
    x, mean, scale = ctx.saved_tensors
    if differentiated():
        # The shift takes part by its gradient alone, which is a sum: any value does.
        return by_reference(
            reference.standardize, (x, mean, scale, scale.new_zeros(x.shape[1])), dy
        )
    dx, dscale, total = _standardize_backward(x, mean, scale, dy)
    return dx, -scale * total, dscale, total.sum(0)


def _keep_instance_norm(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, weights, scale, shift, ctx.eps = inputs
    _, mean, inverse = output
    ctx.mark_non_differentiable(mean, inverse)
    ctx.save_for_backward(x, weights, scale, shift, mean, inverse)


def _backward_instance_norm(ctx: Any, dy: Tensor, *_: Tensor) -> tuple:
    x, weights, scale, shift, mean, inverse = ctx.saved_tensors
    if differentiated():
        dx, dscale, dshift = by_reference(
            lambda x, a, b: reference.instance_norm(x, weights, a, b, ctx.eps),
            (x, scale, shift),
            dy,
        )
    else:
        dx, dscale, dshift = _instance_norm_backward(x, weights, scale, mean, inverse, dy)
    return dx, None, dscale, dshift, None


_instance_norm.register_autograd(_backward_instance_norm, setup_context=_keep_instance_norm)
_moments.register_autograd(_backward_moments, setup_context=_keep_moments)
_standardize.register_autograd(_backward_standardize, setup_context=_keep_standardize)
