"""What Transformers are built of: drop path, the multilayer perceptron, the pre-norm block."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place, agreed
from spherule.nn.checks import flat_channels, require_dtype
from spherule.nn.masks import call
from spherule.nn.placed import Placed
from spherule.nn.projection import Projection
from spherule.ops.pointwise import mlp


class DropPath(Placed):
    """While training, a whole branch is left out of a sample with probability `rate`."""

    @checks.arguments
    def __init__(self, rate: float) -> None:
        super().__init__()
        checks.number("rate", rate, low=0, below=1)
        self.rate = rate
        self.grid: Place | None = None

    def place(self, grid: Place) -> None:
        self.grid = grid

    def forward(self, x: Float[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        if not self.training or self.rate == 0:
            return x
        keep = torch.rand(x.shape[0], *[1] * (x.ndim - 1), device=x.device) >= self.rate
        keep = keep.to(x.dtype)
        if self.grid is not None:  # all parts of a sample keep its branch, or none does
            keep = agreed(keep, self.grid)
        return x * keep / (1 - self.rate)

    def extra_repr(self) -> str:
        return f"{self.rate:g}"


class Mlp(nn.Module):
    """Two linear maps at every point with a GELU between; only the first has a bias."""

    @checks.arguments
    def __init__(self, channels: int, hidden: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        checks.integer("channels", channels, low=1)
        checks.integer("hidden", hidden, low=1)
        checks.number("dropout", dropout, low=0, high=1)
        self.channels = channels
        self.first = Projection(channels, hidden, bias=True)
        self.second = Projection(hidden, channels)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        flat = flat_channels(self, "x", x, self.channels)
        require_dtype(self, "x", x)
        assert self.first.bias is not None
        y = mlp(flat, self.first.weight, self.first.bias, self.second.weight)
        return self.dropout(y).view_as(x)


class Block(nn.Module):
    """A pre-norm block: attention, then a feed-forward part, each on a residual branch."""

    mask_argument: ClassVar[str] = "mask"

    @checks.arguments
    def __init__(
        self,
        attention_norm: nn.Module,
        attention: nn.Module,
        feed_forward_norm: nn.Module,
        feed_forward: nn.Module,
        *,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        checks.number("drop_path", drop_path, low=0, below=1)
        self.attention_norm = attention_norm
        self.attention = attention
        self.feed_forward_norm = feed_forward_norm
        self.feed_forward = feed_forward
        self.drop_path = DropPath(drop_path)

    def forward(
        self, x: Float[Tensor, "batch channels ..."], mask: Bool[Tensor, "batch ..."] | None = None
    ) -> Float[Tensor, "batch channels ..."]:
        """A mask `(batch, *grid.shape)` goes to all parts that take one."""
        attended = call(self.attention, call(self.attention_norm, x, mask), mask)
        x = x + self.drop_path(attended)
        fed = call(self.feed_forward, call(self.feed_forward_norm, x, mask), mask)
        return x + self.drop_path(fed)
