"""Differential equations on the sphere."""

from spherule.pde import initial_states
from spherule.pde.integrators import adams_bashforth3
from spherule.pde.planet import EARTH, Planet
from spherule.pde.shallow_water import ShallowWater

__all__ = ["EARTH", "Planet", "ShallowWater", "adams_bashforth3", "initial_states"]
