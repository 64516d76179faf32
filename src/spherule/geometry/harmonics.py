"""Associated Legendre functions and spherical harmonics: orthonormal, with the Condon-Shortley
phase.

Y_lm(theta, phi) = P_lm(theta) exp(i m phi),    P_lm = sqrt((2l + 1) / 4pi (l - m)! / (l + m)!)
P_l^m(cos theta)
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spherule.grids import Grid

# Values run as p 2^(_STEP e) with e <= 0: sin(theta)^m underflows near the poles long before P_lm
# grows back with l.
_STEP = 800
_BIG = 2.0 ** (_STEP // 2)


def legendre_rows(lmax: int, theta: ArrayLike) -> Iterator[NDArray[np.float64]]:
    """For l = 0 ... lmax the values P_lm(theta), m = 0 ... l, each (orders, *theta.shape).

    One upward recurrence in l for all orders and angles at once, stable beyond degree 2048. With
    R_l = P_l^m scaled to 1 at the pole and y = 1 - cos(theta), the three-term recurrence is one of
    differences, (l + m) (R_l - R_{l-1}) = (l - m - 1) (R_{l-1} - R_{l-2}) - (2l - 1) y R_{l-1}: it
    does not see the rounding of cos(theta) near 1.
    """
    theta = np.asarray(theta, dtype=np.float64)
    south = theta > np.pi / 2
    y = 2 * np.sin(np.where(south, np.pi - theta, theta) / 2) ** 2
    sin = np.sin(theta)
    p = np.full((1, *theta.shape), math.sqrt(0.25 / math.pi))
    d = np.zeros_like(p)
    e = np.zeros(p.shape, dtype=np.int32)
    yield p
    for l in range(1, lmax + 1):
        m = np.arange(p.shape[0], dtype=np.float64).reshape(-1, *[1] * theta.ndim)
        growth = np.sqrt((2 * l + 1) / (2 * l - 1) * (l + m) / (l - m))
        diagonal = -math.sqrt((2 * l + 1) / (2 * l)) * sin * p[-1:]
        d = growth / (l + m) * ((l - m - 1) * d - (2 * l - 1) * y * p)
        p = growth * p + d
        p = np.concatenate([p, diagonal])
        d = np.concatenate([d, np.zeros_like(diagonal)])
        e = np.concatenate([e, e[-1:]])
        if l % 8 == 0:  # no value leaves the range of float64 in eight steps
            p, d, e = _rescaled(p, d, e)
        odd = (np.arange(p.shape[0]) + l).reshape(-1, *[1] * theta.ndim) % 2 == 1
        yield np.where(e == 0, np.where(south & odd, -p, p), 0.0)


def legendre_table(lmax: int, theta: ArrayLike) -> NDArray[np.float64]:
    """P_lm(theta) as (m, l, *theta.shape) with zeros where m > l: the layout that transforms
    contract over.
    """
    theta = np.asarray(theta, dtype=np.float64)
    table = np.zeros((lmax + 1, lmax + 1, *theta.shape))
    for l, row in enumerate(legendre_rows(lmax, theta)):
        table[: l + 1, l] = row
    return table


def real_harmonics(count: int, grid: Grid) -> NDArray[np.float64]:
    """The first real, orthonormal harmonics at a grid's points, (count, size), degree by degree
    from m = -l to l: number k has l = floor(sqrt k) and m = k - l (l + 1).

    Cosines sqrt(2) (-1)^m Re Y_lm for m > 0, sines sqrt(2) (-1)^m Im Y_l|m| for m < 0.
    """
    lmax = math.isqrt(max(count - 1, 0))
    # One line of longitudes serves a regular grid.
    shape = grid.shape if grid.regular else (1, grid.size)
    phi = grid.point_phi.reshape(shape)[:1]
    waves = {m: np.cos(m * phi) if m >= 0 else np.sin(-m * phi) for m in range(-lmax, lmax + 1)}
    table = np.empty((count, *shape))
    for l, row in enumerate(legendre_rows(lmax, grid.theta)):
        p = row[..., None] if grid.regular else np.repeat(row, grid.nphi, axis=-1)
        for m in range(-l, min(l + 1, count - l * (l + 1))):
            scale = 1.0 if m == 0 else math.sqrt(2) * (-1) ** m
            np.multiply(scale * p[abs(m)], waves[m], out=table[l * (l + 1) + m])
    return table.reshape(count, grid.size)


def _rescaled(p: NDArray, d: NDArray, e: NDArray) -> tuple[NDArray, NDArray, NDArray]:
    """Bring values out of range back, a value and its difference with one exponent."""
    size = np.maximum(np.abs(p), np.abs(d))
    shift = ((size > _BIG) & (e < 0)).astype(np.int32) - ((size < 1 / _BIG) & (size > 0))
    if shift.any():
        factor = np.ldexp(1.0, -_STEP * shift)
        p, d, e = p * factor, d * factor, e + shift
    return p, d, e
