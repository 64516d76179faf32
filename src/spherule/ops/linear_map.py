"""What a linear map and its transpose are to torch: all derivatives follow from the two."""

from typing import Any

import torch
from torch import Tensor


class LinearMap(torch.autograd.Function):
    """Linear in its first argument; its last one, `transposed`, chooses between the map and its
    transpose. So tangents go the same way and gradients the other. A subclass has `forward`, which
    takes any number of leading dimensions.
    """

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        _, *ctx.rest = inputs

    @classmethod
    def backward(cls, ctx: Any, dy: Tensor) -> tuple:
        *rest, transposed = ctx.rest
        return cls.apply(dy, *rest, not transposed), *(None for _ in ctx.rest)

    @classmethod
    def jvp(cls, ctx: Any, tangent: Tensor, *_: Any) -> Tensor:
        return cls.apply(tangent, *ctx.rest)

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple, x: Tensor, *rest: Any) -> tuple[Tensor, int]:
        return cls.apply(x.movedim(in_dims[0], 0), *rest), 0
