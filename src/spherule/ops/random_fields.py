"""Gaussian random fields with a given spectrum."""

import math

import torch
from jaxtyping import Complex, Float, Shaped
from torch import Tensor

from spherule import checks
from spherule.grids import Grid
from spherule.ops.checks import require_floats
from spherule.ops.sht import isht


@checks.arguments
def matern_spectrum(
    lmax: int, *, length: float, smoothness: float = 1.5, std: float = 1.0
) -> Float[Tensor, " degree"]:
    """C_l of a Matérn-like field: (l (l + 1) + 1 / length^2)^-(smoothness + 1), scaled to this
    standard deviation at a point.

    `length` is the correlation length in radians; degree 0 is left out, so fields have mean 0.
    """
    checks.integer("lmax", lmax, low=1)
    checks.number("length", length, low=1e-100)
    checks.number("smoothness", smoothness, above=-1)
    checks.number("std", std, low=0, high=1e100)
    degree = torch.arange(lmax + 1, dtype=torch.float64)
    spectrum = (degree * (degree + 1) + length**-2) ** -(smoothness + 1)
    spectrum[0] = 0
    spectrum = spectrum * std**2 / point_variance(spectrum)
    if not spectrum.isfinite().all():
        raise ValueError(
            f"length={length:g}, smoothness={smoothness:g}, std={std:g}: their spectrum must be "
            "finite, and is not"
        )
    return spectrum


@checks.arguments
def point_variance(spectrum: Float[Tensor, " degree"]) -> Float[Tensor, ""]:
    """The variance of the field at every point: sum (2l + 1) C_l / 4 pi."""
    _require_spectrum(spectrum)
    degree = torch.arange(spectrum.shape[0], dtype=spectrum.dtype, device=spectrum.device)
    return ((2 * degree + 1) * spectrum).sum() / (4 * math.pi)


@checks.arguments
def random_coeffs(
    spectrum: Float[Tensor, " degree"],
    shape: tuple[int, ...] = (),
    *,
    generator: torch.Generator | None = None,
) -> Complex[Tensor, "*shape degree order"]:
    """Independent Gaussian coefficients with E|a_lm|^2 = C_l, in the spectrum's precision and on
    its device.
    """
    _require_spectrum(spectrum)
    for i, size in enumerate(shape):
        checks.integer(f"shape[{i}]", size, low=0)
    if not bool((spectrum >= 0).all()):
        raise ValueError("spectrum: C_l must be >= 0")
    n = spectrum.shape[0]
    normal = torch.randn(
        *shape, n, n, 2, generator=generator, dtype=spectrum.dtype, device=spectrum.device
    )
    # A real coefficient at m = 0; the others share their power between two parts.
    scale = torch.full((n, 2), math.sqrt(0.5), dtype=spectrum.dtype, device=spectrum.device)
    scale[0] = torch.tensor([1.0, 0.0], dtype=spectrum.dtype)
    return torch.view_as_complex(normal * scale).tril() * spectrum.sqrt()[:, None]


@checks.arguments
def random_field(
    spectrum: Float[Tensor, " degree"],
    grid: Grid,
    shape: tuple[int, ...] = (),
    *,
    generator: torch.Generator | None = None,
) -> Shaped[Tensor, "..."]:
    """Fields `(*shape, *grid.shape)` with this spectrum.

    They are drawn as coefficients: the same generator state gives the same field on every grid, and
    the variance at a point is `point_variance(spectrum)` at every resolution.

    Args:
        spectrum: C_l for l = 0, 1, ..., such as `matern_spectrum` gives.
        grid: where fields are wanted.
        shape: how many.
        generator: of random numbers, by default torch's own.

    >>> import spherule as sph
    >>> spectrum = sph.ops.matern_spectrum(10, length=0.3)
    >>> tuple(sph.ops.random_field(spectrum, sph.Grid.healpix(4), (2, 3)).shape)
    (2, 3, 192)
    """
    return isht(random_coeffs(spectrum, shape, generator=generator), grid)


def _require_spectrum(spectrum: Tensor) -> None:
    require_floats(spectrum=spectrum)
    if spectrum.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"spectrum: expected float32 or float64, got {spectrum.dtype}")
    if spectrum.ndim != 1 or spectrum.shape[0] == 0:
        raise ValueError(f"spectrum: expected C_l, one float a degree, got {tuple(spectrum.shape)}")
