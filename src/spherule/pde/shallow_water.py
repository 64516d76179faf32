"""Shallow water on a rotating sphere: the equations of `shallow_water_equations`, solved in time.

A state is coefficients (..., 3, lmax + 1, lmax + 1): geopotential, vorticity, divergence.
"""

import itertools
import math
from collections.abc import Iterator

import torch
from jaxtyping import Complex, Shaped
from torch import Tensor

from spherule import checks, ops
from spherule.grids import Grid
from spherule.ops.checks import require_coeffs, require_degree
from spherule.pde.integrators import AdamsBashforth3, Integrator
from spherule.pde.planet import EARTH, Planet
from spherule.pde.shallow_water_equations import ShallowWaterEquations
from spherule.pde.transform import pack, unpack

VARIABLES = ("geopotential", "vorticity", "divergence")
UNITS = ("m2 s-2", "s-1", "s-1")

_MEAN = math.sqrt(4 * math.pi)  # the coefficient of degree 0 of a constant 1


class ShallowWater:
    """A spectral solver, alias-free, of third order in time, for many states at once.

    `lmax` is by default a third of the rings of `grid`, where the output goes. `topography` are the
    coefficients of the ground's geopotential. `damping_time` (seconds) is the e-folding time of
    vorticity and divergence at degree lmax under hyperdiffusion, the `damping_power` of the
    Laplacian; `tilt` the angle between the axis of rotation and that of the coordinates. States of
    another precision are advanced in that of `dtype`.
    """

    @checks.arguments
    def __init__(
        self,
        grid: Grid,
        *,
        lmax: int | None = None,
        planet: Planet = EARTH,
        topography: Complex[Tensor, "degree degree"] | None = None,
        damping_time: float | None = None,
        damping_power: int = 4,
        tilt: float = 0.0,
        integrator: Integrator | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        if dtype not in (torch.float64, torch.float32):
            raise TypeError(f"dtype={dtype}: expected torch.float64 or torch.float32")
        self.lmax = require_degree("lmax", grid.nrings // 3 if lmax is None else lmax, grid)
        if self.lmax < 1:
            raise ValueError(f"lmax={self.lmax} must be at least 1: {grid!r} is too small")
        if damping_time is not None and not damping_time > 0:
            raise ValueError(f"damping_time={damping_time} must be positive (seconds) or None")
        if damping_power < 1:
            raise ValueError(f"damping_power={damping_power} must be at least 1")
        if topography is not None:
            self._require_state("topography", topography)
            if topography.ndim != 2:
                raise ValueError(f"topography: expected (l, m), got {tuple(topography.shape)}")
        try:
            device = torch.device(device)
        except RuntimeError as error:
            raise ValueError(f"device={device!r}: {error}") from None
        self.grid, self.planet, self.dtype = grid, planet, dtype
        self.integrator: Integrator = AdamsBashforth3() if integrator is None else integrator
        self.equations = ShallowWaterEquations(
            self.lmax,
            planet=planet,
            topography=topography,
            damping_time=damping_time,
            damping_power=damping_power,
            tilt=tilt,
            dtype=dtype,
            device=device,
        )

    @checks.arguments
    def advance(
        self, state: Complex[Tensor, "*batch 3 degree degree"], dt: float, steps: int
    ) -> Complex[Tensor, "*batch 3 degree degree"]:
        """The states after `steps` steps of `dt` seconds."""
        state = state.to(self.dtype.to_complex())
        *_, last = [state, *self.trajectory(state, dt, steps, every=max(steps, 1))]
        return last

    @checks.arguments
    def trajectory(
        self,
        state: Complex[Tensor, "*batch 3 degree degree"],
        dt: float,
        steps: int,
        *,
        every: int = 1,
    ) -> Iterator[Complex[Tensor, "*batch 3 degree degree"]]:
        """The states after every, 2 every, ... <= steps steps of `dt` seconds.

        A step too large for the waves is refused; a run that blows up ends in an error, not in NaN.
        """
        self._require_states(state)
        if steps < 0 or every < 1:
            raise ValueError(f"steps={steps} must be >= 0 and every={every} >= 1")
        batch, state = state.shape[:-3], state.to(self.dtype.to_complex())
        y = pack(state.flatten(0, -4) if batch else state[None])
        if y.numel() == 0:
            yield from itertools.repeat(state, steps // every)
            return
        mean = y[0, 0, 0, :, 0, None] / _MEAN
        average = torch.zeros_like(y)
        average[0, 0, 0, :, 0] = y[0, 0, 0, :, 0]
        y = y - average
        self._require_depth(y, mean)
        limit = self._cfl_limit(mean)
        if not 0 < dt <= limit:
            raise ValueError(
                f"dt={dt} s must be in (0, {limit:.4g}], the CFL limit of gravity waves of "
                f"{mean.max().sqrt():.4g} m/s at lmax={self.lmax}"
            )
        start = self.equations.energy(y, mean)
        run = self.integrator.states(self.equations.around(mean), y, dt)
        for y in itertools.islice(run, every - 1, steps, every):
            # The energy is conserved; four times as much, or NaN, is an instability.
            energy = self.equations.energy(y, mean)
            if not bool((energy <= 4 * start + 1e-8 * mean[:, 0] ** 2).all()):
                raise FloatingPointError(
                    f"the run blew up with dt={dt} s; the CFL limit of gravity waves at "
                    f"lmax={self.lmax} is {limit:.4g} s and winds lower it: take a smaller step, "
                    "or damping_time for flows with fronts"
                )
            yield unpack(y + average).unflatten(0, batch) if batch else unpack(y + average)[0]

    @checks.arguments
    def fields(
        self, state: Complex[Tensor, "*batch 3 degree degree"], grid: Grid | None = None
    ) -> Shaped[Tensor, "..."]:
        """Geopotential of the depth (m^2 / s^2; divided by g it is height), vorticity and
        divergence (1 / s) at the points of a grid, `(..., 3, *grid.shape)`.
        """
        self._require_states(state)
        return ops.isht(state, self.grid if grid is None else grid)

    @checks.arguments
    def wind(
        self, state: Complex[Tensor, "*batch 3 degree degree"], grid: Grid | None = None
    ) -> Shaped[Tensor, "..."]:
        """Eastward and northward wind in m / s, `(..., 2, *grid.shape)`."""
        self._require_states(state)
        _, vorticity, divergence = state.unbind(-3)
        return ops.wind(
            vorticity, divergence, self.grid if grid is None else grid, radius=self.planet.radius
        )

    @checks.arguments
    def cfl_limit(self, state: Complex[Tensor, "*batch 3 degree degree"]) -> float:
        """The longest step, in seconds, that gravity waves on these mean depths allow."""
        self._require_states(state)
        return self._cfl_limit(state[..., 0, 0, 0].real / _MEAN)

    def _cfl_limit(self, mean: Tensor) -> float:
        return self.integrator.reach / self.equations.frequency(mean)

    def _require_depth(self, y: Tensor, mean: Tensor) -> None:
        lowest = self.equations.least_geopotential(y, mean)
        if not bool((lowest > 0).all()):
            raise ValueError(
                f"state: the depth must be positive everywhere, got "
                f"{float(lowest.min()) / self.planet.gravity:.4g} m"
            )

    def _require_states(self, state: Tensor) -> None:
        self._require_state("state", state)
        if state.ndim < 3 or state.shape[-3] != 3:
            raise ValueError(f"state: expected (..., 3, l, m), got {tuple(state.shape)}")

    def _require_state(self, name: str, coeffs: Tensor) -> None:
        require_coeffs(name, coeffs)
        if coeffs.shape[-1] != self.lmax + 1:
            raise ValueError(
                f"{name}: expected coefficients up to lmax={self.lmax}, "
                f"(..., {self.lmax + 1}, {self.lmax + 1}), got {tuple(coeffs.shape)}"
            )
