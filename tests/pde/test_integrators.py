import math
from itertools import islice

import pytest
import torch

from spherule.pde.integrators import AB3_REACH, adams_bashforth3


def after(n: int, *args, **options) -> torch.Tensor:
    return next(islice(adams_bashforth3(*args, **options), n - 1, None))


def pendulum(y: torch.Tensor) -> torch.Tensor:
    return torch.stack([y[1], -y[0].sin()])


@pytest.mark.parametrize("damping", [None, torch.tensor([0.0, 3.0], dtype=torch.float64)])
def test_error_falls_with_the_third_power_of_the_step(damping: torch.Tensor | None) -> None:
    start = torch.tensor([1.0, 0.5], dtype=torch.float64)
    # Its own limit, from so small a step that a wrong damping would be another limit: the next test
    # pins that.
    exact = after(40960, pendulum, start, 4 / 40960, damping=damping)
    errors = [
        float((after(n, pendulum, start, 4 / n, damping=damping) - exact).norm())
        for n in (80, 160, 320)
    ]
    assert math.log2(errors[0] / errors[1]) > 2.8
    assert math.log2(errors[1] / errors[2]) > 2.8
    assert errors[2] < 1e-5


def test_damping_alone_is_exact() -> None:
    y = torch.tensor([1.0, 2.0], dtype=torch.float64)
    rate = torch.tensor([0.5, 40.0], dtype=torch.float64)
    result = after(7, torch.zeros_like, y, 0.3, damping=rate)
    torch.testing.assert_close(result, y * torch.exp(-rate * 2.1), rtol=1e-13, atol=0)


def test_damping_enters_the_limit_of_a_driven_decay() -> None:
    """dy/dt = 1 - 2 y goes to 1 / 2."""
    rate = torch.tensor([2.0], dtype=torch.float64)
    result = after(4000, torch.ones_like, torch.zeros(1, dtype=torch.float64), 0.01, damping=rate)
    assert result.item() == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize(("part", "bounded"), [(0.99, True), (1.01, False)])
def test_oscillations_grow_beyond_the_reach(part: float, bounded: bool) -> None:
    turn = torch.tensor([[0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)
    y = after(5000, lambda y: turn @ y, turn[0], part * AB3_REACH)
    assert (float(y.norm()) < 1.1) == bounded
