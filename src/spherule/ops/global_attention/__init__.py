"""Attention over the whole sphere: dense attention with quadrature weights inside the softmax.
Checks and dispatch; next door the equation itself, the native library, torch's fused kernel with
log weights as a mask, and its flash kernel with log weights as channels.
"""

import math
from typing import Literal, overload

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spherule import checks
from spherule.checks import instance, number
from spherule.grids import Grid
from spherule.ops.autocast import autocast_dtype, no_autocast
from spherule.ops.checks import require_qkv
from spherule.ops.global_attention import flash, fused, library, reference
from spherule.ops.operator import operator
from spherule.ops.served import shortened
from spherule.ops.tables import table


@overload
def global_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_grid: Grid,
    *,
    weighted: bool = ...,
    scale: float | None = ...,
    key_mask: Tensor | None = ...,
    dropout_p: float = ...,
    return_lse: Literal[False] = ...,
) -> Tensor: ...
@overload
def global_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_grid: Grid,
    *,
    weighted: bool = ...,
    scale: float | None = ...,
    key_mask: Tensor | None = ...,
    dropout_p: float = ...,
    return_lse: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@checks.arguments
def global_attention(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    v: Float[Tensor, "batch heads keys value_dim"],
    key_grid: Grid,
    *,
    weighted: bool = True,
    scale: float | None = None,
    key_mask: Bool[Tensor, "*batch keys"] | None = None,
    dropout_p: float = 0.0,
    return_lse: bool = False,
) -> Float[Tensor, "batch heads queries value_dim"] | tuple[Tensor, Tensor]:
    """Softmax average of v over all keys, with quadrature weights (discrete full attention).

    On CPUs with vectors of 512 bits by the native library, else by torch's fused kernel; with
    `return_lse` always by the library. On GPUs, 16 bits without mask and `return_lse` take torch's
    flash kernel. Dropout holds all scores in memory, and so does `return_lse` on a GPU.

    Args:
        q: queries, anywhere.
        k: keys on `key_grid`.
        v: values, whose dim may be another.
        key_grid: whose quadrature weights count.
        weighted: false takes all keys alike, as on a plane.
        scale: of the products of queries and keys, 1 / sqrt(dim) by default.
        key_mask: true for the keys that count; a query without any gets zeros.
        dropout_p: the share of weights that is dropped.
        return_lse: give the logarithm of the softmax denominator too.

    >>> import torch, spherule as sph
    >>> grid = sph.Grid.octahedral(8)
    >>> q, k, v = torch.randn(3, 1, 2, grid.size, 16).unbind()
    >>> tuple(sph.ops.global_attention(q, k, v, grid).shape)
    (1, 2, 544, 16)
    """
    instance("key_grid", key_grid, Grid)
    number("dropout_p", dropout_p, low=0, below=1)
    require_qkv(q, k, v, key_mask)
    if k.shape[2] != key_grid.size:
        raise ValueError(f"k has {k.shape[2]} points, but {key_grid!r} has {key_grid.size}")
    dtype = autocast_dtype(q)
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    weights = key_grid if weighted else None
    with no_autocast(q):
        if key_mask is None and not return_lse and _wants_flash(q, v, weights, dtype, scale):
            q, k, v = (x.to(dtype) for x in (q, k, v))
            return _flash(q, k, v, weights, scale, dropout_p)
        q, k, v = (x.to(dtype) for x in (q, k, v))
        if not shortened(q):  # 16 bits are too few for log weights
            wide = torch.promote_types(dtype, torch.float32)
            q, k, v = (x.to(wide) for x in (q, k, v))
        if not dropout_p and library.takes(q, k, v, return_lse=return_lse):
            out, lse = library.attention(q, k, v, key_grid, scale, key_mask, weighted=weighted)
            out = out.to(dtype)
            return (out, lse) if return_lse else out
        log_w = _log_weights(weights, key_mask, k)
        k, v = (x.masked_fill((log_w == -math.inf).transpose(-1, -2), 0) for x in (k, v))
        empty = (log_w == -math.inf).all(dim=-1, keepdim=True)
        log_w = log_w.masked_fill(empty, 0)
        if not return_lse:
            out = fused.attention(q, k, v, log_w, scale, dropout_p)
            return out.masked_fill(empty, 0).to(dtype)
        out, lse = reference.attention(q, k, v, log_w, scale, dropout_p)
    out, lse = out.masked_fill(empty, 0), lse.masked_fill(empty[..., 0], -math.inf)
    return out.to(dtype), lse


def _wants_flash(
    q: Tensor, v: Tensor, weights: Grid | None, dtype: torch.dtype, scale: float
) -> bool:
    # A weight of 0 has no finite logarithm.
    finite = weights is None or weights.weight_range[0] > 0
    fits = finite and flash.takes(q.shape[-1], v.shape[-1], scale)
    return _on_gpu(q) and fits and dtype in (torch.float16, torch.bfloat16)


def _on_gpu(q: Tensor) -> bool:
    return q.device.type == "cuda"


def _flash(
    q: Tensor, k: Tensor, v: Tensor, weights: Grid | None, scale: float, dropout_p: float
) -> Tensor:
    log_w = None
    if weights is not None and weights.weight_range[0] < weights.weight_range[1]:
        like = q.detach().new_empty(0, dtype=torch.float32)
        log_w = _grid_log_weights(weights.name, weights.size, like)
    return flash.attention(q, k, v, log_w, scale, dropout_p)


def _log_weights(weights: Grid | None, key_mask: Tensor | None, k: Tensor) -> Tensor:
    """(batch or 1, 1, 1, keys); -inf for keys that do not count."""
    if weights is None:
        log_w = k.new_zeros(1, 1, 1, k.shape[2])
    else:
        log_w = _grid_log_weights(weights.name, weights.size, k.detach())[None, None, None, :]
    if key_mask is None:
        return log_w
    mask = key_mask.reshape(-1, 1, 1, key_mask.shape[-1])
    return log_w.masked_fill(~mask, -math.inf)


# An operator with the grid's name: compilers cannot follow numpy, nor hold a grid.
@operator("log_weights")
def _grid_log_weights(grid: str, size: int, like: Tensor) -> Tensor:
    return _cached_log_weights(grid).to(like, copy=True)


@_grid_log_weights.register_fake
def _(grid: str, size: int, like: Tensor) -> Tensor:
    return like.new_empty(size)


@table(maxsize=64)
def _cached_log_weights(grid: str) -> Tensor:
    return torch.from_numpy(Grid.from_name(grid).weights.reshape(-1).copy()).log()
