"""Differential equations on the sphere."""

from spherule.pde import initial_states
from spherule.pde.integrators import AdamsBashforth3, Equation, Heun3, Integrator
from spherule.pde.planet import EARTH, Planet
from spherule.pde.shallow_water import ShallowWater

__all__ = [
    "EARTH",
    "AdamsBashforth3",
    "Equation",
    "Heun3",
    "Integrator",
    "Planet",
    "ShallowWater",
    "initial_states",
]
