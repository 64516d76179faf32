"""Neighborhood attention on GPUs: launches the Triton kernels next door.

Whoever imports this needs Triton. Tables are made once for each neighborhood and device.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from spherule import cuda
from spherule.geometry import tiles
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.neighborhood_attention import triton_backward, triton_forward
from spherule.ops.tables import table

WIDEST = 256
"""The largest dimension of a head."""

STAGES = 3

# Centers and points: 16 rows are the least that tensor cores take, and waste the least on short
# arcs; wide disks fill larger tiles, which load fewer points for each product.
_SIZES = ((16, 32), (32, 32), (64, 32))


def warps(block: int, width: int, dtype: torch.dtype, *, forward: bool) -> int:
    """For tiles of `block` centers with `width` channels: enough that compiled kernels keep
    everything, or nearly so, in registers (docs/gpu.md).
    """
    if block * width <= 512 and dtype != torch.float32:
        return 1
    few = 512 if forward and dtype == torch.float32 else 2048
    return 4 if block * width <= few else 8


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
    call = _Call(q, v, neighborhood, key_mask)
    tables = call.tables
    q, k, v = (_rows_together(x) for x in (q, k, v))
    part_out, part_lse = call.parts(v.shape[-1]), call.parts(1)
    with call.device:
        triton_forward.forward[call.programs](
            *(q, k, v, call.mask, out, lse, part_out, part_lse, *tables.walk),
            *_strides(q, k, v, out),
            *(call.mask_stride, *call.sizes),
            *(scale / math.log(2), neighborhood.cutoff, call.sharpness),
            **call.options(forward=True),
        )
        if tables.parts:
            triton_forward.merge[call.splits](
                *(out, lse, part_out, part_lse, *tables.split),
                *(*_strides(out), *call.sizes),
                VALUE_DIM=v.shape[-1],
                VALUE_WIDTH=cuda.padded(v.shape[-1]),
                BLOCK=tables.block,
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
    dq, dk, dv = grads
    delta = torch.empty_like(lse)
    q, k, v, grad_out = (_rows_together(x) for x in (q, k, v, grad_out))
    dim, value_dim = q.shape[-1], v.shape[-1]
    call = _Call(q, v, neighborhood, key_mask)
    part = call.parts(dim)
    with call.device:
        triton_backward.backward_queries[call.programs](
            *(q, k, v, call.mask, out, lse, grad_out, lse if grad_lse is None else grad_lse),
            *(delta, dq, part, *call.tables.walk),
            *_strides(q, k, v, out, grad_out, dq),
            *(call.mask_stride, *call.sizes, scale, neighborhood.cutoff, call.sharpness),
            **call.options(forward=False),
            LSE=grad_lse is not None,
        )
        call.add_parts(dq, part)
        call = _Call(q, v, neighborhood.transpose, key_mask)
        part_dk, part_dv = call.parts(dim), call.parts(value_dim)
        triton_backward.backward_keys[call.programs](
            *(q, k, v, call.mask, lse, delta, grad_out, dk, dv, part_dk, part_dv),
            *(*call.tables.walk, *_strides(q, k, v, grad_out, dk, dv)),
            *(call.mask_stride, *call.sizes, scale, neighborhood.cutoff, call.sharpness),
            **call.options(forward=False),
        )
        call.add_parts(dk, part_dk)
        call.add_parts(dv, part_dv)


class Tables(NamedTuple):
    """`tiles.Tiles` on a device."""

    walk: tuple[Tensor, ...]
    split: tuple[Tensor, ...]
    parts: int
    block: int
    window: int


@table(maxsize=256)
def tables(neighborhood: Neighborhood, device: torch.device, width: int) -> Tables:
    """Of heads up to `width` channels: the tile size with the least products and loads."""

    def cost(size: tuple[int, int]) -> float:
        block, window = size
        # A point loaded is taken for as dear as 8 products with it.
        return tiles.estimate(neighborhood.table, block, window) * (block + 8) * window

    block, window = min((s for s in _SIZES if s[0] * width <= 64 * 64), key=cost)
    cut = tiles.cut(neighborhood, block, window)
    arrays = (cut.programs, cut.centers, cut.windows, cut.bits, cut.rings, cut.numbers, cut.angles)
    walk = tuple(torch.from_numpy(a).to(device) for a in arrays)
    split = (torch.from_numpy(cut.splits).to(device), walk[1], walk[4])
    return Tables(walk, split, cut.parts, block, window)


class _Call:
    """What both passes hand to their kernels."""

    def __init__(
        self, q: Tensor, v: Tensor, neighborhood: Neighborhood, key_mask: Tensor | None
    ) -> None:
        self.dims = q.shape[-1], v.shape[-1]
        self.widths = cuda.padded(q.shape[-1]), cuda.padded(v.shape[-1])
        self.tables = tables(neighborhood, q.device, max(self.widths))
        self.batch_heads, self.heads = q.shape[0] * q.shape[1], q.shape[1]
        self.sizes = (self.batch_heads, self.heads, q.shape[2], self.tables.parts)
        self.programs = (self.tables.walk[0].shape[0] * self.batch_heads,)
        self.splits = (self.tables.split[0].shape[0] * self.batch_heads,)
        self.soft = neighborhood.edge_width > 0
        self.sharpness = 1 / neighborhood.edge_width if self.soft else 0.0
        self.masked = key_mask is not None
        self.mask = q if key_mask is None else key_mask.view(torch.uint8)
        self.mask_stride = key_mask.stride(0) if key_mask is not None and key_mask.ndim == 2 else 0
        self.like = q
        self.device = cuda.device(q)

    def options(self, *, forward: bool) -> dict:
        block, window = self.tables.block, self.tables.window
        return {
            "DIM": self.dims[0],
            "WIDTH": self.widths[0],
            "VALUE_DIM": self.dims[1],
            "VALUE_WIDTH": self.widths[1],
            "BLOCK": block,
            "WINDOW": window,
            "SOFT": self.soft,
            "MASKED": self.masked,
            "PRECISION": cuda.precision(),
            "num_warps": warps(block, max(self.widths), self.like.dtype, forward=forward),
            "num_stages": STAGES,
        }

    def parts(self, channels: int) -> Tensor:
        """Room for the results of split tiles."""
        size = (self.batch_heads, self.tables.parts, self.tables.block, channels)
        return self.like.new_empty(size, dtype=torch.float32)

    def add_parts(self, x: Tensor, part: Tensor) -> None:
        if self.tables.parts:
            triton_backward.add_parts[self.splits](
                *(x, part, *self.tables.split, *_strides(x)),
                *(self.batch_heads, self.heads, self.tables.parts),
                DIM=x.shape[-1],
                WIDTH=cuda.padded(x.shape[-1]),
                BLOCK=self.tables.block,
            )


def _rows_together(x: Tensor) -> Tensor:
    """A point's channels side by side: each is read many times, by consecutive threads."""
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _strides(*tensors: Tensor) -> tuple[int, ...]:
    return tuple(stride for x in tensors for stride in x.stride())
