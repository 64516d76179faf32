import math

import pytest
import torch

from spherule import Grid, ops
from tests.oracles import SMALL_GRIDS, random_coeffs


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_integral_of_one_is_the_area(name: str) -> None:
    grid = Grid.from_name(name)
    area = ops.integrate(torch.ones(2, 3, *grid.shape, dtype=torch.float64), grid)
    assert area.shape == (2, 3)
    tolerance = 0.01 if name.startswith("equiangular") else 1e-14
    torch.testing.assert_close(area, torch.full_like(area, 4 * math.pi), rtol=tolerance, atol=0)


def test_integral_is_the_mean_coefficient() -> None:
    grid = Grid.lobatto(10, 20)
    coeffs = random_coeffs(8)
    integral = ops.integrate(ops.isht(coeffs, grid), grid)
    torch.testing.assert_close(integral, coeffs[0, 0].real * math.sqrt(4 * math.pi))


def test_gradient_and_bad_input(unchecked) -> None:
    grid = Grid.healpix(1)
    u = torch.randn(12, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda u: ops.integrate(u, grid), (u,))
    with pytest.raises(ValueError, match=r"u: expected \(..., 12\)"):
        ops.integrate(torch.zeros(11), grid)
    with pytest.raises(TypeError, match="bool"):
        ops.integrate(torch.zeros(12, dtype=torch.bool), grid)
