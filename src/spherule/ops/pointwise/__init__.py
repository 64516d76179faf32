"""Maps over the channels of each point: linear ones, and a multilayer perceptron that keeps only
its input for the backward pass. Dispatch and differentiation; the arithmetic is next door.

The library serves CPU tensors of 32 and 64 bits. All else is the reference: other devices, 16 bits,
exported programs (which then hold nothing of ours), functional transforms, forward mode, and
gradients of gradients.
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import forward_ad

from spherule import native
from spherule.ops.pointwise import cpu, reference


def linear(
    x: Float[Tensor, "batch channels points"],
    weight: Float[Tensor, "out channels"],
    bias: Float[Tensor, "out"] | None = None,
) -> Float[Tensor, "batch out points"]:
    """weight x + bias at every point."""
    (y,) = split_linear(x, weight, bias, [weight.shape[0]])
    return y


def split_linear(
    x: Float[Tensor, "batch channels points"],
    weight: Float[Tensor, "out channels"],
    bias: Float[Tensor, "out"] | None,
    widths: list[int],
) -> list[Tensor]:
    """`linear`, its channels in parts of these widths. Each has memory of its own, so that nothing
    is joined when the gradients of the parts come back.
    """
    if _served(x, weight, bias):
        return _linear(x, weight, bias, widths)
    return [*reference.linear(x, weight, bias).split(widths, dim=1)]


def mlp(
    x: Float[Tensor, "batch channels points"],
    first: Float[Tensor, "hidden channels"],
    bias: Float[Tensor, "hidden"],
    second: Float[Tensor, "out hidden"],
) -> Float[Tensor, "batch out points"]:
    """second gelu(first x + bias) at every point."""
    if _served(x, first, bias, second):
        return _mlp(x, first, bias, second)
    return reference.mlp(x, first, bias, second)


def _served(x: Tensor, *others: Tensor | None) -> bool:
    """Whether the library may be called, as an operator that torch knows little about."""
    if _exporting() or _transformed() or torch.is_autocast_enabled("cpu"):
        return False
    for other in others:
        if other is not None and (other.device != x.device or other.dtype != x.dtype):
            return False
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and _there()


@torch.compiler.assume_constant_result
def _there() -> bool:
    return native.load()[0] is not None


# Before torch 2.7 nobody tells exported programs from compiled ones.
_exporting: Callable[[], bool] = getattr(
    torch.compiler, "is_exporting", torch.compiler.is_compiling
)


def _transformed() -> bool:
    """Whether forward mode or a functional transform is under way; compilers trace neither."""
    if torch.compiler.is_compiling():
        return False
    functional = torch._C._functorch.peek_interpreter_stack() is not None
    return functional or forward_ad._current_level >= 0


@torch.library.custom_op("spherule::linear", mutates_args=())
def _linear(x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int]) -> list[Tensor]:
    return cpu.linear(x, weight, bias, widths)


@torch.library.custom_op("spherule::linear_backward", mutates_args=())
def _linear_backward(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of x, weight and bias, empty where they are not wanted."""
    grads = cpu.linear_backward(x, weight, dys, wanted)
    dx, dweight, dbias = (x.new_empty(0) if grad is None else grad for grad in grads)
    return dx, dweight, dbias


@torch.library.custom_op("spherule::mlp", mutates_args=())
def _mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    return cpu.mlp(x, first, bias, second)


@torch.library.custom_op("spherule::mlp_backward", mutates_args=())
def _mlp_backward(
    x: Tensor, first: Tensor, bias: Tensor, second: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    return cpu.mlp_backward(x, first, bias, second, dy)


@_linear.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int]) -> list[Tensor]:
    return [x.new_empty(x.shape[0], width, x.shape[2]) for width in widths]


@_linear_backward.register_fake
def _(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor, Tensor, Tensor]:
    shapes = (x.shape, weight.shape, weight.shape[:1])
    dx, dweight, dbias = (
        x.new_empty(shape if want else 0) for shape, want in zip(shapes, wanted, strict=True)
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
    x, weight, ctx.bias, ctx.widths = *inputs[:2], inputs[2] is not None, inputs[3]
    ctx.save_for_backward(x, weight)


def _backward(ctx: Any, dys: list[Tensor]) -> tuple:
    x, weight = ctx.saved_tensors
    if _differentiated():
        # The bias takes part by its gradient alone, which is a sum: any value does.
        bias = weight.new_zeros(weight.shape[0]) if ctx.bias else None
        grads = _by_reference(reference.linear, (x, weight, bias), torch.cat(dys, dim=1))
        return *grads, None
    wanted = [*ctx.needs_input_grad[:3]]
    grads = _linear_backward(x, weight, [*dys], wanted)
    return *(g if want else None for g, want in zip(grads, wanted, strict=True)), None


def _keep_mlp(ctx: Any, inputs: tuple, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _backward_mlp(ctx: Any, dy: Tensor) -> tuple:
    inputs = ctx.saved_tensors
    if _differentiated():
        return _by_reference(reference.mlp, inputs, dy)
    return _mlp_backward(*inputs, dy)


def _differentiated() -> bool:
    """Whether somebody wants the derivatives of a backward pass."""
    return torch.is_grad_enabled() or _transformed()


def _by_reference(op: Callable[..., Tensor], inputs: tuple, dy: Tensor) -> tuple:
    given = [x for x in inputs if x is not None]
    _, vjp = torch.func.vjp(  # type: ignore[misc]
        lambda *x: op(*x, *[None] * (len(inputs) - len(given))), *given
    )
    grads = vjp(dy)
    return *grads, *[None] * (len(inputs) - len(given))


_linear.register_autograd(_backward, setup_context=_keep)
_mlp.register_autograd(_backward_mlp, setup_context=_keep_mlp)
