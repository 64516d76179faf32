import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.geometry.overlaps import overlap_entries
from tests.oracles import SMALL_GRIDS


def matrix(source: Grid, target: Grid) -> np.ndarray:
    dense = np.zeros((target.size, source.size))
    row, column, weight = overlap_entries(source, target)
    np.add.at(dense, (row, column), weight)
    return dense


@pytest.mark.parametrize("target", SMALL_GRIDS)
@pytest.mark.parametrize("source", ["gauss:7x12@0.3", "equiangular:8x9", "H2", "O6"])
def test_the_mean_is_kept_and_every_cell_is_an_average(source: str, target: str) -> None:
    grids = [Grid.from_name(name) for name in (source, target)]
    dense = matrix(*grids)
    assert dense.min() >= 0
    np.testing.assert_allclose(dense.sum(1), 1, rtol=0, atol=1e-12)
    shares = [grid.weights.ravel() / grid.weights.sum() for grid in grids]
    np.testing.assert_allclose(shares[1] @ dense, shares[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_onto_itself_nothing_changes(name: str) -> None:
    grid = Grid.from_name(name)
    np.testing.assert_allclose(matrix(grid, grid), np.eye(grid.size), rtol=0, atol=1e-11)


def test_one_ring_is_cut_into_parts_of_a_turn() -> None:
    # Cells of 120 degrees around 0, 120, 240 and of 90 degrees around 0, 90, ...
    found = 12 * matrix(Grid.gauss(1, 4), Grid.gauss(1, 3)) / 3
    wanted = [[3, 0.5, 0, 0.5], [0, 2.5, 1.5, 0], [0, 0, 1.5, 2.5]]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-13)


def test_bands_share_their_areas() -> None:
    # Two halves of the sphere into three thirds.
    source = Grid.from_rings([1.0, 2.0], [1, 1], [0, 0], [2 * np.pi] * 2)
    target = Grid.from_rings([0.5, 1.5, 2.5], [1, 1, 1], [0, 0, 0], [4 * np.pi / 3] * 3)
    wanted = [[1, 0], [0.5, 0.5], [0, 1]]
    np.testing.assert_allclose(matrix(source, target), wanted, rtol=0, atol=1e-14)


def test_a_point_without_area_takes_the_nearest_value() -> None:
    target = Grid.equiangular(8, 4)
    assert target.ring_weights[0] == 0
    dense = matrix(Grid.gauss(6, 12), target)[:4]
    assert ((dense == 1).sum(1) == 1).all()
    assert not dense[:, 12:].any()


@pytest.mark.parametrize(("source", "target"), [("gauss:24x48", "H4"), ("O16", "fejer:18x36@0.5")])
def test_integrals_are_kept_to_twelve_digits(source: str, target: str) -> None:
    here, there = Grid.from_name(source), Grid.from_name(target)
    u = torch.randn(3, *here.shape, dtype=torch.float64, requires_grad=True)
    moved = ops.resample(u, here, there, mode="conservative")
    assert moved.shape == (3, *there.shape)
    before, after = ops.integrate(u, here), ops.integrate(moved, there)
    torch.testing.assert_close(after, before, rtol=0, atol=1e-12)
    assert u.min() <= moved.min() <= moved.max() <= u.max()
    # What a point adds to the integral is its weight, on either grid.
    (gradient,) = torch.autograd.grad(after.sum(), u)
    torch.testing.assert_close(gradient[0], torch.tensor(here.weights), rtol=1e-11, atol=0)


def test_error_falls_with_the_resolution() -> None:
    errors = []
    for n in (12, 24, 48):
        here, there = Grid.gauss(n, 2 * n), Grid.healpix(n // 4)
        moved = ops.resample(torch.tensor(here.xyz.T).reshape(3, *here.shape), here, there,
                             mode="conservative")  # fmt: skip
        errors.append(float((moved - torch.tensor(there.xyz.T)).abs().mean()))
    assert errors[0] > 1.7 * errors[1] > 1.7**2 * errors[2]


def test_rings_that_cover_a_part_of_the_sphere_are_refused() -> None:
    grid = Grid.gauss(8, 16)
    stack = Grid.from_rings(
        grid.theta[2:6], grid.nphi[2:6], grid.phi0[2:6], grid.ring_weights[2:6], partial=True
    )
    for part in (stack, grid.part(2, 6)):
        assert not part.covers_sphere
        for pair in ((part, grid), (grid, part)):
            with pytest.raises(ValueError, match=r"leaves out a part .* take bilinear"):
                overlap_entries(*pair)


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "equiangular:3x4", "gauss:1x1"])
def test_families_cover_the_sphere(name: str) -> None:
    assert Grid.from_name(name).covers_sphere
