"""The planet: its size, its rotation, its gravity."""

from dataclasses import dataclass

from spherule import checks


@dataclass(frozen=True)
class Planet:
    """What the equations need to know of a planet."""

    radius: float = 6.37122e6
    """Meters."""
    omega: float = 7.292e-5
    """Angular velocity, 1 / s."""
    gravity: float = 9.80616
    """m / s^2."""

    def __post_init__(self) -> None:
        checks.number("radius", self.radius, above=0)
        checks.number("omega", self.omega)
        checks.number("gravity", self.gravity, above=0)


EARTH = Planet()
"""With the constants of Williamson's test cases."""
