"""Values from outside: ducc0, mpmath."""

import ducc0
import mpmath
import numpy as np
import torch

from spherule import Grid

REGULAR = ["gauss", "equiangular", "clenshaw_curtis", "fejer", "lobatto"]
SMALL_GRIDS = [
    "gauss:12x24",
    "gauss:12x25@0.25",
    "equiangular:12x24",
    "clenshaw_curtis:13x24",
    "fejer:12x23@0.5",
    "lobatto:13x24",
    "H1",
    "H3",
    "H4",
    "O6",
    "N32",
]


def random_coeffs(lmax: int, *batch: int, dtype: torch.dtype = torch.complex128) -> torch.Tensor:
    coeffs = torch.randn(*batch, lmax + 1, lmax + 1, dtype=dtype).tril()
    coeffs[..., 0] = coeffs[..., 0].real.to(dtype)
    return coeffs


def packed(coeffs: torch.Tensor) -> np.ndarray:
    """ducc0's layout: order by order."""
    return np.concatenate([coeffs[m:, m].numpy() for m in range(coeffs.shape[-1])])


def ducc_synthesis(coeffs: torch.Tensor, grid: Grid, spin: int = 0) -> np.ndarray:
    """Fields of one set of coefficients (spin 0) or a gradient and a curl part (spin 1)."""
    return ducc0.sht.synthesis(
        alm=np.stack([packed(c) for c in coeffs.reshape(-1, *coeffs.shape[-2:])]),
        theta=grid.theta,
        lmax=coeffs.shape[-1] - 1,
        nphi=grid.nphi.astype(np.uint64),
        phi0=grid.phi0,
        ringstart=grid.ringstart.astype(np.uint64),
        spin=spin,
        nthreads=1,
    ).reshape(-1, *grid.shape)


def legendre_exact(l: int, m: int, theta: float) -> float:
    """P_lm(theta), orthonormal with the Condon-Shortley phase, from Jacobi's finite sum in many
    digits.
    """
    with mpmath.workdps(80 + l):
        t = mpmath.mpf(theta)
        s, n = mpmath.sin(t / 2) ** 2, l - m
        total = mpmath.fsum(
            (-1) ** k
            * mpmath.binomial(l, n - k)
            * mpmath.binomial(l, k)
            * s**k
            * (1 - s) ** (n - k)
            for k in range(n + 1)
        )
        scale = mpmath.sqrt(
            (2 * l + 1) / (4 * mpmath.pi) * mpmath.factorial(n) * mpmath.factorial(l + m)
        )
        return float(
            (-1) ** m
            * scale
            * mpmath.sin(t) ** m
            * total
            / (mpmath.mpf(2) ** m * mpmath.factorial(l))
        )
