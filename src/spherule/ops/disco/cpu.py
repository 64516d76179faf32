"""DISCO convolutions by the native library, as operators that autograd and compilers know.

Each is linear in each of its tensors, and its gradients are operators of this file again.
"""

from ctypes import Structure, byref, c_int32, c_int64, c_void_p

import torch
from torch import Tensor

from spherule import native
from spherule.geometry.filters import Stencil
from spherule.ops.disco.plans import plan

# Known once, so that compilers need not trace how a library is found.
AVAILABLE = native.load()[0] is not None


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
    _fields_ = [(name, c_int64) for name in ("in_", "out", "points", "transposed")]


def _call(name: str, structure: Structure, fields: Fields, *tensors: Tensor) -> None:
    pointers = (c_void_p(x.data_ptr()) for x in tensors)
    native.call(f"spherule_disco_{name}", byref(structure), byref(fields), *pointers)


def _points(stencil: str, transposed: bool) -> int:
    known = Stencil.from_name(stencil)
    return (known.in_grid if transposed else known.out_grid).size


@torch.library.custom_op("spherule::disco_spread", mutates_args=())
def spread(x: Tensor, stencil: str, transposed: bool) -> Tensor:
    """(batch, channels, points) to (batch, channels, hats, points): x under each hat."""
    known, x = Stencil.from_name(stencil), x.contiguous()
    y = x.new_empty(*x.shape[:2], known.basis, _points(stencil, transposed))
    return _walk(plan(known, transposed, "spread", x.dtype), x, y)


@torch.library.custom_op("spherule::disco_gather", mutates_args=())
def gather(x: Tensor, stencil: str, transposed: bool) -> Tensor:
    """(batch, channels, hats, points) to (batch, channels, points): each part under its hat,
    summed.
    """
    known, x = Stencil.from_name(stencil), x.contiguous()
    y = x.new_empty(*x.shape[:2], _points(stencil, transposed))
    return _walk(plan(known, transposed, "gather", x.dtype), x, y)


def _walk(structure: Structure, x: Tensor, y: Tensor) -> Tensor:
    _call(type(structure).__name__.lower(), structure, Fields.of(x), x, y)
    return y


@torch.library.custom_op("spherule::disco_depthwise", mutates_args=())
def depthwise(x: Tensor, weight: Tensor, stencil: str, transposed: bool) -> Tensor:
    """x (batch, channels, points) with weight (channels, hats)."""
    x, weight = x.contiguous(), weight.contiguous()
    y = x.new_empty(*x.shape[:2], _points(stencil, transposed))
    structure = plan(Stencil.from_name(stencil), transposed, "merge", x.dtype)
    _call("depthwise", structure, Fields.of(x), x, weight, y)
    return y


@torch.library.custom_op("spherule::disco_correlate", mutates_args=())
def correlate(x: Tensor, dy: Tensor, stencil: str, transposed: bool) -> Tensor:
    """The gradient of `depthwise` with respect to its weight."""
    x, dy, known = x.contiguous(), dy.contiguous(), Stencil.from_name(stencil)
    dweight = x.new_empty(x.shape[1], known.basis)
    structure = plan(known, transposed, "merge", x.dtype)
    _call("correlate", structure, Fields.of(x), x, dy, dweight)
    return dweight


@torch.library.custom_op("spherule::disco_mix", mutates_args=())
def mix(x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    """weight (groups, out, in), or if transposed (groups, in, out), times x (batch, groups in,
    points).
    """
    x, weight, groups = x.contiguous(), weight.contiguous(), weight.shape[0]
    into, out = x.shape[1] // groups, weight.shape[2 if transposed else 1]
    y = x.new_empty(x.shape[0], groups * out, x.shape[2])
    fields = Fields.of(x, groups)
    _call("mix", Mix(into, out, x.shape[2], int(transposed)), fields, weight, x, y)
    return y


@torch.library.custom_op("spherule::disco_mix_weight", mutates_args=())
def mix_weight(x: Tensor, dy: Tensor, groups: int) -> Tensor:
    """The gradient (groups, out, in) of `mix` with respect to its weight."""
    x, dy = x.contiguous(), dy.contiguous()
    into, out = x.shape[1] // groups, dy.shape[1] // groups
    dweight = x.new_empty(groups, out, into)
    _call("mix_weight", Mix(into, out, x.shape[2], 0), Fields.of(x, groups), dy, x, dweight)
    return dweight


@spread.register_fake
def _(x: Tensor, stencil: str, transposed: bool) -> Tensor:
    basis = Stencil.from_name(stencil).basis
    return x.new_empty(*x.shape[:2], basis, _points(stencil, transposed))


@gather.register_fake
def _(x: Tensor, stencil: str, transposed: bool) -> Tensor:
    return x.new_empty(*x.shape[:2], _points(stencil, transposed))


@depthwise.register_fake
def _(x: Tensor, weight: Tensor, stencil: str, transposed: bool) -> Tensor:
    return x.new_empty(*x.shape[:2], _points(stencil, transposed))


@correlate.register_fake
def _(x: Tensor, dy: Tensor, stencil: str, transposed: bool) -> Tensor:
    return x.new_empty(x.shape[1], Stencil.from_name(stencil).basis)


@mix.register_fake
def _(x: Tensor, weight: Tensor, transposed: bool) -> Tensor:
    out = weight.shape[0] * weight.shape[2 if transposed else 1]
    return x.new_empty(x.shape[0], out, x.shape[2])


@mix_weight.register_fake
def _(x: Tensor, dy: Tensor, groups: int) -> Tensor:
    return x.new_empty(groups, dy.shape[1] // groups, x.shape[1] // groups)


def _keep(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.stencil, ctx.transposed = inputs
    if len(tensors) == 2:
        ctx.save_for_backward(*tensors)


def _backward_spread(ctx, dy):  # type: ignore[no-untyped-def]
    return gather(dy, ctx.stencil, not ctx.transposed), None, None


def _backward_gather(ctx, dy):  # type: ignore[no-untyped-def]
    return spread(dy, ctx.stencil, not ctx.transposed), None, None


def _backward_depthwise(ctx, dy):  # type: ignore[no-untyped-def]
    x, weight = ctx.saved_tensors
    wanted, where = ctx.needs_input_grad, (ctx.stencil, ctx.transposed)
    dx = depthwise(dy, weight, ctx.stencil, not ctx.transposed) if wanted[0] else None
    return dx, correlate(x, dy, *where) if wanted[1] else None, None, None


def _backward_correlate(ctx, dw):  # type: ignore[no-untyped-def]
    x, dy = ctx.saved_tensors
    dx = depthwise(dy, dw, ctx.stencil, not ctx.transposed)
    return dx, depthwise(x, dw, ctx.stencil, ctx.transposed), None, None


def _keep_mix(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    *tensors, ctx.how = inputs
    ctx.save_for_backward(*tensors)


def _backward_mix(ctx, dy):  # type: ignore[no-untyped-def]
    x, weight = ctx.saved_tensors
    dx = mix(dy, weight, not ctx.how) if ctx.needs_input_grad[0] else None
    if not ctx.needs_input_grad[1]:
        return dx, None, None
    pair = (dy, x) if ctx.how else (x, dy)
    return dx, mix_weight(*pair, weight.shape[0]), None


def _backward_mix_weight(ctx, dw):  # type: ignore[no-untyped-def]
    x, dy = ctx.saved_tensors
    return mix(dy, dw, True), mix(x, dw, False), None


spread.register_autograd(_backward_spread, setup_context=_keep)
gather.register_autograd(_backward_gather, setup_context=_keep)
depthwise.register_autograd(_backward_depthwise, setup_context=_keep)
correlate.register_autograd(_backward_correlate, setup_context=_keep)
mix.register_autograd(_backward_mix, setup_context=_keep_mix)
mix_weight.register_autograd(_backward_mix_weight, setup_context=_keep_mix)
