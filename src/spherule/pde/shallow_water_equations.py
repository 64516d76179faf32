"""The rotating shallow water equations in spectral space.

With V the wind, Phi = g h the geopotential of the fluid's depth and Phi_s that of the ground,

    d vorticity / dt    = -div((vorticity + f) V)
    d divergence / dt   =  curl((vorticity + f) V) - laplacian(Phi + Phi_s + |V|^2 / 2)
    d geopotential / dt = -div(Phi V)
"""

import math
from functools import cached_property, partial

import torch
from torch import Tensor

from spherule import ops
from spherule.pde.integrators import Equation
from spherule.pde.native_quadratic import NativeQuadratic, preferred
from spherule.pde.planet import Planet
from spherule.pde.transform import QuadraticTransform, pack, quadratic_grid, unpack


class ShallowWaterEquations:
    """For spectra as `transform.pack` makes them, (order, part, field, batch, degree), with the
    mean geopotential (batch, 1) apart: it never changes, and out of the transforms it takes no
    digits from the rest.
    """

    def __init__(
        self,
        lmax: int,
        *,
        planet: Planet,
        topography: Tensor | None,
        damping_time: float | None,
        damping_power: int,
        tilt: float,
        dtype: torch.dtype,
        device: torch.device | str,
    ) -> None:
        self.lmax, self.planet = lmax, planet
        degree = torch.arange(lmax + 1, dtype=torch.float64)
        eigenvalue = degree * (degree + 1)
        self._minus_laplacian = (eigenvalue / planet.radius**2).to(device, dtype)
        self._coriolis = pack(_coriolis(lmax, planet, tilt)[None, None]).to(device, dtype)
        self._ground: Tensor | None = None
        if topography is not None:
            self._ground = pack(topography[None, None].to(device, dtype.to_complex()))[:, :, 0]
        self.damping: Tensor | None = None
        if damping_time is not None:
            rate = (eigenvalue / eigenvalue[-1]) ** damping_power / damping_time
            # Mass is left alone.
            fields = torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64)
            self.damping = (fields[:, None, None] * rate).to(device, dtype)

    def around(self, mean: Tensor) -> Equation:
        """What an integrator takes: the equations of states with this mean geopotential."""
        return Equation(partial(self.tendency, mean=mean), self.damping)

    def tendency(self, y: Tensor, mean: Tensor) -> Tensor:
        geopotential, _, divergence = y.unbind(2)
        head = geopotential if self._ground is None else geopotential + self._ground
        tendency = self._native(y) if preferred(y) else self._quadratic(y)
        tendency[:, :, 0].addcmul_(mean, divergence, value=-1)
        tendency[:, :, 2].addcmul_(self._minus_laplacian, head)
        return tendency

    def _quadratic(self, y: Tensor) -> Tensor:
        """What `NativeQuadratic` does, as products of torch's."""
        geopotential, vorticity, divergence = y.unbind(2)
        wind = self._transform.wind(vorticity, divergence)
        # Geopotential without its mean, and absolute vorticity.
        scalars = self._transform.scalars(
            torch.stack([geopotential, vorticity + self._coriolis[:, :, 0]], dim=2)
        )
        inflow, stretching, spin = self._transform.tendencies(scalars, wind)
        east, north = wind.unbind(2)
        twice_kinetic = self._transform.coeffs(torch.addcmul(east * east, north, north)[:, :, None])
        spin = torch.addcmul(spin, self._minus_laplacian, twice_kinetic[:, 0], value=0.5)
        return torch.stack([inflow, stretching, spin], dim=2)

    # The tables of either are the larger part of a solver: only those that are used are made.
    @cached_property
    def _transform(self) -> QuadraticTransform:
        dtype, device = self._coriolis.dtype, self._coriolis.device
        with torch.inference_mode(False):  # gradients may be wanted later
            return QuadraticTransform(
                self.lmax, radius=self.planet.radius, dtype=dtype, device=device
            )

    @cached_property
    def _native(self) -> NativeQuadratic:
        coriolis = self._coriolis[:, :, 0, 0]
        return NativeQuadratic(self.lmax, radius=self.planet.radius, coriolis=coriolis)

    def energy(self, y: Tensor, mean: Tensor) -> Tensor:
        """The mean of Phi |V|^2 + (Phi - mean + Phi_s)^2 at mean depth, one number a state."""
        y = y.detach()
        head, vorticity, divergence = y.unbind(2)
        if self._ground is not None:
            head = head + self._ground
        speed = (vorticity**2 + divergence**2) / self._minus_laplacian.clamp(min=1e-30)
        power = (mean * speed + head**2).sum((1, 3))
        return (2 * power.sum(0) - power[0]) / (4 * math.pi)

    def frequency(self, mean: Tensor) -> float:
        """Of the fastest inertia-gravity wave, 1 / s."""
        wave = float(self._minus_laplacian[-1]) * float(mean.detach().max())
        return math.sqrt(wave + 4 * self.planet.omega**2)

    def least_geopotential(self, y: Tensor, mean: Tensor) -> Tensor:
        """Of each state, anywhere on the sphere."""
        geopotential = unpack(y.detach()[:, :, :1])
        return ops.isht(geopotential, quadratic_grid(self.lmax)).amin((1, 2, 3)) + mean[:, 0]


def _coriolis(lmax: int, planet: Planet, tilt: float) -> Tensor:
    """Coefficients of f = 2 omega (cos(tilt) cos(theta) - sin(tilt) sin(theta) cos(phi))."""
    coeffs = torch.zeros(lmax + 1, lmax + 1, dtype=torch.complex128)
    coeffs[1, 0] = 2 * planet.omega * math.cos(tilt) * math.sqrt(4 * math.pi / 3)
    coeffs[1, 1] = planet.omega * math.sin(tilt) * math.sqrt(8 * math.pi / 3)
    return coeffs
