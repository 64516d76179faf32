"""Tables that turn ring spectra into spherical harmonic coefficients and back, (order, degree,
ring) in float64.

Synthesis sums a table over degrees; analysis sums `table * weight` over rings, the input being
plain sums over a ring's points. Scalars need P_lm; the two components of a vector field need
dP_lm/dtheta and m P_lm / sin(theta), which are formed from neighboring orders without dividing, so
poles are points like any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.harmonics import legendre_table
from spherule.grids import Grid
from spherule.grids.quadrature import gauss

Table: TypeAlias = NDArray[np.float64]


class Neighbors(NamedTuple):
    """Functions above[m, l] P_l-down,m+1 + below[m, l] P_l-down,m-1. Factors are 0 where there is
    no such neighbor; that of order -1 is counted above, since P_l,-1 = -P_l,1.
    """

    above: NDArray[np.float64]
    below: NDArray[np.float64]
    down: int


@dataclass(frozen=True)
class Basis:
    """Functions of theta, one for each degree and order: P_lm, or sums of its neighbors. Components
    of vectors (spin 1) change sign across a pole.
    """

    spin: int
    neighbors: Callable[[int], Neighbors] | None = None

    def values(self, lmax: int, theta: NDArray[np.float64]) -> Table:
        """All of them, (order, degree, *theta.shape)."""
        table = _scalar(lmax, theta)
        if self.neighbors is None:
            return table
        above, below, down = self.neighbors(lmax)
        table = np.roll(table, down, axis=1)
        return above[..., None] * np.roll(table, -1, axis=0) + below[..., None] * np.roll(
            table, 1, axis=0
        )


def _scalar(lmax: int, theta: NDArray[np.float64]) -> Table:
    """P_lm(theta)."""
    half = theta.size // 2
    if half and np.allclose(theta + theta[::-1], np.pi, rtol=0, atol=4e-16):
        north = legendre_table(lmax, theta[: theta.size - half])
        degree = np.arange(lmax + 1)
        sign = 1.0 - 2 * ((degree[:, None] + degree) % 2)[..., None]
        return np.concatenate([north, (sign * north[..., :half])[..., ::-1]], axis=-1)
    return legendre_table(lmax, theta)


def _slope(lmax: int) -> Neighbors:
    """dP_lm/dtheta = (sqrt((l - m)(l + m + 1)) P_l,m+1 - sqrt((l + m)(l - m + 1)) P_l,m-1) / 2."""
    l, m = _degrees_and_orders(lmax)
    above = 0.5 * np.sqrt(np.maximum((l - m) * (l + m + 1), 0))
    below = -0.5 * np.sqrt(np.maximum((l + m) * (l - m + 1), 0))
    above[0] -= below[0]
    return Neighbors(above, np.where(m > 0, below, 0.0), down=0)


def _shear(lmax: int) -> Neighbors:
    """m P_lm / sin(theta), from the orders m + 1 and m - 1 of degree l - 1."""
    l, m = _degrees_and_orders(lmax)
    scale = -0.5 * np.sqrt((2 * l + 1) / np.maximum(2 * l - 1, 1)) * ((m > 0) & (m <= l))
    above = scale * np.sqrt(np.maximum((l - m) * (l - m - 1), 0))
    below = scale * np.sqrt(np.maximum((l + m) * (l + m - 1), 0))
    return Neighbors(above, below, down=1)


SCALAR = Basis(spin=0)
SLOPE = Basis(spin=1, neighbors=_slope)
SHEAR = Basis(spin=1, neighbors=_shear)


class Continuation(NamedTuple):
    """What integrates the samples of a grid with equal steps in theta, exactly up to grid.lmax.

    Continued over the poles to the full circle, they carry a trigonometric polynomial, whose
    integral against a basis is taken by a Gauss rule: exact to twice the degree that the grid's own
    weights allow. The matrices (nodes, rings) give the polynomial at the rule's nodes.
    """

    theta: NDArray[np.float64]
    weights: NDArray[np.float64]
    even: NDArray[np.float64]
    odd: NDArray[np.float64]
    polar: NDArray[np.float64]

    def matrix(self, m: int, spin: int) -> NDArray[np.float64]:
        """That of an order: even in theta or odd, and not 0 at the poles where m = spin."""
        return self.polar if m == spin else self.odd if (m + spin) % 2 else self.even


def continuation(grid: Grid, lmax: int) -> Continuation | None:
    """None for grids whose steps in theta are not equal."""
    samples = _equal_steps(grid)
    if samples is None:
        return None
    steps, shift = samples
    theta, weights = gauss((lmax + steps) // 2 + 1)
    cosines, sines = (_interpolation(theta, steps, shift, odd) for odd in (False, True))
    polar = cosines
    if shift == 0.0 and grid.nrings == steps:
        # The south pole is missing. Only order m = spin is not 0 there: its value is the one that
        # leaves cos(N theta) out.
        signs = np.where(np.arange(steps) % 2, -2.0, 2.0)
        signs[0] = 1.0
        polar = cosines[:, :-1] - (-1) ** steps * cosines[:, -1:] * signs
        cosines, sines = cosines[:, :-1], sines[:, :-1]
    return Continuation(theta, weights, cosines, sines, polar)


def continued_analysis(basis: Basis, grid: Grid, lmax: int) -> Table | None:
    """The analysis table of a grid with equal steps in theta; None for other grids."""
    step = continuation(grid, lmax)
    if step is None:
        return None
    nodes = basis.values(lmax, step.theta) * step.weights
    table = np.zeros((lmax + 1, lmax + 1, grid.nrings))
    for m in range(lmax + 1):
        np.matmul(nodes[m, m:], step.matrix(m, basis.spin), out=table[m, m:])
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
    return n[None, :], n[:, None]
