"""Maps over the channels of each point: linear ones, and a multilayer perceptron that keeps only
its input for the backward pass. Dispatch and differentiation; the arithmetic is next door.

Linear maps take and give fields (batch, channels, points), or, as attention has them, by heads:
(batch, heads, points, dim), whose channels are those of the first head, then of the second and so
on.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spherule.ops.operator import operator
from spherule.ops.pointwise import cpu, reference
from spherule.ops.served import by_reference, differentiated, served, shortened, widened


def linear(
    x: Float[Tensor, "batch channels points"] | Float[Tensor, "batch heads points dim"],
    weight: Float[Tensor, "out channels"],
    bias: Float[Tensor, "out"] | None = None,
) -> Float[Tensor, "batch out points"]:
    """weight x + bias at every point."""
    (y,) = split_linear(x, weight, bias, [weight.shape[0]])
    return y


def split_linear(
    x: Float[Tensor, "batch channels points"] | Float[Tensor, "batch heads points dim"],
    weight: Float[Tensor, "out channels"],
    bias: Float[Tensor, "out"] | None,
    widths: list[int],
    heads: int = 0,
) -> list[Tensor]:
    """`linear`, its channels in fields of these widths, by heads if so many are asked for. Each has
    memory of its own, so that nothing is joined when their gradients come back.
    """
    if served(x, weight, bias):
        return _linear(x, weight, bias, widths, heads)
    if shortened(x):
        return _linear(x.to(torch.bfloat16), weight, bias, widths, heads)
    if (dtype := widened(x)) is not None:
        wide = _in_32_bits(split_linear, x, weight, bias, widths, heads)
        return [y.to(dtype) for y in wide]
    return reference.split_linear(x, weight, bias, widths, heads)


def mlp(
    x: Float[Tensor, "batch channels points"],
    first: Float[Tensor, "hidden channels"],
    bias: Float[Tensor, "hidden"],
    second: Float[Tensor, "out hidden"],
) -> Float[Tensor, "batch out points"]:
    """second gelu(first x + bias) at every point."""
    if served(x, first, bias, second):
        return _mlp(x, first, bias, second)
    if shortened(x):
        return _mlp(x.to(torch.bfloat16), first, bias, second)
    if (dtype := widened(x)) is not None:
        return _in_32_bits(mlp, x, first, bias, second).to(dtype)
    return reference.mlp(x, first, bias, second)


def _in_32_bits(function: Callable[..., Any], *inputs: Any) -> Any:
    with torch.autocast("cpu", enabled=False):
        return function(*(x.float() if isinstance(x, Tensor) else x for x in inputs))


# Schemas that hold lists are written out: before torch 2.7, none is read from `list[int]`.
@operator("linear", "(Tensor x, Tensor weight, Tensor? bias, int[] widths, int heads) -> Tensor[]")
def _linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int], heads: int
) -> list[Tensor]:
    return cpu.linear(x, weight, bias, widths, heads)


@operator(
    "linear_backward",
    "(Tensor x, Tensor weight, Tensor[] dys, bool[] wanted) -> (Tensor, Tensor, Tensor)",
)
def _linear_backward(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, weight and bias, empty where they are not wanted."""
    grads = cpu.linear_backward(x, weight, dys, wanted)
    dx, dweight, dbias = (x.new_empty(0) if grad is None else grad for grad in grads)
    return dx, dweight, dbias


@operator("mlp")
def _mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    return cpu.mlp(x, first, bias, second)


@operator("mlp_backward")
def _mlp_backward(
    x: Tensor, first: Tensor, bias: Tensor, second: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return cpu.mlp_backward(x, first, bias, second, dy)


@_linear.register_fake
def _(
    x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int], heads: int
) -> list[Tensor]:
    return [cpu.empty(x, width, heads) for width in widths]


@_linear_backward.register_fake
def _(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    dx = x.new_empty(x.shape if wanted[0] else 0)
    dweight, dbias = (
        weight.new_empty(shape if want else 0)
        for shape, want in zip((weight.shape, weight.shape[:1]), wanted[1:], strict=True)
    )
    return dx, dweight, dbias


@_mlp.register_fake
def _(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], second.shape[0], x.shape[2])


@_mlp_backward.register_fake
def _(
    x: Tensor, first: Tensor, bias: Tensor, second: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    dx, dfirst, dbias, dsecond = (t.new_empty(t.shape) for t in (x, first, bias, second))
    return dx, dfirst, dbias, dsecond


def _keep(ctx: Any, inputs: tuple, output: list[Tensor]) -> None:
    x, weight, bias, *ctx.layout = inputs
    ctx.bias = bias is not None
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, dys: list[Tensor]) -> tuple:
    x, weight = ctx.saved_tensors
    if differentiated(*dys):
        # The bias takes part by its gradient alone, which is a sum: any value does.
        bias = weight.new_zeros(weight.shape[0]) if ctx.bias else None
        grads = by_reference(
            lambda *given: reference.split_linear(*given, *ctx.layout), (x, weight, bias), [*dys]
        )
        return *grads, None, None
    wanted = [*ctx.needs_input_grad[:3]]
    grads = _linear_backward(x, weight, [*dys], wanted)
    return *(g if want else None for g, want in zip(grads, wanted, strict=True)), None, None


def _keep_mlp(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_mlp(ctx: Any, dy: Tensor) -> tuple:
    inputs = ctx.saved_tensors
    if differentiated():
        return by_reference(reference.mlp, inputs, dy)
    return _mlp_backward(*inputs, dy)


_linear.register_autograd(_backward, setup_context=_keep)
_mlp.register_autograd(_backward_mlp, setup_context=_keep_mlp)
