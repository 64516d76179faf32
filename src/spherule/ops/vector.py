"""Vector calculus by harmonics: gradients, and winds from vorticity and divergence and back.

A vector field is `(..., 2, *grid.shape)`: eastward, then northward. With a stream function T and a
potential S it is V = grad S + k x grad T, so order by order, with slope = dP/dtheta and shear = m P
/ sin(theta),

    east = i shear S + slope T,    north = -slope S + i shear T.

The two tables do not divide by sin(theta): poles are points like any other.
"""

import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.geometry.transforms import SHEAR, SLOPE
from spherule.grids import Grid
from spherule.ops.checks import require_coeffs, require_degree, require_field, require_tensors
from spherule.ops.sht import to_coeffs, to_orders, to_points, to_rings
from spherule.ops.spectral import inverse_laplacian


@checks.arguments
def gradient(
    coeffs: Shaped[Tensor, "*batch degree order"], grid: Grid, *, radius: float = 1.0
) -> Shaped[Tensor, "..."]:
    """The gradient of a scalar field on a sphere of this radius, `(..., 2, *grid.shape)`."""
    require_coeffs("coeffs", coeffs)
    checks.number("radius", radius, above=0)
    east = 1j * to_rings(SHEAR, coeffs, grid)
    north = -to_rings(SLOPE, coeffs, grid)
    return to_points(torch.stack([east, north], dim=-3), grid) / radius


@checks.arguments
def wind(
    vorticity: Shaped[Tensor, "*batch degree order"],
    divergence: Shaped[Tensor, "*batch degree order"],
    grid: Grid,
    *,
    radius: float = 1.0,
) -> Shaped[Tensor, "..."]:
    """The wind of given vorticity and divergence (coefficients), `(..., 2, *grid.shape)`:
    Helmholtz's decomposition.
    """
    checks.number("radius", radius, above=0)
    require_coeffs("vorticity", vorticity)
    require_coeffs("divergence", divergence)
    require_tensors(vorticity=vorticity, divergence=divergence)
    if vorticity.dtype != divergence.dtype:
        raise TypeError(
            f"divergence: expected {vorticity.dtype}, the dtype of vorticity, got "
            f"{divergence.dtype}"
        )
    if vorticity.shape != divergence.shape:
        raise ValueError(
            f"vorticity {tuple(vorticity.shape)} and divergence {tuple(divergence.shape)} must "
            "have one shape"
        )
    potentials = inverse_laplacian(torch.stack([vorticity, divergence], dim=-3))
    stream_slope, potential_slope = to_rings(SLOPE, potentials, grid).unbind(-3)
    stream_shear, potential_shear = to_rings(SHEAR, potentials, grid).unbind(-3)
    east = 1j * potential_shear + stream_slope
    north = 1j * stream_shear - potential_slope
    return to_points(torch.stack([east, north], dim=-3), grid) * radius


@checks.arguments
def vorticity_divergence(
    wind: Shaped[Tensor, "..."], grid: Grid, lmax: int, *, radius: float = 1.0
) -> tuple[Shaped[Tensor, "*batch degree order"], Shaped[Tensor, "*batch degree order"]]:
    """Coefficients of the vorticity and the divergence of a wind `(..., 2, *grid.shape)`."""
    require_field("wind", wind, grid)
    checks.number("radius", radius, above=0)
    lmax = require_degree("lmax", lmax, grid)
    component = wind.ndim - len(grid.shape) - 1
    if component < 0 or wind.shape[component] != 2:
        raise ValueError(
            f"wind: expected (..., 2, *grid.shape), eastward and northward, got {tuple(wind.shape)}"
        )
    orders = to_orders(wind, grid, lmax)
    east_slope, north_slope = to_coeffs(SLOPE, orders, grid).unbind(-3)
    east_shear, north_shear = to_coeffs(SHEAR, orders, grid).unbind(-3)
    # Integration by parts: the derivatives act on the harmonics.
    return (1j * north_shear - east_slope) / radius, (1j * east_shear + north_slope) / radius
