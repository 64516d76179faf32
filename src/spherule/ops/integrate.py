"""Integrals over the sphere by quadrature."""

import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.grids import Grid
from spherule.ops.checks import require_field


@checks.arguments
def integrate(u: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "*batch"]:
    """The integral of a field `(..., *grid.shape)` over the unit sphere; a constant 1 gives the
    grid's area, 4 pi.
    """
    require_field("u", u, grid)
    dims = tuple(range(-len(grid.shape), 0))
    return (u * torch.tensor(grid.weights, dtype=u.dtype, device=u.device)).sum(dims)
