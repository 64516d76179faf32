"""Discrete-continuous (DISCO) convolution: the filter is continuous, the field is sampled."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from spherule import cuda
from spherule.checks import instance
from spherule.geometry.filters import Stencil
from spherule.ops.checks import require_floats, require_tensors
from spherule.ops.disco import cpu, gpu, reference
from spherule.ops.disco.plans import shifts_everywhere


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
    if torch.is_autocast_enabled(x.device.type) and x.dtype != torch.float64:
        dtype = torch.get_autocast_dtype(x.device.type)
        x, weight = x.to(dtype), weight.to(dtype)
    if x.dtype != weight.dtype:
        raise TypeError(f"weight: expected {x.dtype}, the dtype of x, got {weight.dtype}")
    flat = x.flatten(2)
    if cpu.AVAILABLE and x.device.type == "cpu":
        y = _native(_full(flat), _full(weight), stencil)
    elif _on_gpu(x):
        y = _triton(flat, weight, stencil)
    else:
        y = reference.disco(_full(flat), _full(weight), stencil)
    y = y.to(x.dtype)
    return y.reshape(*y.shape[:2], *stencil.out_shape)


def _on_gpu(x: Tensor) -> bool:
    return x.device.type == "cuda" and x.dtype != torch.float64 and cuda.usable()


def _native(x: Tensor, weight: Tensor, stencil: Stencil) -> Tensor:
    """In the cheapest order that the shapes allow."""
    name, (out_channels, group_channels, basis) = stencil.name, weight.shape
    groups = x.shape[1] // group_channels
    if group_channels == 1 and shifts_everywhere(stencil):
        x = x.repeat_interleave(out_channels // groups, dim=1) if out_channels > groups else x
        return cpu.depthwise(x, weight[:, 0], name, False)
    weight = weight.unflatten(0, (groups, -1))
    if _channels_first(x.shape[1], out_channels, groups, stencil):
        mixed = cpu.mix(x, weight.transpose(2, 3).flatten(1, 2), False)
        return cpu.gather(mixed.unflatten(1, (out_channels, basis)), name, False)
    under_hats = cpu.spread(x, name, False)
    return cpu.mix(under_hats.flatten(1, 2), weight.flatten(2), False)


def _triton(x: Tensor, weight: Tensor, stencil: Stencil) -> Tensor:
    """Filters and mixes at once."""
    out_channels, group_channels, _ = weight.shape
    groups = x.shape[1] // group_channels
    if group_channels == 1 and out_channels > groups:
        x, groups = x.repeat_interleave(out_channels // groups, dim=1), out_channels
    return gpu.convolve(x, weight.unflatten(0, (groups, -1)), stencil.name, False)


def _channels_first(in_channels: int, out_channels: int, groups: int, stencil: Stencil) -> bool:
    """Whether to mix channels on the input grid, then filter the output channels, rather than
    filter the input channels, then mix on the output grid. Counts multiply-adds.
    """
    mixing = in_channels * out_channels // groups * stencil.basis
    channels_first = mixing * math.prod(stencil.in_shape) + stencil.nonzeros * out_channels
    space_first = mixing * math.prod(stencil.out_shape) + stencil.nonzeros * in_channels
    return channels_first < space_first


def _full(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


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
