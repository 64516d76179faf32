import math

import pytest
import torch

from spherule import Grid, ops
from tests.oracles import random_coeffs


def test_laplacian_multiplies_by_the_eigenvalue() -> None:
    coeffs = random_coeffs(6, 2)
    for l in range(7):
        expected = -l * (l + 1) / 9 * coeffs[:, l]
        torch.testing.assert_close(ops.laplacian(coeffs, radius=3.0)[:, l], expected)


def test_inverse_laplacian_undoes_it_but_for_the_mean() -> None:
    coeffs = random_coeffs(6)
    again = ops.inverse_laplacian(ops.laplacian(coeffs, radius=3.0), radius=3.0)
    torch.testing.assert_close(again[1:], coeffs[1:])
    assert again[0, 0] == 0


def test_filter_and_bad_response(unchecked) -> None:
    coeffs = random_coeffs(3)
    response = torch.tensor([1.0, 0.5, 0.0, 2.0])
    torch.testing.assert_close(ops.spectral_filter(coeffs, response), coeffs * response[:, None])
    with pytest.raises(ValueError, match="response"):
        ops.spectral_filter(coeffs, response[:3])


def test_power_spectrum_sums_to_the_mean_square() -> None:
    grid = Grid.gauss(16, 33)
    coeffs = random_coeffs(12, 4)
    mean_square = ops.integrate(ops.isht(coeffs, grid) ** 2, grid) / (4 * math.pi)
    spectrum = ops.power_spectrum(coeffs)
    total = (spectrum * (2 * torch.arange(13) + 1)).sum(-1) / (4 * math.pi)
    torch.testing.assert_close(total, mean_square)
