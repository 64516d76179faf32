import numpy as np
import pytest
import torch

from spherule import Grid, ops
from tests.oracles import SMALL_GRIDS, ducc_synthesis, random_coeffs

EXACT = [
    "gauss:12x24",
    "clenshaw_curtis:13x25",
    "fejer:12x24@0.5",
    "equiangular:12x24",
    "lobatto:13x24",
]


def without_mean(coeffs: torch.Tensor) -> torch.Tensor:
    coeffs = coeffs.clone()
    coeffs[..., 0, 0] = 0
    return coeffs


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_wind_is_duccs_vector_synthesis(name: str) -> None:
    grid = Grid.from_name(name)
    lmax = min(grid.lmax, 20)
    vorticity, divergence = without_mean(random_coeffs(lmax, 2))
    l = torch.arange(lmax + 1, dtype=torch.float64)[:, None]
    scale = (l * (l + 1)).clamp(min=1).sqrt()
    # ducc0's parts are those of normalized grad Y and k x grad Y; inverse Laplacians bring the
    # minus.
    parts = -torch.stack([divergence / scale, vorticity / scale])
    theta, phi = ducc_synthesis(parts, grid, spin=1)
    wind = ops.wind(vorticity, divergence, grid)
    scale = np.abs(theta).max()
    np.testing.assert_allclose(wind[0], phi, atol=1e-12 * scale)
    np.testing.assert_allclose(wind[1], -theta, atol=1e-12 * scale)


@pytest.mark.parametrize("name", EXACT)
def test_vorticity_and_divergence_come_back_from_their_wind(name: str) -> None:
    grid = Grid.from_name(name)
    lmax = grid.lmax
    vorticity, divergence = without_mean(random_coeffs(lmax, 2, 3))
    wind = ops.wind(vorticity, divergence, grid, radius=6.4e6)
    assert wind.shape == (3, 2, *grid.shape)
    again = ops.vorticity_divergence(wind, grid, lmax, radius=6.4e6)
    torch.testing.assert_close(again[0], vorticity, rtol=0, atol=1e-12)
    torch.testing.assert_close(again[1], divergence, rtol=0, atol=1e-12)


def test_solid_rotation() -> None:
    """u = sin(theta), v = 0 has vorticity 2 cos(theta) and no divergence."""
    grid = Grid.clenshaw_curtis(9, 16)
    u = torch.tensor(np.sin(grid.theta))[:, None].expand(grid.shape)
    wind = torch.stack([u, torch.zeros(grid.shape, dtype=torch.float64)])
    vorticity, divergence = ops.vorticity_divergence(wind, grid, 5)
    expected = torch.tensor(2 * np.cos(grid.theta))[:, None].expand(grid.shape)
    torch.testing.assert_close(ops.isht(vorticity, grid), expected, rtol=0, atol=1e-13)
    assert divergence.abs().max() < 1e-13


@pytest.mark.parametrize("name", ["gauss:12x24", "clenshaw_curtis:13x24", "H4", "O6"])
def test_gradient_of_coordinates_is_their_tangent_part(name: str) -> None:
    grid = Grid.from_name(name)
    theta, phi = grid.point_theta, grid.point_phi
    east = np.stack([-np.sin(phi), np.cos(phi), 0 * phi])
    north = np.stack([-np.cos(theta) * np.cos(phi), -np.cos(theta) * np.sin(phi), np.sin(theta)])
    fine = Grid.gauss(4, 8)
    coordinates = torch.tensor(fine.xyz.T.reshape(3, *fine.shape).copy())
    gradient = ops.gradient(ops.sht(coordinates, fine, 2), grid, radius=2.0)
    expected = np.stack([east, north], axis=1).reshape(3, 2, *grid.shape) / 2
    np.testing.assert_allclose(gradient, expected, atol=1e-14)


def test_gradient_has_the_laplacian_as_divergence() -> None:
    grid = Grid.gauss(16, 33)
    coeffs = random_coeffs(10)
    vorticity, divergence = ops.vorticity_divergence(ops.gradient(coeffs, grid), grid, 10)
    torch.testing.assert_close(divergence, ops.laplacian(coeffs), rtol=0, atol=1e-11)
    assert vorticity.abs().max() < 1e-11


def test_gradients_of_the_ops() -> None:
    grid = Grid.gauss(4, 8)
    parts = random_coeffs(3, 2).requires_grad_()
    wind = torch.randn(2, *grid.shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda p: ops.wind(p[0], p[1], grid), (parts,))
    assert torch.autograd.gradcheck(lambda p: ops.gradient(p, grid), (parts,))
    assert torch.autograd.gradcheck(lambda w: ops.vorticity_divergence(w, grid, 3), (wind,))


def test_bad_input_is_named(unchecked) -> None:
    grid = Grid.gauss(4, 8)
    with pytest.raises(ValueError, match=r"wind: expected \(..., 2"):
        ops.vorticity_divergence(torch.zeros(3, 4, 8), grid, 3)
    with pytest.raises(ValueError, match=r"wind: expected \(..., 2"):
        ops.vorticity_divergence(torch.zeros(4, 8), grid, 3)
    c = torch.zeros(3, 3, dtype=torch.complex64)
    with pytest.raises(ValueError, match="divergence"):
        ops.wind(c, c[:2, :2], grid)
    with pytest.raises(TypeError, match="vorticity"):
        ops.wind(c.real, c, grid)
