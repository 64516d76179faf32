"""A mask's way down through layers, (batch, *grid.shape) and True where values count."""

from typing import Any

from torch import Tensor, nn


def call(layer: nn.Module, x: Tensor, mask: Tensor | None) -> Any:
    """The layer on x, with the mask if there is one and the layer says how it takes it. Others
    treat each point by itself, or, on the plane, see what stands for missing values.
    """
    name = getattr(layer, "mask_argument", None)
    return layer(x) if mask is None or name is None else layer(x, **{name: mask})
