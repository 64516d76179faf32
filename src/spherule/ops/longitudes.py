"""Spherical harmonic transforms along the longitudes: fields to ring spectra (..., ring, order) and
back, by real FFTs.

Rings of equal length share an FFT. Where lengths differ, the native library folds all rings at once
(`ring_spectra`); elsewhere it is done here, length by length.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from spherule.grids import Grid
from spherule.ops import ring_spectra
from spherule.ops.ring_groups import ring_groups
from spherule.ops.ring_spectra import phases_of
from spherule.ops.tables import table


def to_orders(u: Tensor, grid: Grid, mmax: int) -> Tensor:
    """Sums over each ring's points of u exp(-i m phi): (..., ring, order)."""
    flat = u.reshape(*u.shape[: u.ndim - len(grid.shape)], grid.size)
    if flat.numel() == 0:  # MKL's FFT refuses an empty batch
        return torch.complex(flat, flat)[..., :1, None].expand(
            *flat.shape[:-1], grid.nrings, mmax + 1
        )
    if ring_spectra.preferred(grid, u):
        return ring_spectra.to_orders(flat, grid, mmax)
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
    phases = phases_of(grid, mmax, orders.dtype, u.device)
    # Not a lazy conjugate: operators of compiled programs would take it for the thing itself.
    return orders if phases is None else orders * phases.conj_physical()


def to_points(orders: Tensor, grid: Grid) -> Tensor:
    """On each ring the real sum over all orders of F_m exp(i m phi), where F_-m is the conjugate of
    F_m.
    """
    mmax = orders.shape[-1] - 1
    if ring_spectra.preferred(grid, orders):
        return ring_spectra.to_points(orders, grid)
    phases = phases_of(grid, mmax, orders.dtype, orders.device)
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


def _joined(parts: list[Tensor], dim: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim)
