"""Spherical harmonic transforms of scalar fields on every ring grid.

Longitudes and colatitudes next door. Coefficients are those of m >= 0 of a real field: orthonormal,
with the Condon-Shortley phase, `[..., l, m]`.
"""

from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.geometry.transforms import SCALAR
from spherule.grids import Grid
from spherule.ops.checks import require_coeffs, require_degree, require_field
from spherule.ops.colatitudes import to_coeffs, to_rings
from spherule.ops.longitudes import to_orders, to_points


@checks.arguments
def sht(
    u: Shaped[Tensor, "..."], grid: Grid, lmax: int, *, iterations: int = 0
) -> Shaped[Tensor, "*batch degree order"]:
    """Spherical harmonic coefficients `[..., l, m >= 0]` of a real field.

    Exact for fields of degree <= lmax on Gauss and Lobatto grids, and, by continuing theta to the
    full circle, on equiangular, Clenshaw-Curtis and Fejér grids. On reduced grids it is the
    weighted adjoint of `isht`, an approximation.

    Args:
        u: the field, `(..., *grid.shape)`, float32 or float64.
        grid: where it is given.
        lmax: the highest degree, inclusive, at most `grid.lmax`.
        iterations: residual corrections on reduced grids: HEALPix at lmax = 2 nside goes from about
            1e-3 to 1e-6 in three.

    >>> import torch, spherule as sph
    >>> grid = sph.Grid.gauss(16, 32)
    >>> coeffs = sph.ops.sht(torch.ones(3, 16, 32), grid, 15)
    >>> tuple(coeffs.shape), round(coeffs[0, 0, 0].real.item(), 4)
    ((3, 16, 16), 3.5449)
    """
    require_field("u", u, grid)
    lmax = require_degree("lmax", lmax, grid)
    if iterations < 0:
        raise ValueError(f"iterations={iterations} must be >= 0")
    coeffs = to_coeffs(SCALAR, to_orders(u, grid, lmax), grid)
    for _ in range(iterations):
        coeffs = coeffs + sht(u - isht(coeffs, grid), grid, lmax)
    return coeffs


@checks.arguments
def isht(coeffs: Shaped[Tensor, "*batch degree order"], grid: Grid) -> Shaped[Tensor, "..."]:
    """The real field `(..., *grid.shape)` of coefficients: exact at the grid's points, aliasing
    included.

    Args:
        coeffs: `[..., l, m >= 0]`, complex, of any degree.
        grid: where the field is wanted.

    >>> import torch, spherule as sph
    >>> coeffs = torch.zeros(5, 5, dtype=torch.complex128)
    >>> coeffs[0, 0] = 1
    >>> round(sph.ops.isht(coeffs, sph.Grid.healpix(4))[0].item(), 4)
    0.2821
    """
    require_coeffs("coeffs", coeffs)
    return to_points(to_rings(SCALAR, coeffs, grid), grid)
