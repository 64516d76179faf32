"""Integrals over the sphere by quadrature."""

import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.grids import Grid
from spherule.ops.checks import require_field
from spherule.ops.tables import table


@checks.arguments
def integrate(u: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "*batch"]:
    """The integral of a field over the unit sphere; a constant 1 gives the grid's area, 4 pi.

    Args:
        u: `(..., *grid.shape)`, float32 or float64.
        grid: where it is given.

    >>> import torch, spherule as sph
    >>> grid = sph.Grid.octahedral(8)
    >>> round(sph.ops.integrate(torch.ones(grid.shape), grid).item(), 4)
    12.5664
    """
    require_field("u", u, grid)
    dims = tuple(range(-len(grid.shape), 0))
    return (u * _weights(grid, u.dtype, u.device)).sum(dims)


@table(maxsize=32)
def _weights(grid: Grid, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(grid.weights, dtype=dtype, device=device)
