"""Maps over the channels of each point, in plain PyTorch: what differentiates in every way, and
what compilers of other programs know.
"""

import torch.nn.functional as F
from torch import Tensor


def linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """weight (out, in) times x (batch, in, points), plus bias, in the dtype of x."""
    weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
    if not x.shape[-1]:  # convolutions refuse what products take: a rank may own no point
        return weight @ x if bias is None else weight @ x + bias[:, None]
    # A convolution is the fast one of torch's ways to multiply channels-first data on the CPU.
    return F.conv1d(x, weight[..., None], bias)


def split_linear(
    x: Tensor, weight: Tensor, bias: Tensor | None, widths: list[int], heads: int
) -> list[Tensor]:
    """The same of a field that may come by heads, in fields of these widths, by heads if asked."""
    y = linear(merge_heads(x) if x.ndim == 4 else x, weight, bias)
    return [split_heads(part, heads) if heads else part for part in y.split(widths, dim=1)]


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(batch, channels, points) to (batch, heads, points, dim), a view."""
    return x.unflatten(1, (heads, x.shape[1] // heads)).mT


def merge_heads(x: Tensor) -> Tensor:
    """(batch, heads, points, dim) to (batch, channels, points)."""
    return x.mT.flatten(1, 2)


def mlp(x: Tensor, first: Tensor, bias: Tensor, second: Tensor) -> Tensor:
    """second gelu(first x + bias)."""
    return linear(F.gelu(linear(x, first, bias)), second, None)
