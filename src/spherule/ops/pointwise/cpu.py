"""Maps over channels by the native library. The structs mirror csrc/pointwise.h."""

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
        batch, channels, points = x.shape
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
    def array(cls, parts: list[Tensor]) -> "Array[Channels]":
        return (cls * len(parts))(*map(cls.of, parts))


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int], rows: bool
) -> list[Tensor]:
    """weight times x plus bias, its channels in parts of these widths."""
    parts = [empty(x, width, rows) for width in widths]
    x, weight, bias = _readable(x), weight.contiguous(), _contiguous(bias)
    array = Channels.array(parts)
    native.call(
        "spherule_linear",
        Pointwise.of(x, sum(widths)),
        weight.data_ptr(),
        _pointer(bias),
        Channels.of(x),
        addressof(array),
        len(parts),
    )
    return parts


def linear_backward(
    x: Tensor, weight: Tensor, dys: list[Tensor], wanted: list[bool]
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """The gradients of `linear` with respect to x, weight and bias, as far as they are wanted."""
    dx = empty(x, x.shape[1], in_rows(x)) if wanted[0] else None
    x, dys, transpose = _readable(x), [_readable(dy) for dy in dys], weight.t().contiguous()
    dweight = torch.empty_like(weight, memory_format=torch.contiguous_format) if wanted[1] else None
    dbias = weight.new_empty(weight.shape[0]) if wanted[2] else None
    array = Channels.array(dys)
    native.call(
        "spherule_linear_backward",
        Pointwise.of(x, weight.shape[0]),
        transpose.data_ptr(),
        Channels.of(x),
        addressof(array),
        len(dys),
        None if dx is None else Channels.of(dx),
        _pointer(dweight),
        _pointer(dbias),
    )
    return dx, dweight, dbias


def mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    """second gelu(first x + bias), block by block of points."""
    x, weights = columns(x), [w.contiguous() for w in (first, bias, second)]
    y = x.new_empty(x.shape[0], second.shape[0], x.shape[2])
    native.call(
        "spherule_mlp",
        Pointwise.of(x, second.shape[0], first.shape[0]),
        *(w.data_ptr() for w in weights),
        Channels.of(x),
        Channels.of(y),
    )
    return y


def mlp_backward(
    x: Tensor, first: Tensor, bias: Tensor, second: Tensor, dy: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of `mlp` with respect to x, first, bias and second."""
    x, dy = columns(x), columns(dy)
    weights = [w.contiguous() for w in (first, first.t(), bias, second.t())]
    dx, dfirst, dbias, dsecond = (
        torch.empty_like(t, memory_format=torch.contiguous_format)
        for t in (x, first, bias, weights[-1])
    )
    native.call(
        "spherule_mlp_backward",
        Pointwise.of(x, second.shape[0], first.shape[0]),
        *(w.data_ptr() for w in weights),
        *map(Channels.of, (x, dy, dx)),
        *(w.data_ptr() for w in (dfirst, dbias, dsecond)),
    )
    return dx, dfirst, dbias, dsecond.t().contiguous()


def in_rows(x: Tensor) -> bool:
    """Whether the channels of a point, and not the points of a channel, are next to each other."""
    return x.stride(1) == 1 and x.stride(2) != 1


def empty(like: Tensor, channels: int, rows: bool) -> Tensor:
    """An empty field of so many channels, in rows or not."""
    batch, _, points = like.shape
    if rows:
        return like.new_empty(batch, points, channels).mT
    return like.new_empty(batch, channels, points)


def columns(x: Tensor) -> Tensor:
    """Points next to each other; the other strides may be any."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _readable(x: Tensor) -> Tensor:
    return x if in_rows(x) else columns(x)


def _contiguous(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()


def _pointer(x: Tensor | None) -> int | None:
    return None if x is None else x.data_ptr()
