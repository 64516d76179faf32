"""Discrete-continuous (DISCO) convolution: the filter is continuous, the field is sampled. Checks,
dispatch and differentiation; the arithmetic is next door.

The operators take the stencil's name, as attention's take the neighborhood's, and are the same on
every device: so is an exported program. Both are linear in each of their tensors, and their
gradients are these operators again.
"""

from types import ModuleType
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from spherule import checks, cuda, native
from spherule.checks import instance
from spherule.geometry.filters import Stencil
from spherule.ops.autocast import autocast_dtype, is_autocast, no_autocast
from spherule.ops.checks import require_floats, require_tensors
from spherule.ops.disco import cpu, reference
from spherule.ops.disco.plans import shifts_everywhere
from spherule.ops.forward_mode import refuse_in_backward
from spherule.ops.operator import operator


@checks.arguments
def disco(
    x: Float[Tensor, "batch in_channels *in_points"],
    weight: Float[Tensor, "out_channels group_channels basis"],
    stencil: Stencil,
) -> Float[Tensor, "batch out_channels *out_points"]:
    """Convolution of fields on `stencil.in_grid` with sum_k weight[..., k] psi_k, on
    `stencil.out_grid`.

    As in torch's convolutions, fewer `group_channels` than `in_channels` means groups:
    in_channels // group_channels of them; one is depthwise. 16-bit fields are filtered in float32.
    """
    _check(x, weight, stencil)
    dtype = x.dtype
    if is_autocast(x) and dtype != torch.float64:
        dtype = autocast_dtype(x)
        # Where fields are filtered in float32, nothing is gained by rounding them first.
        inner = torch.float32 if x.device.type == "cpu" else dtype
        x, weight = x.to(inner), weight.to(inner)
    if x.dtype != weight.dtype:
        raise TypeError(f"weight: expected {x.dtype}, the dtype of x, got {weight.dtype}")
    (out_channels, group_channels, _), flat = weight.shape, x.flatten(2)
    groups = x.shape[1] // group_channels
    if group_channels == 1 and out_channels > groups and shifts_everywhere(stencil):
        # Depthwise, the hats of a channel merge. Wide, since the gradients of copies are added up.
        flat, weight = _wide(flat), _wide(weight)
        flat, groups = flat.repeat_interleave(out_channels // groups, dim=1), out_channels
    y, _ = _disco(flat, weight.unflatten(0, (groups, -1)), stencil.name, False)
    return y.reshape(*y.shape[:2], *stencil.out_shape).to(dtype)


def _kernels(x: Tensor) -> ModuleType:
    """The one place that chooses: where they are there, the library for CPU tensors and Triton for
    those on a GPU; else the reference.
    """
    if x.device.type == "cpu" and native.load()[0] is not None:
        return cpu
    if x.device.type == "cuda" and x.dtype != torch.float64 and cuda.usable() and x.numel():
        # Imports Triton.
        from spherule.ops.disco import gpu

        return gpu
    return reference


@operator("disco", linear=2)
def _disco(x: Tensor, weight: Tensor, stencil: str, transposed: bool) -> tuple[Tensor, Tensor]:
    """x (batch, groups in, points) with weight (groups, out, in, hats); and x under the hats for
    the gradient, empty where nobody made it.
    """
    known = Stencil.from_name(stencil)
    if not known.nonzeros:  # a part of a grid may be empty
        return _output(x, weight, known, transposed).zero_(), _nothing(x)
    with no_autocast(x):
        y, hats = _kernels(x).convolve(x, weight, known, transposed)
    return y, (_nothing(x) if hats is None else hats)


@operator("disco_weight")
def _disco_weight(
    x: Tensor,
    dy: Tensor,
    x_hats: Tensor,
    dy_hats: Tensor,
    groups: int,
    stencil: str,
    transposed: bool,
) -> Tensor:
    """The gradient of `_disco` with respect to its weight."""
    hats = (None if h.ndim == 1 else h for h in (x_hats, dy_hats))
    known = Stencil.from_name(stencil)
    if not known.nonzeros:
        return x.new_zeros(groups, dy.shape[1] // groups, x.shape[1] // groups, known.basis)
    with no_autocast(x):
        return _kernels(x).correlate(x, dy, *hats, groups, known, transposed)


@_disco.register_fake
def _(x: Tensor, weight: Tensor, stencil: str, transposed: bool) -> tuple[Tensor, Tensor]:
    known = Stencil.from_name(stencil)
    y = _output(x, weight, known, transposed)
    keeps = _kernels(x) is cpu and cpu.keeps(weight.shape, known, transposed)
    if not known.nonzeros or not keeps:
        return y, _nothing(x)
    return y, _nothing(x).new_empty(*x.shape[:2], known.basis, y.shape[-1])


@_disco_weight.register_fake
def _(
    x: Tensor,
    dy: Tensor,
    x_hats: Tensor,
    dy_hats: Tensor,
    groups: int,
    stencil: str,
    transposed: bool,
) -> Tensor:
    hats = Stencil.from_name(stencil).basis
    return x.new_empty(groups, dy.shape[1] // groups, x.shape[1] // groups, hats)


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    x, weight, ctx.stencil, ctx.transposed = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, dy: Tensor | None, _: Tensor | None) -> tuple:
    refuse_in_backward()
    if dy is None:
        return None, None, None, None
    x, weight, x_hats = ctx.saved_tensors
    dx, dweight, dy_hats = None, None, _nothing(x)
    if ctx.needs_input_grad[0]:
        dx, dy_hats = _disco(dy, weight.transpose(1, 2), ctx.stencil, not ctx.transposed)
    if ctx.needs_input_grad[1]:
        where = (weight.shape[0], ctx.stencil, ctx.transposed)
        dweight = _disco_weight(x, dy, x_hats, dy_hats, *where)
    return dx, dweight, None, None


def _keep_weight(ctx: Any, inputs: tuple, output: Tensor) -> None:
    x, dy, *_, ctx.stencil, ctx.transposed = inputs
    ctx.save_for_backward(x, dy)


def _backward_weight(ctx: Any, dw: Tensor) -> tuple:
    # What is under the hats follows from x and dy: theirs is all of the gradient.
    x, dy = ctx.saved_tensors
    dx, _ = _disco(dy, dw.transpose(1, 2), ctx.stencil, not ctx.transposed)
    return dx, _disco(x, dw, ctx.stencil, ctx.transposed)[0], *[None] * 5


_disco.register_autograd(_backward, setup_context=_keep)
_disco_weight.register_autograd(_backward_weight, setup_context=_keep_weight)


def _output(x: Tensor, weight: Tensor, stencil: Stencil, transposed: bool) -> Tensor:
    points = (stencil.in_grid if transposed else stencil.out_grid).size
    return x.new_empty(x.shape[0], weight.shape[0] * weight.shape[1], points)


def _nothing(x: Tensor) -> Tensor:
    return x.new_empty(0, dtype=torch.promote_types(x.dtype, torch.float32))


def _wide(x: Tensor) -> Tensor:
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _check(x: Tensor, weight: Tensor, stencil: Stencil) -> None:
    instance("stencil", stencil, Stencil)
    require_tensors(x=x, weight=weight)
    # Their dtypes may differ until autocast has had its say.
    require_floats(x=x)
    require_floats(weight=weight)
    if x.ndim < 2 or tuple(x.shape[2:]) != stencil.in_shape:
        wanted = ", ".join(map(str, stencil.in_shape))
        raise ValueError(
            f"x: expected (batch, channels, {wanted}) for {stencil.in_grid!r}, got {tuple(x.shape)}"
        )
    channels = x.shape[1]
    if weight.ndim != 3 or weight.shape[2] != stencil.basis:
        raise ValueError(
            f"weight: expected (out_channels, in_channels // groups, {stencil.basis}) for the "
            f"{stencil.basis} hats of {stencil!r}, got {tuple(weight.shape)}"
        )
    group = weight.shape[1]
    if 0 in (channels, group, weight.shape[0]):
        raise ValueError(
            f"x and weight need a channel at least, got x {tuple(x.shape)}, weight "
            f"{tuple(weight.shape)}"
        )
    if channels % group or weight.shape[0] % (channels // group):
        raise ValueError(
            f"weight: {tuple(weight.shape)} does not fit x with {channels} channels: "
            f"weight.shape[1] must divide them into groups, and the groups weight.shape[0]"
        )
