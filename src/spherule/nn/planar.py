"""The convolution of the planar baselines: zeros beyond every border, the date line included."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spherule.grids import Grid
from spherule.nn.checks import flat_field


class PlanarConv(nn.Module):
    """A square kernel on rows and columns, at every point or, onto a grid of half the size, every
    second.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        grid: Grid,
        out_grid: Grid | None = None,
        *,
        kernel: int = 3,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        self.grid, self.out_grid = grid, grid if out_grid is None else out_grid
        for which in (self.grid, self.out_grid):
            if not which.regular:
                raise ValueError(
                    f"PlanarConv needs rows and columns, which {which!r} does not have"
                )
        strides = [
            s for s in (1, 2) if self.out_grid.shape == tuple(-(-n // s) for n in grid.shape)
        ]
        if not strides:
            raise ValueError(
                f"PlanarConv: from {grid.shape} to the same size or to half of it, "
                f"rounded up, not to {self.out_grid.shape}"
            )
        self.stride = strides[0]
        self.in_channels, self.kernel, self.groups = in_channels, kernel, groups
        fan_in = in_channels // groups * kernel**2
        bound = 1 / math.sqrt(fan_in)
        shape = (out_channels, in_channels // groups, kernel, kernel)
        self.weight = nn.Parameter(torch.empty(shape).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None

    def forward(
        self, x: Float[Tensor, "batch channels lat lon"]
    ) -> Float[Tensor, "batch out lat2 lon2"]:
        flat_field(self, "x", x, self.in_channels, self.grid)
        padding = []
        for n, m in zip(self.grid.shape[::-1], self.out_grid.shape[::-1], strict=True):
            total = max((m - 1) * self.stride + self.kernel - n, 0)
            padding += [(self.kernel - 1) // 2, total - (self.kernel - 1) // 2]
        return F.conv2d(F.pad(x, padding), self.weight, self.bias, self.stride, groups=self.groups)

    def extra_repr(self) -> str:
        out, fan_in = self.weight.shape[:2]
        grids = f"{self.grid.name} -> {self.out_grid.name}"
        return f"{fan_in * self.groups}, {out}, {grids}, kernel={self.kernel}"
