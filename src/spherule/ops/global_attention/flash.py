"""Global attention for kernels that take no mask: log weights as channels of the keys.

On GPUs any mask shuts out torch's flash kernel. But q . k scale + log w is a product too, of
queries and keys with a few channels more.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

# The head dimensions that flash kernels take: up to 256, and multiples of 8.
WIDEST = 256
_STEP = 8

# A 16-bit number keeps 8 or 11 digits: three of them hold a float32. They cost no more than two, as
# channels come in eights.
_PARTS = 3


def takes(dim: int, value_dim: int, scale: float) -> bool:
    """Whether heads fit, with the channels added; and `scale`, whose inverse becomes one."""
    return _wide(dim + _PARTS, value_dim) <= WIDEST and 2**-12 <= abs(scale) <= 2**12


def attention(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    v: Float[Tensor, "batch heads keys value_dim"],
    log_w: Float[Tensor, "keys"] | None,
    scale: float,
    dropout_p: float,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """16 bits in and out; finite `log_w` in float32, None for all alike."""
    value_dim = v.shape[-1]
    if log_w is not None:
        q, k = with_log_weights(q, k, log_w, scale)
    width = _wide(q.shape[-1], value_dim)
    # Channels of zeros change no product.
    q, k, v = (F.pad(x, (0, width - x.shape[-1])).contiguous() for x in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout_p, scale=scale)
    return out[..., :value_dim]


def with_log_weights(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    log_w: Float[Tensor, "keys"],
    scale: float,
) -> tuple[Tensor, Tensor]:
    """q and k with channels added, so that q . k scale grows by log_w, up to one number for all."""
    # A power of two, so that it is exact in 16 bits: the nearest to 1 / scale.
    unit = 2.0 ** round(-math.log2(abs(scale)))
    low, high = torch.aminmax(log_w)
    # Centered, so that the numbers are small and their digits fine.
    rest = (log_w - (low + high) / 2) / (scale * unit)
    parts = []
    for _ in range(_PARTS):
        parts.append(rest.to(k.dtype))
        rest = rest - parts[-1].to(rest.dtype)
    channels = torch.stack(parts, dim=-1).expand(*k.shape[:-1], _PARTS)
    units = q.new_full((1,), unit).expand(*q.shape[:-1], _PARTS)
    return torch.cat([q, units], dim=-1), torch.cat([k, channels], dim=-1)


def _wide(dim: int, value_dim: int) -> int:
    return -(-max(dim, value_dim) // _STEP) * _STEP
