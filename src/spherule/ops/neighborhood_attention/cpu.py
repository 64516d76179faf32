"""Neighborhood attention by the native library. The structs mirror csrc/spherule.h."""

from ctypes import Structure, c_double, c_int32, c_int64, c_void_p
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import native
from spherule.geometry import arcs
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.tables import table


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    scale: float,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
) -> None:
    """Fills out (any strides) and lse (contiguous)."""
    native.call(
        "spherule_attention_forward",
        arc_table(neighborhood),
        Problem.of(q, k, v, scale, key_mask),
        *(Strided.of(x) for x in (q, k, v, out)),
        lse.data_ptr(),
    )


def backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    scale: float,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    grads: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Fills the gradients of q, k and v."""
    native.call(
        "spherule_attention_backward",
        arc_table(neighborhood),
        Problem.of(q, k, v, scale, key_mask),
        *(Strided.of(x) for x in (q, k, v, out)),
        lse.data_ptr(),
        Strided.of(grad_out),
        None if grad_lse is None else grad_lse.data_ptr(),
        *(Strided.of(x) for x in grads),
    )


class Strided(Structure):
    _fields_ = (("data", c_void_p), ("stride", c_int64 * 4))

    @classmethod
    def of(cls, x: Tensor) -> "Strided":
        return cls(x.data_ptr(), (c_int64 * 4)(*x.stride()))


class Rings(Structure):
    _fields_ = (
        ("rings", c_int64),
        *((name, c_void_p) for name in ("theta", "nphi", "ringstart")),
    )

    @classmethod
    def of(cls, rings: arcs.Rings) -> "Rings":
        arrays = (rings.theta, rings.nphi, rings.ringstart)
        return cls(rings.theta.size, *(a.ctypes.data for a in arrays))


class ArcTable(Structure):
    _fields_ = (
        ("query", Rings),
        ("key", Rings),
        *((name, c_void_p) for name in ("first", "pairs", "shift", "reach", "inner")),
        *((name, c_void_p) for name in ("column_start", "column_count", "order")),
        ("key_log_weight", c_void_p),
        ("cutoff", c_double),
        ("edge_width", c_double),
    )
    owner: Any
    """Whoever holds the arrays that this points to."""


@table(maxsize=128)
def arc_table(neighborhood: Neighborhood) -> ArcTable:
    table, logw = neighborhood.table, neighborhood.ring_log_weights
    arrays: list[NDArray | None] = [table.first, table.pairs, table.shift, table.reach]
    arrays += [table.inner, *(table.columns or (None, None)), table.order, logw]
    assert all(a is None or (a.dtype.itemsize == 8 and a.flags.c_contiguous) for a in arrays)
    struct = ArcTable(
        Rings.of(table.query),
        Rings.of(table.key),
        *(None if a is None else a.ctypes.data for a in arrays),
        neighborhood.cutoff,
        neighborhood.edge_width,
    )
    struct.owner = neighborhood
    return struct


class Problem(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("batch", "heads", "queries", "keys", "dim", "value_dim")),
        ("scale", c_double),
        ("dtype", c_int32),
        ("threads", c_int32),
        ("key_mask", c_void_p),
        ("key_mask_stride", c_int64),
    )

    @classmethod
    def of(
        cls, q: Tensor, k: Tensor, v: Tensor, scale: float, key_mask: Tensor | None
    ) -> "Problem":
        """`key_mask`: bool (batch, keys) or (keys,), contiguous."""
        batch, heads, queries, dim = q.shape
        mask, stride = None, 0
        if key_mask is not None:
            mask, stride = key_mask.data_ptr(), key_mask.shape[-1] if key_mask.ndim == 2 else 0
        sizes = (batch, heads, queries, k.shape[2], dim, v.shape[3])
        dtype, threads = native.DTYPES[q.dtype], torch.get_num_threads()
        return cls(*sizes, scale, dtype, threads, mask, stride)
