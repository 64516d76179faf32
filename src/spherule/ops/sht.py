"""Spherical harmonic transforms of scalar fields on every ring grid.

Longitudes by FFT, ring by ring; colatitudes next door. Coefficients are those of m >= 0 of a real
field: orthonormal, with the Condon-Shortley phase, `[..., l, m]`.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.geometry.transforms import SCALAR
from spherule.grids import Grid
from spherule.ops.checks import require_coeffs, require_degree, require_field
from spherule.ops.colatitudes import to_coeffs, to_rings
from spherule.ops.ring_groups import ring_groups
from spherule.ops.tables import table


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


def to_orders(u: Tensor, grid: Grid, mmax: int) -> Tensor:
    """Sums over each ring's points of u exp(-i m phi): (..., ring, order)."""
    flat = u.reshape(*u.shape[: u.ndim - len(grid.shape)], grid.size)
    if flat.numel() == 0:  # MKL's FFT refuses an empty batch
        return torch.complex(flat, flat)[..., :1, None].expand(
            *flat.shape[:-1], grid.nrings, mmax + 1
        )
    layout, spectra = ring_groups(grid, u.device), []
    for group in layout.groups:
        values = flat[..., group.points].unflatten(-1, (-1, group.nphi))
        half = torch.fft.rfft(values)
        if 2 * mmax <= group.nphi:
            spectra.append(half[..., : mmax + 1])
        else:
            alias = _aliases(group.nphi, mmax, u.device)
            spectrum = half[..., alias.place]
            spectra.append(torch.complex(spectrum.real, spectrum.imag * alias.sign))
    orders = _joined(spectra, -2)[..., layout.ring_order, :]
    phases = _phases(grid, mmax, orders.dtype, u.device)
    # Not a lazy conjugate: operators of compiled programs would take it for the thing itself.
    return orders if phases is None else orders * phases.conj_physical()


def to_points(orders: Tensor, grid: Grid) -> Tensor:
    """On each ring the real sum over all orders of F_m exp(i m phi), where F_-m is the conjugate of
    F_m.
    """
    mmax = orders.shape[-1] - 1
    phases = _phases(grid, mmax, orders.dtype, orders.device)
    orders = orders if phases is None else orders * phases
    if orders.numel() == 0:
        return (
            orders.real[..., :1, 0].expand(*orders.shape[:-2], grid.size).unflatten(-1, grid.shape)
        )
    layout, rings = ring_groups(grid, orders.device), []
    for group in layout.groups:
        spectrum = orders[..., group.rings, :]
        if 2 * mmax >= group.nphi:
            alias = _aliases(group.nphi, mmax, orders.device)
            spectrum = spectrum * alias.times
        if 2 * mmax > group.nphi:
            spectrum = torch.complex(spectrum.real, spectrum.imag * alias.sign)
            half = spectrum.new_zeros(*spectrum.shape[:-1], group.nphi // 2 + 1)
            spectrum = half.index_add(-1, alias.place, spectrum)
        values = torch.fft.irfft(spectrum, group.nphi, norm="forward")
        rings.append(values.flatten(-2))
    flat = _joined(rings, -1)[..., layout.point_order]
    return flat.reshape(*flat.shape[:-1], *grid.shape)


class _Aliases(NamedTuple):
    """Where orders are found in the half spectrum of a short ring."""

    place: Tensor
    sign: Tensor
    """-1 where it is the conjugate that stands there."""
    times: Tensor
    """2 where the half spectrum has no mirror image, so that order m has to bring -m along."""


@table(maxsize=4096)
def _aliases(nphi: int, mmax: int, device: torch.device) -> _Aliases:
    order = torch.arange(mmax + 1, device=device)
    place = order % nphi
    alone = (place == 0) | (2 * place == nphi)
    mirrored = 2 * place > nphi
    there = place.where(~mirrored, nphi - place)
    return _Aliases(there, 1 - 2 * mirrored.int(), 1 + (alone & (order > 0)))


@table(maxsize=64)
def _phases(grid: Grid, mmax: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """exp(i m phi0), (ring, order); None where all rings start at the meridian."""
    if not grid.phi0.any():
        return None
    return torch.tensor(
        np.exp(1j * np.outer(grid.phi0, np.arange(mmax + 1))), dtype=dtype, device=device
    )


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
