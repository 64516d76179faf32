"""The layers of the planar baselines, which take the grid for an image: all points alike, and every
border a border, the date line included.
"""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from spherule import checks, ops
from spherule.geometry import Neighborhood
from spherule.grids import Grid
from spherule.nn.checks import flat_channels, flat_field, require_channels, require_dtype
from spherule.nn.placed import Bound
from spherule.nn.projection import Projection


class PlanarConv(Bound):
    """A square kernel on rows and columns, at every point or, onto a grid of half the size, every
    second; zeros beyond the borders.
    """

    @checks.arguments
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
        counts = {"in_channels": in_channels, "out_channels": out_channels, "groups": groups}
        for name, count in (counts | {"kernel": kernel}).items():
            checks.integer(name, count, low=1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"PlanarConv: groups={groups} must divide in_channels={in_channels} and "
                f"out_channels={out_channels}"
            )
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
        require_dtype(self, "x", x)
        padding = []
        for n, m in zip(self.grid.shape[::-1], self.out_grid.shape[::-1], strict=True):
            total = max((m - 1) * self.stride + self.kernel - n, 0)
            padding += [(self.kernel - 1) // 2, total - (self.kernel - 1) // 2]
        return F.conv2d(F.pad(x, padding), self.weight, self.bias, self.stride, groups=self.groups)

    def extra_repr(self) -> str:
        out, fan_in = self.weight.shape[:2]
        grids = f"{self.grid.name} -> {self.out_grid.name}"
        return f"{fan_in * self.groups}, {out}, {grids}, kernel={self.kernel}"


class PlanarAttention(Bound):
    """The baseline that takes the grid for a plane: all points alike, global or in a window.

    `window=7` attends to 7x7 points, shifted inside at the borders; they do not wrap.
    """

    @checks.arguments
    def __init__(
        self,
        channels: int,
        grid: Grid,
        *,
        heads: int = 1,
        window: int | None = None,
        out_bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        checks.number("dropout", dropout, low=0, below=1)
        checks.integer("channels", channels, low=1)
        if channels % checks.integer("heads", heads, low=1):
            raise ValueError(f"channels={channels} must be a multiple of heads={heads}")
        if window is not None and not grid.regular:
            raise ValueError(
                f"window={window} needs rows and columns, which {grid!r} does not have"
            )
        if dropout and window is not None:
            raise ValueError(
                f"dropout={dropout} with window={window}: only global attention has it"
            )
        self.channels = channels
        self.grid = self.query_grid = grid
        self.heads = heads
        self.window = window
        self.dropout = dropout
        self.neighborhood = None
        if window is not None:
            rows, columns = grid.shape
            self.neighborhood = Neighborhood.window((rows, columns), (window, window))
        self.qkv = Projection(channels, 3 * channels)
        self.out = Projection(channels, channels, bias=out_bias)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        flat = flat_field(self, "x", x, self.channels, self.grid)
        require_dtype(self, "x", x)
        q, k, v = self.project(flat)
        if self.neighborhood is None:
            dropout = self.dropout if self.training else 0.0
            y = ops.global_attention(q, k, v, self.grid, weighted=False, dropout_p=dropout)
        else:
            y = ops.neighborhood_attention(q, k, v, self.neighborhood)
        return self.out(y).unflatten(-1, self.grid.shape)

    @property
    def reach(self) -> Neighborhood:
        """What `ops.attention_weights` asks for: windows, or all points alike."""
        if self.neighborhood is not None:
            return self.neighborhood
        return Neighborhood.whole(self.grid.size, self.grid, weighted=False)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (batch, heads, points, dim) of a field (batch, channels,
        points).
        """
        q, k, v = self.qkv.split(x, [self.channels] * 3, self.heads)
        return q, k, v

    def extra_repr(self) -> str:
        reach = "global" if self.window is None else f"window={self.window}"
        return f"{self.grid.name}, heads={self.heads}, {reach}"


class PlainInstanceNorm(Bound, nn.GroupNorm):
    """Instance norm with all points alike, whatever area they stand for."""

    @checks.arguments
    def __init__(self, channels: int) -> None:
        super().__init__(checks.integer("channels", channels, low=1), channels)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        # Not torch.nn.functional's, which refuses a single point.
        flat_channels(self, "x", x, self.num_groups)
        require_dtype(self, "x", x)
        return torch.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)


class PlanarResample(Bound):
    """Bilinear resampling as images are resized: cells on cells, the outermost ones continued."""

    @checks.arguments
    def __init__(self, source: Grid, target: Grid) -> None:
        super().__init__()
        for which in (source, target):
            if not which.regular:
                raise ValueError(
                    f"PlanarResample needs rows and columns, which {which!r} does not have"
                )
        self.source, self.target = source, target

    def forward(
        self, x: Float[Tensor, "batch channels lat lon"]
    ) -> Float[Tensor, "batch channels lat2 lon2"]:
        require_channels(self, "x", x, self.source)
        return F.interpolate(x, self.target.shape, mode="bilinear")

    def extra_repr(self) -> str:
        return f"{self.source.name} -> {self.target.name}"
