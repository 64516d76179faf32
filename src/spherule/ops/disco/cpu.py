"""DISCO convolutions by the native library, in the cheapest order that the shapes allow. The
structs mirror csrc/disco.h, as those of `plans`.
"""

import math
from ctypes import Structure, c_int32, c_int64

import torch
from torch import Tensor

from spherule import native
from spherule.geometry.filters import Stencil
from spherule.ops.disco.plans import plan, shifts_everywhere


def convolve(
    x: Tensor, weight: Tensor, stencil: Stencil, transposed: bool
) -> tuple[Tensor, Tensor | None]:
    """x (batch, groups in, points) with weight (groups, out, in, hats); and x under the hats, where
    it had to be made.
    """
    groups, out, _, hats = weight.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    field, weight = x.to(wide), weight.to(wide)
    if _depthwise(weight.shape, stencil):
        y, under_hats = depthwise(field, weight.reshape(groups, hats), stencil, transposed), None
    elif keeps(weight.shape, stencil, transposed):
        under_hats = spread(field, stencil, transposed)
        y = mix(under_hats.flatten(1, 2), weight.flatten(2))
    else:
        mixed = mix(field, weight.transpose(2, 3).flatten(1, 2))
        y, under_hats = gather(mixed.unflatten(1, (groups * out, hats)), stencil, transposed), None
    return y.to(x.dtype), under_hats


def correlate(
    x: Tensor,
    dy: Tensor,
    x_hats: Tensor | None,
    dy_hats: Tensor | None,
    groups: int,
    stencil: Stencil,
    transposed: bool,
) -> Tensor:
    """The gradient (groups, out, in, hats) of `convolve` with respect to its weight; with x or dy
    under the hats, where `convolve` or its gradient left them.
    """
    into, out, hats = x.shape[1] // groups, dy.shape[1] // groups, stencil.basis
    shape = (groups, out, into, hats)
    wide = torch.promote_types(x.dtype, torch.float32)
    field, gradient = x.to(wide), dy.to(wide)
    if _depthwise(shape, stencil):
        return correlate_depthwise(field, gradient, stencil, transposed).reshape(shape).to(x.dtype)
    if x_hats is not None or keeps(shape, stencil, transposed):
        x_hats = spread(field, stencil, transposed) if x_hats is None else x_hats
        return mix_weight(x_hats.flatten(1, 2), gradient, groups).reshape(shape).to(x.dtype)
    dy_hats = spread(gradient, stencil, not transposed) if dy_hats is None else dy_hats
    dweight = mix_weight(field, dy_hats.flatten(1, 2), groups).unflatten(1, (out, hats))
    return dweight.transpose(2, 3).contiguous().to(x.dtype)


def keeps(shape: tuple, stencil: Stencil, transposed: bool) -> bool:
    """Whether to filter the input channels, then mix on the output grid, rather than mix on the
    input grid, then filter the output channels. Counts multiply-adds; a gradient goes the way of
    its convolution.
    """
    if _depthwise(shape, stencil):
        return False
    groups, out, into, hats = shape
    points = math.prod(stencil.in_shape), math.prod(stencil.out_shape)
    source, target = points[::-1] if transposed else points
    mixing = groups * into * out * hats
    channels_first = mixing * source + stencil.nonzeros * groups * out
    space_first = mixing * target + stencil.nonzeros * groups * into
    return bool(space_first < channels_first + int(not transposed))


def _depthwise(shape: tuple, stencil: Stencil) -> bool:
    return tuple(shape[1:3]) == (1, 1) and shifts_everywhere(stencil)


class Fields(Structure):
    _fields_ = (
        ("batch", c_int64),
        ("channels", c_int64),
        ("dtype", c_int32),
        ("threads", c_int32),
    )

    @classmethod
    def of(cls, x: Tensor, groups: int | None = None) -> "Fields":
        channels = x.shape[1] if groups is None else groups
        return cls(x.shape[0], channels, native.DTYPES[x.dtype], torch.get_num_threads())


class Mix(Structure):
    _fields_ = [(name, c_int64) for name in ("in_", "out", "points")]


def _call(name: str, structure: Structure, fields: Fields, *tensors: Tensor) -> None:
    pointers = (x.data_ptr() for x in tensors)
    native.call(f"spherule_disco_{name}", structure, fields, *pointers)


def _points(stencil: Stencil, transposed: bool) -> int:
    return (stencil.in_grid if transposed else stencil.out_grid).size


def spread(x: Tensor, stencil: Stencil, transposed: bool) -> Tensor:
    """(batch, channels, points) to (batch, channels, hats, points): x under each hat."""
    x = x.contiguous()
    y = x.new_empty(*x.shape[:2], stencil.basis, _points(stencil, transposed))
    return _walk(plan(stencil, transposed, "spread", x.dtype), x, y)


def gather(x: Tensor, stencil: Stencil, transposed: bool) -> Tensor:
    """(batch, channels, hats, points) to (batch, channels, points): each part under its hat,
    summed.
    """
    x = x.contiguous()
    y = x.new_empty(*x.shape[:2], _points(stencil, transposed))
    return _walk(plan(stencil, transposed, "gather", x.dtype), x, y)


def _walk(structure: Structure, x: Tensor, y: Tensor) -> Tensor:
    _call(type(structure).__name__.lower(), structure, Fields.of(x), x, y)
    return y


def depthwise(x: Tensor, weight: Tensor, stencil: Stencil, transposed: bool) -> Tensor:
    """x (batch, channels, points) with weight (channels, hats)."""
    x, weight = x.contiguous(), weight.contiguous()
    y = x.new_empty(*x.shape[:2], _points(stencil, transposed))
    _call("depthwise", plan(stencil, transposed, "merge", x.dtype), Fields.of(x), x, weight, y)
    return y


def correlate_depthwise(x: Tensor, dy: Tensor, stencil: Stencil, transposed: bool) -> Tensor:
    """The gradient of `depthwise` with respect to its weight."""
    x, dy = x.contiguous(), dy.contiguous()
    dweight = x.new_empty(x.shape[1], stencil.basis)
    _call("correlate", plan(stencil, transposed, "merge", x.dtype), Fields.of(x), x, dy, dweight)
    return dweight


def mix(x: Tensor, weight: Tensor) -> Tensor:
    """weight (groups, out, in) times x (batch, groups in, points)."""
    groups, out, into = weight.shape
    x, weight = x.contiguous(), weight.contiguous()
    y = x.new_empty(x.shape[0], groups * out, x.shape[2])
    _call("mix", Mix(into, out, x.shape[2]), Fields.of(x, groups), weight, x, y)
    return y


def mix_weight(x: Tensor, dy: Tensor, groups: int) -> Tensor:
    """The gradient (groups, out, in) of `mix` with respect to its weight."""
    x, dy = x.contiguous(), dy.contiguous()
    into, out = x.shape[1] // groups, dy.shape[1] // groups
    dweight = x.new_empty(groups, out, into)
    _call("mix_weight", Mix(into, out, x.shape[2]), Fields.of(x, groups), dy, x, dweight)
    return dweight
