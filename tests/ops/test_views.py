"""Tensors that are views with a conjugation or a sign still to be applied."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spherule import Grid, ops, pde
from spherule.data import Statistics
from spherule.distributed import isht

GRID = Grid.gauss(8, 16)
SOLVER = pde.ShallowWater(GRID, lmax=4, dtype=torch.float64)

OF_COEFFS: dict[str, Callable[[Tensor], Tensor]] = {
    "isht": lambda a: ops.isht(a, GRID),
    "gradient": lambda a: ops.gradient(a, GRID),
    "wind": lambda a: ops.wind(a, a, GRID),
    "laplacian": ops.laplacian,
    "rotate": lambda a: ops.rotate(a, torch.eye(3)),
    "power_spectrum": ops.power_spectrum,
    "shallow water": lambda a: SOLVER.fields(a),
}
OF_FIELDS: dict[str, Callable[[Tensor], Tensor]] = {
    "sht": lambda u: ops.sht(u, GRID, 4),
    "resample": lambda u: ops.resample(u, GRID, Grid.healpix(2)),
    "normalize": lambda u: Statistics((1.0,) * 3, (2.0,) * 3).normalize(u, GRID),
    "integrate": lambda u: ops.integrate(u, GRID),
}


@pytest.mark.parametrize("name", OF_COEFFS)
def test_conjugate_coefficients_are_taken(name: str) -> None:
    coeffs = torch.randn(3, 5, 5, dtype=torch.complex128).tril().conj()
    assert coeffs.is_conj()
    torch.testing.assert_close(OF_COEFFS[name](coeffs), OF_COEFFS[name](coeffs.resolve_conj()))


@pytest.mark.parametrize("name", OF_FIELDS)
def test_negated_fields_are_taken(name: str) -> None:
    field = torch.randn(3, 8, 16, dtype=torch.complex128).conj().imag
    assert field.is_neg()
    torch.testing.assert_close(OF_FIELDS[name](field), OF_FIELDS[name](field.resolve_neg()))


def test_pairs_of_numbers_need_not_lie_side_by_side() -> None:
    pairs = torch.randn(2, 5, 5).permute(1, 2, 0)
    torch.testing.assert_close(isht(pairs, GRID), isht(pairs.contiguous(), GRID))
