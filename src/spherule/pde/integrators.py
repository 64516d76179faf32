"""Time steps of order three, with linear damping solved exactly."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from torch import Tensor

Tendency: TypeAlias = Callable[[Tensor], Tensor]

AB3_REACH = 0.7236
"""The largest omega dt at which AB3 does not amplify an oscillation of frequency omega."""


def adams_bashforth3(
    tendency: Tendency, y: Tensor, dt: float, *, damping: Tensor | None = None
) -> Iterator[Tensor]:
    """States at dt, 2 dt, ... of dy/dt = N(y) - damping y.

        y_{n+1} = E (y_n + dt (23 N_n - 16 E N_{n-1} + 5 E^2 N_{n-2}) / 12),    E = exp(-damping dt)

    The first two steps are Runge-Kutta steps of the same order: one Euler step would leave its
    second-order error in all that follows.
    """
    decay = None if damping is None else (-damping * dt).exp()
    last, last_but_one = None, None
    while True:
        now = tendency(y)
        if last is None or last_but_one is None:
            y = _heun3(tendency, y, now, dt, damping)
        else:
            y = y.add(now, alpha=23 / 12 * dt).add(last, alpha=-16 / 12 * dt)
            y = y.add(last_but_one, alpha=5 / 12 * dt)
            y = y if decay is None else decay * y
        if decay is not None:
            now = decay * now
            last = None if last is None else decay * last
        last, last_but_one = now, last
        yield y


def _heun3(
    tendency: Tendency, y: Tensor, first: Tensor, dt: float, damping: Tensor | None
) -> Tensor:
    """Heun's third-order step, (k1 + 3 k3) / 4, in the variable exp(damping t) y."""
    third = 1.0 if damping is None else (-damping * dt / 3).exp()
    second = tendency(third * (y + dt / 3 * first))
    last = tendency(third * (third * y + 2 * dt / 3 * second))
    return third * (third**2 * (y + dt / 4 * first) + 3 * dt / 4 * last)
