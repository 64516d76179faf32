"""Linear maps over channels, and how heads are split off them."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spherule import checks
from spherule.ops.pointwise import linear, split_linear


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

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)

    def split(
        self,
        x: Tensor,
        widths: Sequence[int],
        some: slice = slice(None),
        *,
        rows: bool = True,
    ) -> list[Tensor]:
        """The map to some of the channels, in parts of these widths, each laid out point by point
        in memory unless `rows` is false.
        """
        bias = None if self.bias is None else self.bias[some]
        return split_linear(x, self.weight[some], bias, [*widths], rows)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, bias={self.bias is not None}"


def split_heads(x: Float[Tensor, "batch channels points"], heads: int) -> Tensor:
    """(batch, channels, points) to (batch, heads, points, dim), a view."""
    return x.unflatten(1, (heads, x.shape[1] // heads)).mT


def merge_heads(x: Float[Tensor, "batch heads points dim"]) -> Tensor:
    """(batch, heads, points, dim) to (batch, channels, points)."""
    return x.mT.flatten(1, 2)
