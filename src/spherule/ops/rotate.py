"""Rotations of spherical harmonic coefficients, without interpolation."""

from collections.abc import Iterator

import numpy as np
import torch
from jaxtyping import Shaped
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from spherule import checks
from spherule.geometry.rotations import about_z, rotation_matrix
from spherule.ops.checks import require_coeffs


@checks.arguments
def rotate(
    coeffs: Shaped[Tensor, "*batch degree order"], R: ArrayLike | Tensor
) -> Shaped[Tensor, "*batch degree order"]:
    """Coefficients of the rotated field f'(x) = f(R^-1 x).

    Degrees do not mix: each is multiplied by its Wigner matrix, exp(-i m alpha) d_mn(beta) exp(-i n
    gamma).

    Args:
        coeffs: `[..., l, m >= 0]`, complex.
        R: a rotation matrix, (3, 3).

    >>> import torch, spherule as sph
    >>> z = torch.zeros(2, 2, dtype=torch.complex128)
    >>> z[1, 0] = 1  # the field cos(theta), but for a factor
    >>> upside_down = [[1, 0, 0], [0, -1, 0], [0, 0, -1]]
    >>> round(sph.ops.rotate(z, upside_down)[1, 0].real.item(), 6)
    -1.0
    """
    require_coeffs("coeffs", coeffs)
    matrix = R.detach().cpu().numpy() if isinstance(R, Tensor) else R
    alpha, beta, gamma = _euler_angles(rotation_matrix("R", matrix))
    lmax = coeffs.shape[-1] - 1
    order = np.arange(lmax + 1)
    first, last = (
        torch.tensor(np.exp(-1j * order * angle), dtype=coeffs.dtype, device=coeffs.device)
        for angle in (gamma, alpha)
    )
    turned = coeffs * first
    sign = torch.tensor((-1.0) ** order, device=coeffs.device, dtype=coeffs.real.dtype)
    degrees = []
    for l, d in enumerate(_wigner(lmax, beta)):
        positive = turned[..., l, : l + 1]
        negative = (sign[1 : l + 1] * positive[..., 1:].conj()).flip(-1)
        wigner = torch.tensor(d[l:], dtype=coeffs.dtype, device=coeffs.device)
        row = torch.cat([negative, positive], dim=-1) @ wigner.T
        degrees.append(torch.nn.functional.pad(row, (0, lmax - l)))
    return torch.stack(degrees, dim=-2) * last


def _euler_angles(R: NDArray[np.float64]) -> tuple[float, float, float]:
    """alpha, beta, gamma of R = Rz(alpha) Ry(beta) Rz(gamma)."""
    gamma = np.arctan2(R[2, 1], -R[2, 0])
    # alpha from what remains when gamma is undone: near the poles only their sum is determined, and
    # this keeps it.
    rest = R @ about_z(gamma).T
    alpha = np.arctan2(-rest[0, 1], rest[1, 1])
    beta = np.arctan2(np.hypot(R[0, 2], R[1, 2]), R[2, 2])
    return float(alpha), float(beta), float(gamma)


def _wigner(lmax: int, beta: float) -> Iterator[NDArray[np.float64]]:
    """d^l(beta) for l = 0 ... lmax, rows and columns m = -l ... l.

    Each spin comes from the one before by coupling with spin 1/2 (Risbo's recurrence), two half
    steps a degree.
    """
    cos, sin = np.cos(beta / 2), np.sin(beta / 2)
    d = np.ones((1, 1))
    yield d
    for n in range(1, 2 * lmax + 1):  # n = 2 j
        up = np.sqrt(np.arange(1, n + 1) / n)
        down = up[::-1]
        larger = np.zeros((n + 1, n + 1))
        larger[:-1, :-1] += cos * np.outer(down, down) * d
        larger[1:, 1:] += cos * np.outer(up, up) * d
        larger[:-1, 1:] += sin * np.outer(down, up) * d
        larger[1:, :-1] -= sin * np.outer(up, down) * d
        d = larger
        if n % 2 == 0:
            yield d
