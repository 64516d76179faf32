"""Global attention by torch's fused kernel, with log weights as its mask."""

import torch
import torch.nn.functional as F
from torch import Tensor

# Each slice has its own gradients of all keys and values until they are added.
_MOST_SLICES = 16


def attention(
    q: Tensor, k: Tensor, v: Tensor, log_w: Tensor, scale: float, dropout_p: float
) -> Tensor:
    """log_w (batch or 1, 1, 1, keys), finite for a key at least."""
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
