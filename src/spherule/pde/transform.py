"""The transforms of a spectral model with quadratic terms: alias-free, and matrix products only.

Fields of degree <= lmax have products of degree <= 2 lmax, whose coefficients up to lmax are exact
when the grid integrates degree 3 lmax: (3 lmax + 2) // 2 Gauss rings of at least 3 lmax + 1 points,
an even number of rings and a multiple of four points.

Longitudes go by dense matrices of cosines and sines: at these sizes that is as fast as an FFT, and
the results land in the order in which the sums over degrees want them, so nothing is transposed:

    spectra (order, part, ..., degree)  <->  ring spectra (order, part, ..., ring)
                                        <->  points (side, longitude, ..., ring)

where part is real or imaginary, "..." are fields and batch (on the way back fields come before
parts, because the sums want pieces of them), and the sides are east and west of the
meridian: cosines are the same on both and sines opposite, which halves the work.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule.geometry.transforms import SCALAR, SHEAR, SLOPE
from spherule.grids import Grid


def quadratic_grid(lmax: int) -> Grid:
    """Where products of two fields are made; no point lies on the meridian."""
    nlat, nlon = (3 * lmax + 2) // 2, 3 * lmax + 1
    return Grid.gauss(nlat + nlat % 2, nlon + -nlon % 4, offset=0.5)


class QuadraticTransform:
    """Scalars and winds to points, and products of them back, on a sphere of this radius."""

    def __init__(
        self, lmax: int, *, radius: float, dtype: torch.dtype, device: torch.device | str
    ) -> None:
        self.grid = quadratic_grid(lmax)
        self.lmax = lmax

        def table(array: NDArray[np.float64]) -> Tensor:
            return torch.tensor(array, dtype=dtype, device=device)

        # glibc hands large blocks back to the system, and each step would fault its pages in again:
        # a quarter of the time. Freeing a block just below 32 MB, never touched, makes it keep
        # them.
        torch.empty(31 * 2**20, dtype=torch.uint8, device="cpu")
        degree = np.arange(lmax + 1.0)
        eigenvalue = degree * (degree + 1)
        potential = -radius / np.maximum(eigenvalue, 1)
        theta, weights = self.grid.theta, self.grid.ring_weights
        scalar, slope, shear = (b.values(lmax, theta) for b in (SCALAR, SLOPE, SHEAR))
        self._scalar = table(scalar)
        self._wind_slope, self._wind_shear = (table(t * potential[:, None]) for t in (slope, shear))
        self._analysis, self._slope, self._shear = (
            table((t * weights).swapaxes(1, 2)) for t in (scalar, slope / radius, shear / radius)
        )
        # Longitudes (j + 1/2) of nphi, their angles reduced as integers before they are rounded.
        nphi = self.grid.shape[1]
        turns = np.outer(2 * np.arange(nphi // 2) + 1, np.arange(lmax + 1)) % (2 * nphi)
        angle = math.pi / nphi * turns
        both_signs = np.where(degree > 0, 2.0, 1.0)
        self._cosines, self._sines = table(np.cos(angle).T), table(np.sin(angle).T)
        self._both_cosines = table(both_signs * np.cos(angle))
        self._both_sines = table(-both_signs * np.sin(angle))

    def scalars(self, spectra: Tensor) -> Tensor:
        """Values at the points."""
        return self._points(self._sum(spectra, self._scalar))

    def wind(self, vorticity: Tensor, divergence: Tensor) -> Tensor:
        """East and north at the points, (side, longitude, 2, ..., ring); see `ops.vector`."""
        (vr, vi), (dr, di) = vorticity.unbind(1), divergence.unbind(1)
        slope = torch.stack([vr, -dr, vi, -di], dim=1).flatten(1, 2)
        shear = torch.stack([-di, -vi, dr, vr], dim=1).flatten(1, 2)
        rings = torch.baddbmm(torch.bmm(slope, self._wind_slope), shear, self._wind_shear)
        return self._points(rings.unflatten(1, (2, 2, -1)))

    def coeffs(self, values: Tensor) -> Tensor:
        """Spectra of scalars (side, longitude, field, batch, ring)."""
        return self._sum(self._orders(values), self._analysis)

    def tendencies(self, scalars: Tensor, wind: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Spectra of -div(a V), -div(b V) and curl(b V), of two scalars and a wind."""
        east, north = wind.unbind(2)
        # In this order what meets the slopes is one piece, and so is what meets the shears.
        fluxes = torch.cat([scalars * east[:, :, None], scalars.flip(2) * north[:, :, None]], dim=2)
        rings = self._orders(fluxes)  # a east, b east, b north, a north
        slope = self._sum(rings[:, 1:], self._slope)
        shear = self._sum(rings[:, :3], self._shear)
        turned = torch.stack([shear[:, :, 1], -shear[:, :, 0]], dim=2)  # times -i
        return (
            turned[:, 0] - slope[:, 2],
            turned[:, 1] - slope[:, 1],
            -turned[:, 2] - slope[:, 0],
        )

    def _points(self, rings: Tensor) -> Tensor:
        """The real sum over all orders, where that of -m is the conjugate of that of m."""
        real, imag = rings.unbind(1)
        even = self._both_cosines @ real.flatten(1)
        odd = self._both_sines @ imag.flatten(1)
        return torch.stack([even + odd, even - odd]).unflatten(2, real.shape[1:])

    def _orders(self, values: Tensor) -> Tensor:
        """Sums over the points of a ring: (order, field, part, ..., ring)."""
        east, west = values.flatten(2).unbind(0)
        real = (self._cosines @ (east + west)).unflatten(1, values.shape[2:])
        imag = (self._sines @ (west - east)).unflatten(1, values.shape[2:])
        return torch.stack([real, imag], dim=2)

    @staticmethod
    def _sum(x: Tensor, table: Tensor) -> Tensor:
        """sum over j of x[m, ..., j] table[m, j, i]."""
        return torch.bmm(x.flatten(1, -2), table).unflatten(1, x.shape[1:-1])


def pack(coeffs: Tensor) -> Tensor:
    """Complex (batch, field, degree, order) to spectra (order, part, field, batch, degree)."""
    return torch.view_as_real(coeffs.resolve_conj()).permute(3, 4, 1, 0, 2).contiguous()


def unpack(spectra: Tensor) -> Tensor:
    """Spectra (order, part, field, batch, degree) to complex (batch, field, degree, order)."""
    return torch.view_as_complex(spectra.permute(3, 2, 4, 0, 1).contiguous())
