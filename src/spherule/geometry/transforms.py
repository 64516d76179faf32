"""Tables that turn ring spectra into spherical harmonic coefficients and back, (order, degree,
ring) in float64.

Synthesis sums a table over degrees; analysis sums `table * weight` over rings, the input being
plain sums over a ring's points. Scalars need P_lm; the two components of a vector field need
dP_lm/dtheta and m P_lm / sin(theta), which are formed from neighbouring orders without dividing, so
poles are points like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.harmonics import legendre_table
from spherule.grids import Grid
from spherule.grids.quadrature import gauss

Table: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class Basis:
    """Functions of theta, one for each degree and order. Components of vectors (spin 1) change sign
    across a pole.
    """

    values: Callable[[int, NDArray[np.float64]], Table]
    spin: int


def _scalar(lmax: int, theta: NDArray[np.float64]) -> Table:
    """P_lm(theta)."""
    half = theta.size // 2
    if half and np.allclose(theta + theta[::-1], np.pi, rtol=0, atol=4e-16):
        north = legendre_table(lmax, theta[: theta.size - half])
        degree = np.arange(lmax + 1)
        sign = 1.0 - 2 * ((degree[:, None] + degree) % 2)[..., None]
        return np.concatenate([north, (sign * north[..., :half])[..., ::-1]], axis=-1)
    return legendre_table(lmax, theta)


def _slope(lmax: int, theta: NDArray[np.float64]) -> Table:
    """dP_lm/dtheta = (sqrt((l - m)(l + m + 1)) P_l,m+1 - sqrt((l + m)(l - m + 1)) P_l,m-1) / 2."""
    l, m = _degrees_and_orders(lmax)
    above, below = _neighbours(_scalar(lmax, theta))
    return 0.5 * (
        np.sqrt(np.maximum((l - m) * (l + m + 1), 0)) * above
        - np.sqrt(np.maximum((l + m) * (l - m + 1), 0)) * below
    )


def _shear(lmax: int, theta: NDArray[np.float64]) -> Table:
    """m P_lm / sin(theta), from the orders m + 1 and m - 1 of degree l - 1."""
    l, m = _degrees_and_orders(lmax)
    above, below = _neighbours(np.roll(_scalar(lmax, theta), 1, axis=1))
    scale = np.sqrt((2 * l + 1) / np.maximum(2 * l - 1, 1))
    table = -0.5 * (
        np.sqrt(np.maximum((l - m) * (l - m - 1), 0)) * above
        + np.sqrt(np.maximum((l + m) * (l + m - 1), 0)) * below
    )
    return np.where((m > 0) & (m <= l), scale * table, 0.0)


SCALAR = Basis(_scalar, spin=0)
SLOPE = Basis(_slope, spin=1)
SHEAR = Basis(_shear, spin=1)


def continued_analysis(basis: Basis, grid: Grid, lmax: int) -> Table | None:
    """The analysis table of a grid with equal steps in theta, exact up to grid.lmax; None for other
    grids.

    Continued over the poles to the full circle, the samples carry a trigonometric polynomial, whose
    integral against the basis is taken by a Gauss rule: exact to twice the degree that the grid's
    own weights allow.
    """
    samples = _equal_steps(grid)
    if samples is None:
        return None
    steps, shift = samples
    theta, weights = gauss((lmax + steps) // 2 + 1)
    nodes = basis.values(lmax, theta) * weights
    cosines, sines = (_interpolation(theta, steps, shift, odd) for odd in (False, True))
    polar = cosines
    if shift == 0.0 and grid.nrings == steps:
        # The south pole is missing. Only order m = spin is not 0 there: its value is the one that
        # leaves cos(N theta) out.
        signs = np.where(np.arange(steps) % 2, -2.0, 2.0)
        signs[0] = 1.0
        polar = cosines[:, :-1] - (-1) ** steps * cosines[:, -1:] * signs
        cosines, sines = cosines[:, :-1], sines[:, :-1]
    table = np.zeros((lmax + 1, lmax + 1, grid.nrings))
    for m in range(lmax + 1):
        matrix = polar if m == basis.spin else sines if (m + basis.spin) % 2 else cosines
        np.matmul(nodes[m, m:], matrix, out=table[m, m:])
    return table


def _equal_steps(grid: Grid) -> tuple[int, float] | None:
    """N and s where theta_i = (i + s) pi / N covers the meridian, s 0 or 1/2; else None."""
    if not grid.regular:
        return None
    for steps, shift in ((grid.nrings - 1, 0.0), (grid.nrings, 0.0), (grid.nrings, 0.5)):
        if steps and np.allclose(
            grid.theta, (np.arange(grid.nrings) + shift) * np.pi / steps, rtol=0, atol=1e-12
        ):
            return steps, shift
    return None


def _interpolation(
    theta: NDArray[np.float64], steps: int, shift: float, odd: bool
) -> NDArray[np.float64]:
    """The matrix from samples at (i + shift) pi / steps, poles included, to their cosine (or sine)
    polynomial at theta.
    """
    rings = steps + (shift == 0.0)
    k = np.arange(steps + 1)
    wave = np.sin if odd else np.cos
    # Angles as integers over 2 steps, reduced before they are rounded.
    angle = (
        np.pi / (2 * steps) * (k[:, None] * (2 * np.arange(rings) + round(2 * shift)) % (4 * steps))
    )
    coefficients = 2 / steps * wave(angle)
    coefficients[[0, -1]] /= 2
    if shift == 0.0:
        coefficients[:, [0, -1]] /= 2
    return wave(theta[:, None] * k) @ coefficients


def _degrees_and_orders(lmax: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    n = np.arange(lmax + 1, dtype=np.float64)
    return n[None, :, None], n[:, None, None]


def _neighbours(table: Table) -> tuple[Table, Table]:
    """The tables of order m + 1 and m - 1; P_l,-1 = -P_l,1."""
    above = np.concatenate([table[1:], np.zeros_like(table[:1])])
    below = np.concatenate([-above[:1], table[:-1]])
    return above, below
