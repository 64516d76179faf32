"""Time steps of order three for any equation dy/dt = N(y) - damping y, the damping solved exactly.

An integrator knows of its equation the tendency N and the damping only; the equation knows nothing
of steps. In the variable exp(damping t) y nothing is damped, so each scheme is the usual one there.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from torch import Tensor

from spherule import checks


@dataclass(frozen=True, eq=False)
class Equation:
    """dy/dt = tendency(y) - damping y."""

    tendency: Callable[[Tensor], Tensor]
    damping: Tensor | None = None
    """Rates, broadcast against the state."""

    def __post_init__(self) -> None:
        checks.config(self)


@runtime_checkable
class Integrator(Protocol):
    """How an equation is stepped in time."""

    reach: ClassVar[float]
    """The largest omega dt at which an oscillation of frequency omega is not amplified."""

    def states(self, equation: Equation, y: Tensor, dt: float) -> Iterator[Tensor]:
        """The states at dt, 2 dt, ..., without end."""
        ...


@dataclass(frozen=True)
class AdamsBashforth3:
    """One tendency a step:

        y_{n+1} = E (y_n + dt (23 N_n - 16 E N_{n-1} + 5 E^2 N_{n-2}) / 12),    E = exp(-damping dt)

    The first two steps are Heun's, of the same order: one Euler step would leave its second-order
    error in all that follows.
    """

    reach: ClassVar[float] = 0.7236

    @checks.arguments
    def states(self, equation: Equation, y: Tensor, dt: float) -> Iterator[Tensor]:
        """The states at dt, 2 dt, ..., without end."""
        damping = equation.damping
        decay = None if damping is None else (-damping * dt).exp()
        last, last_but_one = None, None
        while True:
            now = equation.tendency(y)
            if last is None or last_but_one is None:
                y = _heun3(equation, y, now, dt)
            else:
                y = y.add(now, alpha=23 / 12 * dt).add(last, alpha=-16 / 12 * dt)
                y = y.add(last_but_one, alpha=5 / 12 * dt)
                y = y if decay is None else decay * y
            if decay is not None:
                now = decay * now
                last = None if last is None else decay * last
            last, last_but_one = now, last
            yield y


@dataclass(frozen=True)
class Heun3:
    """Heun's third-order Runge-Kutta steps: three tendencies each, and 2.4 times as long."""

    reach: ClassVar[float] = 1.7320

    @checks.arguments
    def states(self, equation: Equation, y: Tensor, dt: float) -> Iterator[Tensor]:
        """The states at dt, 2 dt, ..., without end."""
        while True:
            y = _heun3(equation, y, equation.tendency(y), dt)
            yield y


def _heun3(equation: Equation, y: Tensor, first: Tensor, dt: float) -> Tensor:
    """y + dt (k1 + 3 k3) / 4, given k1."""
    damping = equation.damping
    third = 1.0 if damping is None else (-damping * dt / 3).exp()
    second = equation.tendency(third * (y + dt / 3 * first))
    last = equation.tendency(third * (third * y + 2 * dt / 3 * second))
    return third * (third**2 * (y + dt / 4 * first) + 3 * dt / 4 * last)
