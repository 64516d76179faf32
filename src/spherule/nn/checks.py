"""What every layer says when its input does not fit."""

from torch import Tensor, nn

from spherule.distributed import Place


def flat_field(layer: nn.Module, name: str, x: Tensor, channels: int, grid: Place) -> Tensor:
    """(batch, channels, *grid.shape) as (batch, channels, points), or an error that says who wants
    what.
    """
    if x.ndim != 2 + len(grid.shape) or x.shape[1:] != (channels, *grid.shape):
        wanted = ", ".join(map(str, (channels, *grid.shape)))
        raise ValueError(
            f"{type(layer).__name__}: {name}: expected (batch, {wanted}) on {grid!r}, "
            f"got {tuple(x.shape)}"
        )
    return x.flatten(2)
