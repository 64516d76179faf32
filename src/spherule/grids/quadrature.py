"""One-dimensional quadrature rules on [0, pi] with the measure sin(theta) dtheta.

Each rule returns colatitudes and weights, north to south, in float64: sum(weights * f(theta))
approximates the integral of f(theta) sin(theta), so the weights sum to 2.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Rule: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


@lru_cache(maxsize=32)
def gauss(n: int) -> Rule:
    """Gauss-Legendre: roots of P_n, exact for polynomials in cos(theta) of degree 2n - 1."""

    def newton_step(theta: NDArray) -> tuple[NDArray, NDArray]:
        p, dp = _legendre(n, theta)
        return p / dp, dp

    k = np.arange(1, n // 2 + 1, dtype=np.longdouble)
    theta, dp = _newton((4 * k - 1) * _PI / (4 * n + 2), newton_step)
    equator = 2 / _legendre(n, np.array([_PI / 2]))[1] ** 2 if n % 2 else None
    return _mirrored(theta, 2 / dp**2, equator)


@lru_cache(maxsize=32)
def lobatto(n: int) -> Rule:
    """Gauss-Lobatto: both poles and the roots of P'_{n-1}, exact up to degree 2n - 3."""

    def newton_step(theta: NDArray) -> tuple[NDArray, NDArray]:
        p, dp = _legendre(n - 1, theta)
        # Legendre's equation gives the second derivative.
        return dp / (-dp * np.cos(theta) / np.sin(theta) - n * (n - 1) * p), p

    k = np.arange(1, n // 2, dtype=np.longdouble)
    theta, p = _newton((4 * k + 1) * _PI / (4 * n - 2), newton_step)
    one = np.ones(1, dtype=np.longdouble)
    theta, p = np.concatenate([0 * one, theta]), np.concatenate([one, p])
    scale = np.longdouble(2) / (n * (n - 1))
    equator = scale / _legendre(n - 1, np.array([_PI / 2]))[0] ** 2 if n % 2 else None
    return _mirrored(theta, scale / p**2, equator)


def clenshaw_curtis(n: int) -> Rule:
    """Equal steps from pole to pole, exact up to degree n - 1 (n when n is odd)."""
    theta = np.arange(n) * np.pi / (n - 1)
    # The integral of the cosine interpolant; the samples at the poles count once on the circle, the
    # others twice.
    weights = 4 * np.fft.irfft(_cosine_moments(n), 2 * (n - 1))[:n]
    weights[[0, -1]] /= 2
    return theta, _symmetric(weights)


def fejer(n: int) -> Rule:
    """Fejér's first rule: centers of equal cells in theta, exact up to degree n - 1 (n when n is
    odd).
    """
    theta = (np.arange(n) + 0.5) * np.pi / n
    moments = np.append(_cosine_moments(n), 0.0)
    shift = np.exp(0.5j * np.pi * np.arange(n + 1) / n)
    return theta, _symmetric(4 * np.fft.irfft(moments * shift, 2 * n)[:n])


def equiangular(n: int) -> Rule:
    """The paper's rule: theta_i = pi i / n with weights (pi / n) sin(theta_i). Its area is pi / n
    cot(pi / 2n), not 2.
    """
    theta = np.arange(n) * np.pi / n
    return theta, np.pi / n * np.sin(theta)


# Extended precision where the platform has it; double elsewhere costs a digit.
_PI = np.longdouble("3.14159265358979323846264338327950288")


def _legendre(n: int, theta: NDArray) -> tuple[NDArray, NDArray]:
    """P_n(cos theta) and its derivative in theta, by differences in 1 - cos(theta), which stay
    accurate near the pole.
    """
    y = 2 * np.sin(theta / 2) ** 2
    p, difference = np.ones_like(theta), np.zeros_like(theta)
    for k in range(n):
        difference = (k * difference - (2 * k + 1) * y * p) / (k + 1)
        p = p + difference
    # With d = P_n - P_{n-1}: (1 - x^2) P_n' = n (P_{n-1} - x P_n) = n (y P_n - d).
    return p, -n * (y * p - difference) / np.sin(theta)


def _newton(
    theta: NDArray, step: Callable[[NDArray], tuple[NDArray, NDArray]]
) -> tuple[NDArray, NDArray]:
    """The root from a close guess, and the step's second value there."""
    for _ in range(6):
        change, _ = step(theta)
        theta = theta - change
        if np.all(np.abs(change) <= 4 * np.finfo(theta.dtype).eps * theta):
            break
    return theta, step(theta)[1]


def _mirrored(theta: NDArray, weights: NDArray, equator: NDArray | None) -> Rule:
    """The whole rule from its northern half (and the equator's weight, for odd n): exactly
    symmetric, and not to be written to, since it is kept for the next grid.
    """
    middle = [] if equator is None else [equator]
    center = [] if equator is None else [np.array([_PI / 2])]
    full_theta = np.concatenate([theta, *center, (_PI - theta)[::-1]]).astype(np.float64)
    full_weights = np.concatenate([weights, *middle, weights[::-1]]).astype(np.float64)
    full_theta.setflags(write=False)
    full_weights.setflags(write=False)
    return full_theta, full_weights


def _cosine_moments(n: int) -> NDArray:
    """The integrals of cos(k theta) sin(theta) for k < n, halved: 1 / (1 - k^2) for even k, 0 for
    odd.
    """
    k = np.arange(n)
    return np.where(k % 2, 0.0, 1.0 / np.where(k % 2, 1.0, 1.0 - k**2.0))


def _symmetric(weights: NDArray) -> NDArray:
    return (weights + weights[::-1]) / 2
