"""What every layer says when its input does not fit."""

import itertools

import torch
from torch import Tensor, nn

from spherule.distributed import Place
from spherule.ops.autocast import is_autocast
from spherule.ops.checks import require_floats


def flat_field(layer: nn.Module, name: str, x: Tensor, channels: int, grid: Place) -> Tensor:
    """(batch, channels, *grid.shape) as (batch, channels, points), or an error that says who wants
    what.
    """
    wanted = ", ".join(map(str, (channels, *grid.shape)))
    _require_floats(layer, name, x)
    if x.ndim != 2 + len(grid.shape) or x.shape[1:] != (channels, *grid.shape):
        raise ValueError(
            f"{type(layer).__name__}: {name}: expected (batch, {wanted}) on {grid!r}, "
            f"got {tuple(x.shape)}"
        )
    return x.flatten(2)


def require_channels(layer: nn.Module, name: str, x: Tensor, grid: Place) -> None:
    """(batch, channels, *grid.shape) with channels as many as there are."""
    _require_floats(layer, name, x)
    flat_field(layer, name, x, x.shape[1] if x.ndim > 1 else 1, grid)


def flat_channels(layer: nn.Module, name: str, x: Tensor, channels: int) -> Tensor:
    """(batch, channels, ...) as (batch, channels, points), for layers that know no grid."""
    _require_floats(layer, name, x)
    if x.ndim < 3 or x.shape[1] != channels:
        raise ValueError(
            f"{type(layer).__name__}: {name}: expected (batch, {channels}, *grid.shape), got "
            f"{tuple(x.shape)}"
        )
    return x.flatten(2)


def require_dtype(layer: nn.Module, name: str, x: Tensor) -> None:
    """Of the layer's own dtype, where no autocast sees to it."""
    own = next(layer.parameters())
    if torch.compiler.is_compiling() or x.dtype == own.dtype:
        return
    if not is_autocast(x):
        raise TypeError(
            f"{type(layer).__name__}: {name}: expected {own.dtype}, as the layer's weights are, "
            f"got {x.dtype}"
        )


def _require_floats(layer: nn.Module, name: str, x: Tensor) -> None:
    """Floats where the layer's own are. A compiled program was checked when it was traced."""
    if torch.compiler.is_compiling():
        return
    require_floats(**{name: x})
    for own in itertools.islice(itertools.chain(layer.parameters(), layer.buffers()), 1):
        if own.device != x.device:
            raise ValueError(
                f"{type(layer).__name__}: {name}: expected a tensor on {own.device}, where the "
                f"layer is, got {x.device}"
            )
