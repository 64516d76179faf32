"""The transforms of a spectral model with quadratic terms: alias-free, and matrix products only.

Fields of degree <= lmax have products of degree <= 2 lmax, whose coefficients up to lmax are exact
when the grid integrates degree 3 lmax: (3 lmax + 2) // 2 Gauss rings of at least 3 lmax + 1 points.

Longitudes go by dense matrices of cosines and sines: at these sizes that is as fast as an FFT, and
the results land in the order in which the sums over degrees want them, so nothing is transposed:

    spectra (order, part, ..., degree)  <->  ring spectra (order, part, ..., ring)
                                        <->  points (side, longitude, ..., ring)

where part is real or imaginary, "..." are fields and batch, and the sides are east and west of the
meridian: cosines are the same on both and sines opposite, which halves the work.
"""

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule.geometry.transforms import SCALAR, SHEAR, SLOPE
from spherule.grids import Grid


class QuadraticTransform:
    """Scalars and winds to points, and products of them back, on a sphere of this radius."""

    def __init__(
        self, lmax: int, *, radius: float, dtype: torch.dtype, device: torch.device | str
    ) -> None:
        self.grid = Grid.gauss((3 * lmax + 2) // 2, 3 * lmax + 1 + (lmax + 1) % 2, offset=0.5)
        self.lmax = lmax

        def table(array: NDArray[np.float64]) -> Tensor:
            return torch.tensor(array, dtype=dtype, device=device)

        degree = np.arange(lmax + 1.0)
        eigenvalue = degree * (degree + 1)
        potential = -radius / np.maximum(eigenvalue, 1)
        theta, weights = self.grid.theta, self.grid.ring_weights
        scalar, slope, shear = (b.values(lmax, theta) for b in (SCALAR, SLOPE, SHEAR))
        vector = np.concatenate([slope, shear], axis=1)
        self._scalar = table(scalar)
        self._wind = table(vector * np.tile(potential, 2)[:, None])
        self._analysis = table((scalar * weights).swapaxes(1, 2))
        self._vector_analysis = table((vector * weights / radius).swapaxes(1, 2))
        # Longitudes (j + 1/2) of nphi, their angles reduced as integers before they are rounded.
        nphi = self.grid.shape[1]
        turns = np.outer(2 * np.arange(nphi // 2) + 1, np.arange(lmax + 1)) % (2 * nphi)
        angle = math.pi / nphi * turns
        both_signs = np.where(degree > 0, 2.0, 1.0)
        self._cosines, self._sines = table(np.cos(angle)), table(np.sin(angle))
        self._both_cosines = table(both_signs * np.cos(angle))
        self._both_sines = table(-both_signs * np.sin(angle))

    def scalars(self, spectra: Tensor) -> Tensor:
        """Values at the points."""
        return self._points(self._sum(spectra, self._scalar))

    def wind(self, vorticity: Tensor, divergence: Tensor) -> Tensor:
        """East and north at the points, (side, longitude, 2, ..., ring); see `ops.vector`."""
        (vr, vi), (dr, di) = vorticity.unbind(1), divergence.unbind(1)
        slope = torch.stack([vr, -dr, vi, -di], dim=1)
        shear = torch.stack([-di, -vi, dr, vr], dim=1)
        both = torch.cat([slope, shear], dim=-1).unflatten(1, (2, 2))
        return self._points(self._sum(both, self._wind))

    def coeffs(self, values: Tensor) -> Tensor:
        """Spectra of scalars at the points."""
        return self._sum(self._orders(values), self._analysis)

    def divergence_curl(self, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Spectra of the divergence of vectors (side, longitude, field, 2, batch, ring), and of
        the curl of the last of them.
        """
        both = self._sum(self._orders(vectors), self._vector_analysis)
        slope, shear = both.tensor_split(2, dim=-1)
        divergence = _times_i(shear[:, :, :, 0]) + slope[:, :, :, 1]
        curl = _times_i(shear[:, :, -1, 1]) - slope[:, :, -1, 0]
        return divergence, curl

    def _points(self, rings: Tensor) -> Tensor:
        """The real sum over all orders, where that of -m is the conjugate of that of m."""
        real, imag = rings.unbind(1)
        even = self._both_cosines @ real.flatten(1)
        odd = self._both_sines @ imag.flatten(1)
        return torch.stack([even + odd, even - odd]).unflatten(2, real.shape[1:])

    def _orders(self, values: Tensor) -> Tensor:
        """Sums over the points of a ring."""
        east, west = values.flatten(2).unbind(0)
        real = self._cosines.mT @ (east + west)
        imag = self._sines.mT @ (west - east)
        return torch.stack([real, imag], dim=1).unflatten(2, values.shape[2:])

    @staticmethod
    def _sum(x: Tensor, table: Tensor) -> Tensor:
        """sum over j of x[m, ..., j] table[m, j, i]."""
        return torch.bmm(x.flatten(1, -2), table).unflatten(1, x.shape[1:-1])


def pack(coeffs: Tensor) -> Tensor:
    """Complex (batch, field, degree, order) to spectra (order, part, field, batch, degree)."""
    return torch.view_as_real(coeffs).permute(3, 4, 1, 0, 2).contiguous()


def unpack(spectra: Tensor) -> Tensor:
    """Spectra (order, part, field, batch, degree) to complex (batch, field, degree, order)."""
    return torch.view_as_complex(spectra.permute(3, 2, 4, 0, 1).contiguous())


def _times_i(x: Tensor) -> Tensor:
    return torch.stack([-x[:, 1], x[:, 0]], dim=1)
