import math
from itertools import islice

import pytest
import torch

from spherule.pde import AdamsBashforth3, Equation, Heun3, Integrator

INTEGRATORS = [AdamsBashforth3(), Heun3()]


def after(n: int, integrator: Integrator, equation: Equation, y: torch.Tensor, dt: float):
    return next(islice(integrator.states(equation, y, dt), n - 1, None))


def pendulum(y: torch.Tensor) -> torch.Tensor:
    return torch.stack([y[1], -y[0].sin()])


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("damping", [None, torch.tensor([0.0, 3.0], dtype=torch.float64)])
def test_error_falls_with_the_third_power_of_the_step(integrator, damping) -> None:
    start = torch.tensor([1.0, 0.5], dtype=torch.float64)
    equation = Equation(pendulum, damping)
    # Its own limit, from so small a step that a wrong damping would be another limit: the next test
    # pins that.
    exact = after(20480, integrator, equation, start, 4 / 20480)
    errors = [
        float((after(n, integrator, equation, start, 4 / n) - exact).norm()) for n in (80, 160, 320)
    ]
    assert math.log2(errors[0] / errors[1]) > 2.8
    assert math.log2(errors[1] / errors[2]) > 2.8
    assert errors[2] < 1e-5


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_damping_alone_is_exact(integrator) -> None:
    y = torch.tensor([1.0, 2.0], dtype=torch.float64)
    rate = torch.tensor([0.5, 40.0], dtype=torch.float64)
    result = after(7, integrator, Equation(torch.zeros_like, rate), y, 0.3)
    torch.testing.assert_close(result, y * torch.exp(-rate * 2.1), rtol=1e-13, atol=0)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_damping_enters_the_limit_of_a_driven_decay(integrator) -> None:
    """dy/dt = 1 - 2 y goes to 1 / 2."""
    equation = Equation(torch.ones_like, torch.tensor([2.0], dtype=torch.float64))
    result = after(4000, integrator, equation, torch.zeros(1, dtype=torch.float64), 0.01)
    assert result.item() == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize(("part", "bounded"), [(0.99, True), (1.01, False)])
def test_oscillations_grow_beyond_the_reach(integrator, part: float, bounded: bool) -> None:
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    y = after(5000, integrator, Equation(lambda y: turn @ y), turn[0], part * integrator.reach)
    assert (float(y.norm()) < 1.1) == bounded
