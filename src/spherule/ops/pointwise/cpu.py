"""Maps over channels by the native library. The structs mirror csrc/pointwise.h.

What the field's dtype asks for: weights in the same, biases and gradients of both in 32 bits at
least. Weights may come in any dtype, and their gradients leave in that.
"""

from ctypes import Array, Structure, addressof, c_int32, c_int64, c_void_p

import torch
from torch import Tensor

from spherule import native


class Pointwise(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("batch", "points", "in_", "hidden", "out")),
        ("dtype", c_int32),
        ("threads", c_int32),
    )

    @classmethod
    def of(cls, x: Tensor, out: int, hidden: int = 0) -> "Pointwise":
        batch, channels, points = sizes(x)
        dtype, threads = native.DTYPES[x.dtype], torch.get_num_threads()
        return cls(batch, points, channels, hidden, out, dtype, threads)


class Channels(Structure):
    _fields_ = (
        ("data", c_void_p),
        ("channels", c_int64),
        *((f"{name}stride", c_int64) for name in ("batch_", "channel_", "point_")),
    )

    @classmethod
    def of(cls, x: Tensor) -> "Channels":
        # Whatever torch says of a direction that nobody goes.
        strides = (1 if n == 1 else stride for n, stride in zip(x.shape, x.stride(), strict=True))
        return cls(x.data_ptr(), x.shape[1], *strides)

    @classmethod
    def array(cls, *fields: Tensor) -> "Array[Channels]":
        """A part for each field, or, of fields by heads, for each head."""
        parts = [part for x in fields for part in (x.mT.unbind(1) if x.ndim == 4 else [x])]
        return (cls * len(parts))(*map(cls.of, parts))


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int], heads: int
) -> list[Tensor]:
    """weight times x plus bias, its channels in fields of these widths, by heads if there are."""
    fields = [empty(x, width, heads) for width in widths]
    x, weight, bias = _readable(x), _factor(weight, x), _term(bias, x)
    source, target = Channels.array(x), Channels.array(*fields)
    native.call(
        "spherule_linear",
        Pointwise.of(x, sum(widths)),
        weight.data_ptr(),
        _pointer(bias),
        addressof(source),
        len(source),
        addressof(target),
        len(target),
    )
    return fields


def linear_backward(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of `linear` with respect to x, weight and bias, as far as they are wanted."""
    dx = x.new_empty(x.shape) if wanted[0] else None
    x, dys, transpose = _readable(x), [_readable(dy) for dy in dys], _factor(weight.t(), x)
    dweight = x.new_empty(weight.shape, dtype=_wide(x)) if wanted[1] else None
    dbias = x.new_empty(weight.shape[0], dtype=_wide(x)) if wanted[2] else None
    field, gradient = Channels.array(x), Channels.array(*dys)
    slope = None if dx is None else Channels.array(dx)
    native.call(
        "spherule_linear_backward",
        Pointwise.of(x, weight.shape[0]),
        transpose.data_ptr(),
        addressof(field),
        len(field),
        addressof(gradient),
        len(gradient),
        None if slope is None else addressof(slope),
        _pointer(dweight),
        _pointer(dbias),
    )
    dweight, dbias = (None if d is None else d.to(weight.dtype) for d in (dweight, dbias))
    return dx, dweight, dbias


def mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    """second gelu(first x + bias), block by block of points."""
    x, weights = columns(x), [_factor(first, x), _term(bias, x), _factor(second, x)]
    y = x.new_empty(x.shape[0], second.shape[0], x.shape[2])
    native.call(
        "spherule_mlp",
        Pointwise.of(x, second.shape[0], first.shape[0]),
        *map(_pointer, weights),
        Channels.of(x),
        Channels.of(y),
    )
    return y


def mlp_backward(
    x: Tensor, first: Tensor, bias: Tensor, second: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of `mlp` with respect to x, first, bias and second."""
    x, dy = columns(x), columns(dy)
    weights = [_factor(first, x), _factor(first.t(), x), _term(bias, x), _factor(second.t(), x)]
    dx = x.new_empty(x.shape)
    dfirst, dbias, dsecond = (
        x.new_empty(t.shape, dtype=_wide(x)) for t in (first, bias, second.t())
    )
    native.call(
        "spherule_mlp_backward",
        Pointwise.of(x, second.shape[0], first.shape[0]),
        *map(_pointer, weights),
        *map(Channels.of, (x, dy, dx)),
        *(w.data_ptr() for w in (dfirst, dbias, dsecond)),
    )
    dsecond = dsecond.t().contiguous()
    return dx, dfirst.to(first.dtype), dbias.to(bias.dtype), dsecond.to(second.dtype)


def sizes(x: Tensor) -> tuple[int, int, int]:
    """Batch, channels and points."""
    if x.ndim == 4:
        batch, heads, points, dim = x.shape
        return batch, heads * dim, points
    batch, channels, points = x.shape
    return batch, channels, points


def empty(like: Tensor, channels: int, heads: int) -> Tensor:
    """A field of so many channels, by heads if there are."""
    batch, _, points = sizes(like)
    if heads:
        return like.new_empty(batch, heads, points, channels // heads)
    return like.new_empty(batch, channels, points)


def columns(x: Tensor) -> Tensor:
    """Points next to each other; the other strides may be any."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _readable(x: Tensor) -> Tensor:
    # Not `contiguous`, which takes an empty tensor of any strides as it is.
    return x if 1 in x.stride()[-2:] else x.clone(memory_format=torch.contiguous_format)


def _factor(weight: Tensor, x: Tensor) -> Tensor:
    return weight.to(x.dtype).contiguous()


def _term(bias: Tensor | None, x: Tensor) -> Tensor | None:
    return None if bias is None else bias.to(_wide(x)).contiguous()


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
