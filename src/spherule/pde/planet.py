"""The planet: its size, its rotation, its gravity."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Planet:
    """What the equations need to know of a planet."""

    radius: float = 6.37122e6
    """Metres."""
    omega: float = 7.292e-5
    """Angular velocity, 1 / s."""
    gravity: float = 9.80616
    """m / s^2."""


EARTH = Planet()
"""With the constants of Williamson's test cases."""
