"""Maps that are applied again and again: their eigenvalues by torch, and what becomes of states."""

import pytest
import torch
from torch import Tensor

from spherule import Grid, ops
from spherule.models import Linear, LinearConfig
from spherule.models.stability import SLACK, steady_linear, steady_matrix, steady_zonal

GRID, LMAX = Grid.gauss(12, 24), 8


def radius(matrix: Tensor) -> float:
    return float(torch.linalg.eigvals(matrix).abs().max())


@pytest.mark.parametrize("size", [1, 2, 9, 30])
@pytest.mark.parametrize("reach", [0, 2, 30])
def test_eigenvalues_are_brought_into_the_circle_by_what_is_free(size: int, reach: int) -> None:
    for seed in range(5):
        draw = torch.Generator().manual_seed(seed)
        matrix = torch.randn(size, size, dtype=torch.complex128, generator=draw)
        place = torch.arange(size)
        free = ((place[:, None] - place).abs() <= reach).double()
        matrix = matrix * free * 1.05 / radius(matrix * free)
        found = steady_matrix(matrix, free)
        assert radius(found) <= 1 + SLACK
        assert torch.equal(found * (1 - free), torch.zeros_like(found))
        # No more than making all smaller by 5 %; a quarter of it where there is much to choose.
        assert (found - matrix).norm() <= 0.06 * matrix.norm()
        inside = 0.9 * matrix
        assert torch.equal(steady_matrix(inside, free), inside)


def test_a_matrix_whose_vectors_are_one_is_made_smaller() -> None:
    jordan = torch.tensor([[1.5, 1.0], [0.0, 1.5]], dtype=torch.complex128)
    assert radius(steady_matrix(jordan, torch.eye(2, dtype=torch.float64))) <= 1 + SLACK


@pytest.mark.parametrize("static", [0, 1])
def test_weights_of_maps_that_do_not_grow_stay_as_they_are(static: int) -> None:
    linear = 0.1 * torch.randn(LMAX + 1, 3, 3 + static, dtype=torch.float64)
    assert torch.equal(steady_linear(linear), linear)
    # Of a zonal map, what would meet degrees that there are not does not matter.
    model = Linear(LinearConfig(lmax=LMAX, reach=2), GRID, 3 + static, 3).double()
    torch.nn.init.normal_(model.mix.weight, std=0.05)
    x = torch.randn(2, 3 + static, *GRID.shape, dtype=torch.float64)
    before = model(x)
    model.mix.weight.copy_(steady_zonal(model.mix.weight))
    assert torch.equal(model(x), before)


@pytest.mark.parametrize("reach", [None, 2])
@torch.no_grad()
def test_a_fit_to_few_samples_of_waves_is_followed_for_long(reach: int | None) -> None:
    """Two variables that turn into each other, at a rate for each degree, with noise."""
    torch.manual_seed(0)
    angle = torch.linspace(0.2, 2.0, LMAX + 1, dtype=torch.float64)
    turn = torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()]).reshape(2, 2, -1)
    state = ops.random_coeffs(torch.ones(LMAX + 1, dtype=torch.float64), (60, 2))
    later = torch.einsum("oil,bilm->bolm", turn.to(state.dtype), state)
    later = later + 0.3 * ops.random_coeffs(torch.ones(LMAX + 1, dtype=torch.float64), (60, 2))
    x, y = (ops.isht(u, GRID) for u in (state, later))
    models, lost = {}, {}
    for steady in (False, True):
        model = Linear(LinearConfig(lmax=LMAX, reach=reach), GRID, 2, 2).double()
        fit = model.fit([(x[:40], y[:40])], steady=steady)
        assert torch.equal(model.mix.weight, fit.weight)
        lost[steady] = float((model(x[40:]) - y[40:]).square().mean())
        models[steady] = model
    assert lost[True] <= lost[False]
    sizes = {}
    for steady, model in models.items():
        u = x[:1]
        for _ in range(300):
            u = model(u)
        sizes[steady] = float(u.norm() / x[:1].norm())
    assert sizes[False] > 10
    assert sizes[True] < 2
