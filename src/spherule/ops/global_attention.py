"""Attention over the whole sphere: dense attention with quadrature weights inside the softmax."""

import math
from functools import lru_cache
from typing import Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from spherule.checks import instance
from spherule.grids import Grid
from spherule.ops import flash
from spherule.ops.checks import require_qkv

# Each slice has its own gradients of all keys and values until they are added.
_MOST_SLICES = 16


@overload
def global_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_grid: Grid,
    *,
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
    scale: float | None = ...,
    key_mask: Tensor | None = ...,
    dropout_p: float = ...,
    return_lse: Literal[True],
) -> tuple[Tensor, Tensor]: ...
def global_attention(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    v: Float[Tensor, "batch heads keys value_dim"],
    key_grid: Grid,
    *,
    scale: float | None = None,
    key_mask: Bool[Tensor, "*batch keys"] | None = None,
    dropout_p: float = 0.0,
    return_lse: bool = False,
) -> Float[Tensor, "batch heads queries value_dim"] | tuple[Tensor, Tensor]:
    """Softmax average of v over all keys, with quadrature weights (discrete full attention).

    `scale` is 1 / sqrt(dim) by default. `key_mask` is true for the keys that count; a query without
    any gets zeros. With `return_lse` also the logarithm of the softmax denominator. Dropout and
    `return_lse` leave torch's fused kernel: both hold all scores in memory. On GPUs, 16 bits
    without mask and `return_lse` take torch's flash kernel.
    """
    instance("key_grid", key_grid, Grid)
    require_qkv(q, k, v, key_mask)
    if k.shape[2] != key_grid.size:
        raise ValueError(f"k has {k.shape[2]} points, but {key_grid!r} has {key_grid.size}")
    kind, dtype = q.device.type, q.dtype
    if torch.is_autocast_enabled(kind) and dtype != torch.float64:
        dtype = torch.get_autocast_dtype(kind)
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    with torch.autocast(kind, enabled=False):
        if key_mask is None and not return_lse and _wants_flash(q, v, key_grid, dtype, scale):
            q, k, v = (x.to(dtype) for x in (q, k, v))
            return _flash(q, k, v, key_grid, scale, dropout_p)
        # 16 bits are too few for log weights; on a CPU they are not faster either.
        wide = torch.promote_types(dtype, torch.float32)
        q, k, v = (x.to(dtype).to(wide) for x in (q, k, v))
        log_w = _log_weights(key_grid, key_mask, q)
        empty = None
        if log_w is not None:
            k, v = (x.masked_fill((log_w == -math.inf).transpose(-1, -2), 0) for x in (k, v))
            empty = (log_w == -math.inf).all(dim=-1, keepdim=True)
            log_w = log_w.masked_fill(empty, 0)
        if return_lse:
            out, lse = _explicit(q, k, v, log_w, scale, dropout_p)
        else:
            out = _fused(q, k, v, log_w, scale, dropout_p)
        if empty is not None:
            out = out.masked_fill(empty, 0)
    if not return_lse:
        return out.to(dtype)
    return out.to(dtype), lse if empty is None else lse.masked_fill(empty[..., 0], -math.inf)


def _wants_flash(q: Tensor, v: Tensor, grid: Grid, dtype: torch.dtype, scale: float) -> bool:
    # A weight of 0 has no finite logarithm.
    fits = grid.weight_range[0] > 0 and flash.takes(q.shape[-1], v.shape[-1], scale)
    return _on_gpu(q) and fits and dtype in (torch.float16, torch.bfloat16)


def _on_gpu(q: Tensor) -> bool:
    return q.device.type == "cuda"


def _flash(q: Tensor, k: Tensor, v: Tensor, grid: Grid, scale: float, dropout_p: float) -> Tensor:
    log_w = None
    if grid.weight_range[0] < grid.weight_range[1]:
        like = q.detach().new_empty(0, dtype=torch.float32)
        log_w = _grid_log_weights(grid.name, grid.size, like)
    return flash.attention(q, k, v, log_w, scale, dropout_p)


def _fused(
    q: Tensor, k: Tensor, v: Tensor, log_w: Tensor | None, scale: float, dropout_p: float
) -> Tensor:
    # torch leaves its fused CPU kernel for transposed views, for masks without four dimensions and
    # for a value dim unlike the key dim, at three times the cost. Channels of zeros change no
    # product.
    dim, value_dim = q.shape[-1], v.shape[-1]
    queries, slices = q.shape[2], _slices(q)
    q = _padded(q, max(0, value_dim - dim), -queries % slices if slices > 1 else 0)
    k = _padded(k, max(0, value_dim - dim))
    v = _padded(v, max(0, dim - value_dim))
    if slices > 1:
        q = q.unflatten(2, (slices, -1)).flatten(1, 2)
        k, v = (x[:, :, None].expand(-1, -1, slices, -1, -1).flatten(1, 2) for x in (k, v))
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=log_w, dropout_p=dropout_p, scale=scale)
    if slices > 1:
        out = out.unflatten(1, (-1, slices)).flatten(2, 3)
    return out[:, :, :queries, :value_dim]


def _padded(x: Tensor, channels: int, points: int = 0) -> Tensor:
    # Padding by nothing is left out: torch 2.6 traces it as contiguous where it is not, drops what
    # would make it so from compiled programs, and its kernel then reads other numbers.
    return (F.pad(x, (0, channels, 0, points)) if channels or points else x).contiguous()


def _slices(q: Tensor) -> int:
    """Parts of the queries that pose as heads. torch's backward pass on a CPU shares only batches
    and heads among threads, and with fewer than threads hands each of its many small products to
    all of them.
    """
    # A compiled program serves any number of threads.
    if torch.compiler.is_compiling() or q.device.type != "cpu":
        return 1
    tasks = max(1, q.shape[0] * q.shape[1])
    return min(-(-torch.get_num_threads() // tasks), _MOST_SLICES, max(1, q.shape[2]))


def _explicit(
    q: Tensor, k: Tensor, v: Tensor, log_w: Tensor | None, scale: float, dropout_p: float
) -> tuple[Tensor, Tensor]:
    s = q @ k.transpose(-1, -2) * scale
    if log_w is not None:
        s = s + log_w
    # Not exp(s - lse): where logits are large, the digits of lse are too few to normalize.
    return F.dropout(s.softmax(dim=-1), dropout_p) @ v, s.logsumexp(dim=-1)


def _log_weights(grid: Grid, key_mask: Tensor | None, like: Tensor) -> Tensor | None:
    """(batch or 1, 1, 1, keys); -inf for keys that do not count."""
    log_w = _grid_log_weights(grid.name, grid.size, like.detach())[None, None, None, :]
    if key_mask is None:
        return log_w
    mask = key_mask.reshape(-1, 1, 1, key_mask.shape[-1])
    return log_w.masked_fill(~mask, -math.inf)


# An operator with the grid's name: compilers cannot follow numpy, nor hold a grid.
@torch.library.custom_op("spherule::log_weights", mutates_args=())
def _grid_log_weights(grid: str, size: int, like: Tensor) -> Tensor:
    return _cached_log_weights(grid).to(like, copy=True)


@_grid_log_weights.register_fake
def _(grid: str, size: int, like: Tensor) -> Tensor:
    return like.new_empty(size)


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # made in inference, used in training too
def _cached_log_weights(grid: str) -> Tensor:
    return torch.from_numpy(Grid.from_name(grid).weights.reshape(-1).copy()).log()
