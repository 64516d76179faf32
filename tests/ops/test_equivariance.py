import numpy as np
import pytest
import torch

from spherule import Grid, equivariance_error, ops
from spherule.ops.equivariance import random_rotation

GRID = Grid.gauss(24, 48)


def test_pointwise_and_isotropic_maps_are_equivariant() -> None:
    def blur(x: torch.Tensor) -> torch.Tensor:
        coeffs = ops.sht(x, GRID, 12)
        return ops.isht(ops.spectral_filter(coeffs, torch.linspace(1, 0, 13)), GRID)

    for model in (lambda x: x, lambda x: 2 * x, blur):
        assert equivariance_error(model, GRID, 2, dtype=torch.float64) < 1e-12


def test_a_map_that_knows_the_latitude_is_not() -> None:
    height = torch.tensor(GRID.xyz[:, 2].reshape(GRID.shape))
    error = equivariance_error(lambda x: x * height, GRID, 1, dtype=torch.float64)
    assert 0.5 < error < 2


def test_the_error_is_that_of_the_fields_in_l2() -> None:
    """By quadrature on a finer grid, where every order counts as it should."""
    height = torch.tensor(GRID.xyz[:, 2].reshape(GRID.shape))
    fine, degree = Grid.gauss(48, 96), torch.arange(13, dtype=torch.float64)
    generator = torch.Generator().manual_seed(7)
    difference = size = 0.0
    for _ in range(2):
        R = random_rotation(generator)
        spectrum = 4 * torch.pi / 169 * torch.ones_like(degree)
        x = ops.random_coeffs(spectrum, (1, 2), generator=generator)
        straight, turned = (
            ops.sht(ops.isht(c, GRID) * height, GRID, 15) for c in (x, ops.rotate(x, R))
        )
        straight, turned = ops.isht(ops.rotate(straight, R), fine), ops.isht(turned, fine)
        difference += float(ops.integrate((turned - straight) ** 2, fine).sum())
        size += float(ops.integrate(straight**2, fine).sum())
    found = equivariance_error(
        lambda x: x * height, GRID, 2, samples=2, seed=7, dtype=torch.float64
    )
    assert found == pytest.approx((difference / size) ** 0.5, rel=1e-12)


def test_rotations_are_uniform_rotations() -> None:
    generator = torch.Generator().manual_seed(0)
    matrices = np.stack([random_rotation(generator) for _ in range(2000)])
    np.testing.assert_allclose(
        matrices @ matrices.swapaxes(1, 2), np.broadcast_to(np.eye(3), (2000, 3, 3)), atol=1e-12
    )
    np.testing.assert_allclose(np.linalg.det(matrices), 1)
    assert np.abs(matrices.mean(0)).max() < 0.07
    # The mean angle of uniform rotations is pi / 2 + 2 / pi.
    angle = np.arccos(np.clip((np.trace(matrices, axis1=1, axis2=2) - 1) / 2, -1, 1))
    assert angle.mean() == pytest.approx(np.pi / 2 + 2 / np.pi, abs=0.06)
