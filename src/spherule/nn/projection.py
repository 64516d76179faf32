"""Linear maps over channels, and how heads are split off them."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spherule import checks


class Projection(nn.Module):
    """The same linear map at every point, (batch, in, points) to (batch, out, points)."""

    @checks.arguments
    def __init__(self, in_channels: int, out_channels: int, *, bias: bool = False) -> None:
        super().__init__()
        checks.integer("in_channels", in_channels, low=1)
        checks.integer("out_channels", out_channels, low=1)
        bound = 1 / math.sqrt(in_channels)
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(self, x: Tensor, rows: slice = slice(None)) -> Tensor:
        bias = None if self.bias is None else self.bias[rows]
        return mix_channels(x, self.weight[rows], bias)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, bias={self.bias is not None}"


def mix_channels(
    x: Float[Tensor, "batch channels points"],
    weight: Float[Tensor, "out channels"],
    bias: Float[Tensor, "out"] | None = None,
) -> Float[Tensor, "batch out points"]:
    """weight x + bias at every point."""
    if not x.shape[-1]:  # convolutions refuse what products take: a rank may own no point
        return weight @ x if bias is None else weight @ x + bias[:, None]
    # A convolution is the fast one of torch's ways to multiply channels-first data on the CPU.
    return F.conv1d(x, weight[..., None], bias)


def split_heads(x: Float[Tensor, "batch channels points"], heads: int) -> Tensor:
    """(batch, channels, points) to (batch, heads, points, dim), a view."""
    return x.unflatten(1, (heads, x.shape[1] // heads)).mT


def merge_heads(x: Float[Tensor, "batch heads points dim"]) -> Tensor:
    """(batch, heads, points, dim) to (batch, channels, points)."""
    return x.mT.flatten(1, 2)
