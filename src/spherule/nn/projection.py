"""Linear maps over channels."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from spherule import checks
from spherule.ops.pointwise import linear, split_linear


class Projection(nn.Module):
    """The same linear map at every point, (batch, in, points) to (batch, out, points). Either may
    come by heads, (batch, heads, points, dim), the channels of one after those of the other.
    """

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
        heads: int = 0,
        some: slice = slice(None),
    ) -> list[Tensor]:
        """The map to some of the channels, in fields of these widths, by heads if so many are asked
        for.
        """
        bias = None if self.bias is None else self.bias[some]
        return split_linear(x, self.weight[some], bias, [*widths], heads)

    def extra_repr(self) -> str:
        return f"{self.weight.shape[1]}, {self.weight.shape[0]}, bias={self.bias is not None}"
