"""Operators that are diagonal in degree: filters, the Laplacian, the power spectrum."""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from spherule import checks
from spherule.ops.checks import require_coeffs, require_floats, require_tensors


@checks.arguments
def spectral_filter(
    coeffs: Shaped[Tensor, "*batch degree order"], response: Float[Tensor, " degree"]
) -> Shaped[Tensor, "*batch degree order"]:
    """Each degree multiplied by its response: an isotropic convolution."""
    require_coeffs("coeffs", coeffs)
    require_tensors(coeffs=coeffs, response=response)
    require_floats(response=response)
    if response.shape != coeffs.shape[-1:]:
        raise ValueError(
            f"response: expected one number a degree, ({coeffs.shape[-1]},), got "
            f"{tuple(response.shape)}"
        )
    return coeffs * response.to(coeffs.real.dtype)[:, None]


@checks.arguments
def laplacian(
    coeffs: Shaped[Tensor, "*batch degree order"], *, radius: float = 1.0
) -> Shaped[Tensor, "*batch degree order"]:
    """Coefficients of the Laplacian on a sphere of this radius: -l (l + 1) / radius^2."""
    require_coeffs("coeffs", coeffs)
    checks.number("radius", radius, low=1e-100, high=1e100)
    return spectral_filter(coeffs, -_eigenvalues(coeffs) / radius**2)


@checks.arguments
def inverse_laplacian(
    coeffs: Shaped[Tensor, "*batch degree order"], *, radius: float = 1.0
) -> Shaped[Tensor, "*batch degree order"]:
    """The field of mean 0 whose Laplacian this is; the mean of the input has no say."""
    require_coeffs("coeffs", coeffs)
    checks.number("radius", radius, low=1e-100, high=1e100)
    eigenvalues = _eigenvalues(coeffs)
    response = torch.where(eigenvalues > 0, -(radius**2) / eigenvalues.clamp(min=1), 0.0)
    return spectral_filter(coeffs, response)


@checks.arguments
def power_spectrum(coeffs: Shaped[Tensor, "*batch degree order"]) -> Float[Tensor, "*batch degree"]:
    """C_l, the mean over the 2l + 1 orders of |coefficient|^2; the variance at a point is sum (2l +
    1) C_l / 4 pi.

    Args:
        coeffs: `[..., l, m >= 0]`, complex.

    >>> import torch, spherule as sph
    >>> coeffs = torch.zeros(3, 3, dtype=torch.complex128)
    >>> coeffs[2, 0] = 5
    >>> sph.ops.power_spectrum(coeffs).tolist()
    [0.0, 0.0, 5.0]
    """
    require_coeffs("coeffs", coeffs)
    power = coeffs.real**2 + coeffs.imag**2
    both_signs = 2 * power.sum(-1) - power[..., 0]
    return both_signs / (2 * _degrees(coeffs) + 1)


def _degrees(coeffs: Tensor) -> Tensor:
    return torch.arange(coeffs.shape[-1], dtype=coeffs.real.dtype, device=coeffs.device)


def _eigenvalues(coeffs: Tensor) -> Tensor:
    degrees = _degrees(coeffs)
    return degrees * (degrees + 1)
