"""Initial states of shallow water: the standard tests, and random fields.

Each is coefficients (3, lmax + 1, lmax + 1) of geopotential, vorticity and divergence in float64.
Williamson et al., J. Comput. Phys. 102 (1992); Galewsky et al., Tellus A 56 (2004).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Complex
from numpy.polynomial.legendre import leggauss
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks, ops
from spherule.grids import Grid
from spherule.pde.planet import EARTH, Planet

_JET = (math.pi / 7, math.pi / 2 - math.pi / 7)  # latitudes between which Galewsky's jet blows


@dataclass(frozen=True)
class Preset:
    """Gaussian random states: a mean depth, and standard deviations at every point."""

    mean_depth: float
    """Meters."""
    height_std: float
    """Meters."""
    wind_std: float
    """Of each component, m / s."""


PRESETS = {
    # The paper's text: wind 0.2 sqrt(g depth).
    "paper": Preset(1e3, 120.0, 0.2 * math.sqrt(1e3 * EARTH.gravity)),
    # What its public code draws.
    "public": Preset(1e4, 42.0, 1.4),
}


@checks.arguments
def preset_named(name: str) -> Preset:
    if name not in PRESETS:
        raise ValueError(f"preset name={name!r}: expected one of {', '.join(PRESETS)}")
    return PRESETS[name]


@checks.arguments
def random_states(
    lmax: int,
    samples: int,
    *,
    preset: str | Preset = "public",
    planet: Planet = EARTH,
    generator: torch.Generator | None = None,
) -> Complex[Tensor, "samples 3 degree degree"]:
    """White height, vorticity and divergence of degrees 1 to lmax, scaled to a preset."""
    if lmax < 1 or samples < 0:
        raise ValueError(f"lmax={lmax} must be at least 1 and samples={samples} >= 0")
    preset = preset_named(preset) if isinstance(preset, str) else preset
    if not preset.mean_depth > 5 * preset.height_std >= 0 or preset.wind_std < 0:
        raise ValueError(
            f"mean_depth={preset.mean_depth} m must be positive and more than five times "
            f"height_std={preset.height_std} m, or the depth is negative somewhere; "
            f"wind_std={preset.wind_std} m/s must be >= 0"
        )
    degree = torch.arange(lmax + 1, dtype=torch.float64)
    white = (degree > 0).double()
    # The variance of a wind component from white vorticity; divergence adds as much, and the two
    # components share.
    speed = white * planet.radius**2 / (degree * (degree + 1)).clamp(min=1)
    height = white * (planet.gravity * preset.height_std) ** 2 / ops.point_variance(white)
    rotation = white * preset.wind_std**2 / ops.point_variance(speed)
    # One draw for each state: the first of n states does not depend on n.
    unit = ops.random_coeffs(white, (samples, 3), generator=generator)
    scale = torch.stack([height, rotation, rotation]).sqrt()
    states = unit * scale[..., None]
    states[:, 0, 0, 0] = math.sqrt(4 * math.pi) * planet.gravity * preset.mean_depth
    return states


@checks.arguments
def williamson2(
    lmax: int, *, tilt: float = 0.0, planet: Planet = EARTH
) -> Complex[Tensor, "3 degree degree"]:
    """Case 2: solid rotation in balance, steady; `tilt` is the angle of its axis (and of the
    planet's: give it to the solver too).
    """
    speed = 2 * math.pi * planet.radius / (12 * 86400)

    def fields(lat: NDArray, lon: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        sine = np.sin(lat) * np.cos(tilt) - np.cos(lon) * np.cos(lat) * np.sin(tilt)
        drop = (planet.radius * planet.omega + speed / 2) * speed * sine**2
        east = np.cos(lat) * np.cos(tilt) + np.cos(lon) * np.sin(lat) * np.sin(tilt)
        return 2.94e4 - drop, speed * east, -speed * np.sin(lon) * np.sin(tilt)

    return _project(fields, lmax, planet)


@checks.arguments
def williamson5(lmax: int, *, planet: Planet = EARTH) -> Complex[Tensor, "3 degree degree"]:
    """Case 5: a zonal flow that meets a `mountain` (give that to the solver)."""
    speed = 20.0

    def fields(lat: NDArray, lon: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        drop = (planet.radius * planet.omega + speed / 2) * speed * np.sin(lat) ** 2
        surface = planet.gravity * 5960.0 - drop
        return surface, speed * np.cos(lat), np.zeros_like(lat)

    state = _project(fields, lmax, planet)
    state[0] -= mountain(lmax, planet=planet)
    return state


@checks.arguments
def mountain(lmax: int, *, planet: Planet = EARTH) -> Complex[Tensor, "degree degree"]:
    """The ground of case 5: a cone 2000 m high at 30 N, 90 W; coefficients of its geopotential."""

    def fields(lat: NDArray, lon: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        distance = np.hypot(lon - 1.5 * math.pi, lat - math.pi / 6)
        cone = np.maximum(1 - distance / (math.pi / 9), 0)
        return planet.gravity * 2000 * cone, np.zeros_like(lat), np.zeros_like(lat)

    return _project(fields, lmax, planet)[0]


@checks.arguments
def williamson6(lmax: int, *, planet: Planet = EARTH) -> Complex[Tensor, "3 degree degree"]:
    """Case 6: a Rossby-Haurwitz wave of wavenumber 4."""
    w, r = 7.848e-6, 4  # omega = K of the paper

    def fields(lat: NDArray, lon: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        c, s = np.cos(lat), np.sin(lat)
        a = w / 2 * (2 * planet.omega + w) * c**2 + w**2 / 4 * c ** (2 * r - 2) * (
            (r + 1) * c**4 + (2 * r**2 - r - 2) * c**2 - 2 * r**2
        )
        b = 2 * (planet.omega + w) * w / ((r + 1) * (r + 2)) * c**r
        b *= r**2 + 2 * r + 2 - (r + 1) ** 2 * c**2
        d = w**2 / 4 * c ** (2 * r) * ((r + 1) * c**2 - (r + 2))
        height = planet.radius**2 * (a + b * np.cos(r * lon) + d * np.cos(2 * r * lon))
        east = w * c + w * c ** (r - 1) * (r * s**2 - c**2) * np.cos(r * lon)
        north = -w * r * c ** (r - 1) * s * np.sin(r * lon)
        return planet.gravity * 8e3 + height, planet.radius * east, planet.radius * north

    return _project(fields, lmax, planet)


@checks.arguments
def galewsky(
    lmax: int, *, perturbed: bool = True, planet: Planet = EARTH
) -> Complex[Tensor, "3 degree degree"]:
    """A balanced jet in the north, and a bump of 120 m that makes it roll up in days."""

    def fields(lat: NDArray, lon: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        east = galewsky_jet(lat)
        rings, ring = np.unique(lat, return_inverse=True)
        height = galewsky_depth(planet) - _drop(rings, planet)[ring] / planet.gravity
        if perturbed:
            east_of_center = (lon + math.pi) % (2 * math.pi) - math.pi
            height = height + 120 * np.cos(lat) * np.exp(
                -((3 * east_of_center) ** 2) - (15 * (math.pi / 4 - lat)) ** 2
            )
        return planet.gravity * height, east, np.zeros_like(lat)

    return _project(fields, lmax, planet)


def galewsky_jet(lat: NDArray[np.float64]) -> NDArray[np.float64]:
    """The zonal wind of up to 80 m/s: smooth, and 0 outside the jet's latitudes."""
    south, north = _JET
    inside = (lat > south) & (lat < north)
    product = np.where(inside, (lat - south) * (lat - north), -1.0)
    return np.where(inside, 80 * np.exp(1 / product + 4 / (north - south) ** 2), 0.0)


def galewsky_depth(planet: Planet = EARTH) -> float:
    """h0, the depth south of the jet, such that the mean depth is 10 km."""
    # A drop at one latitude lowers all that lies north of it: (1 - sin(lat)) / 2 of the sphere.
    south, north = _JET
    nodes, weights = leggauss(200)
    lat = south + (north - south) * (nodes + 1) / 2
    mean = (weights * _slope(lat, planet) * (1 - np.sin(lat)) / 2).sum() * (north - south) / 2
    return 1e4 + float(mean) / planet.gravity


def _slope(lat: NDArray[np.float64], planet: Planet) -> NDArray[np.float64]:
    """How the geopotential falls with latitude in balance with the jet: u (f a + u tan(lat))."""
    u = galewsky_jet(lat)
    return u * (2 * planet.omega * planet.radius * np.sin(lat) + u * np.tan(lat))


def _drop(lat: NDArray[np.float64], planet: Planet) -> NDArray[np.float64]:
    """The integral of the slope from the jet's southern edge."""
    nodes, weights = leggauss(200)
    half = (np.clip(lat, *_JET) - _JET[0])[:, None] / 2
    return (half * weights * _slope(_JET[0] + half * (nodes + 1), planet)).sum(-1)


CASES: dict[str, Callable[..., Tensor]] = {
    "williamson2": williamson2,
    "williamson5": williamson5,
    "williamson6": williamson6,
    "galewsky": galewsky,
}


@checks.arguments
def case_named(name: str) -> Callable[..., Tensor]:
    """The initial state of a standard test by its name: a function of lmax."""
    if name not in CASES:
        raise ValueError(f"name={name!r}: expected one of {', '.join(CASES)}")
    return CASES[name]


def _project(
    fields: Callable[[NDArray, NDArray], tuple[NDArray, NDArray, NDArray]],
    lmax: int,
    planet: Planet,
) -> Tensor:
    """Coefficients of a geopotential and a wind, given at latitudes and longitudes in radians."""
    if lmax < 1:
        raise ValueError(f"lmax={lmax} must be at least 1")
    # Finer than lmax needs, for what is not a polynomial.
    nlat = max(2 * lmax, 128)
    grid = Grid.gauss(nlat, 2 * nlat)
    values = fields(np.pi / 2 - grid.point_theta, grid.point_phi)
    geopotential, east, north = (torch.tensor(v).reshape(grid.shape) for v in values)
    wind = torch.stack([east, north])
    rotation = ops.vorticity_divergence(wind, grid, lmax, radius=planet.radius)
    return torch.stack([ops.sht(geopotential, grid, lmax), *rotation])
