from collections import deque

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.special import sph_harm_y

from spherule import Grid
from spherule.geometry.harmonics import (
    legendre_rows,
    legendre_table,
    real_harmonics,
)
from tests.oracles import legendre_exact

ANGLES = [0.0, 1e-6, 1e-3, 0.02, 0.3, 1.0, np.pi / 2, 2.9, 3.14]


def legendre(l: int, m: int, theta: ArrayLike) -> NDArray[np.float64]:
    (last,) = deque(legendre_rows(l, theta), maxlen=1)
    return last[m]


@pytest.mark.parametrize("l", [0, 1, 2, 5, 17, 64, 255, 256])
def test_legendre_agrees_with_mpmath(l: int) -> None:
    orders = sorted({0, min(1, l), min(2, l), min(17, l), l // 2, max(l - 1, 0), l})
    for m in orders:
        exact = [legendre_exact(l, m, theta) for theta in ANGLES]
        ours = legendre(l, m, np.array(ANGLES))
        np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-12)


def test_values_come_back_after_underflow() -> None:
    # At theta = 0.05 the diagonal P_mm of m = 300 is about 1e-389; degree 2000 is of order one
    # again.
    for l, m in ((2000, 90), (1500, 60), (700, 300)):
        theta = 1.2 * m / l
        exact = legendre_exact(l, m, theta)
        assert abs(exact) > 1e-3
        assert abs(legendre(l, m, theta) - exact) < 1e-11


def test_addition_theorem_holds_to_degree_2048() -> None:
    theta = np.array([0.0, 1e-9, 1e-4, 0.01, 0.5, 1.5, 3.0, np.pi])
    for l, row in enumerate(legendre_rows(2048, theta)):
        assert np.isfinite(row).all()
        total = 2 * (row**2).sum(0) - row[0] ** 2
        np.testing.assert_allclose(total, (2 * l + 1) / (4 * np.pi), rtol=1e-11)


@pytest.mark.parametrize(("l", "m"), [(0, 0), (1, 1), (3, 2), (20, 5), (40, 40)])
def test_harmonics_are_scipys(l: int, m: int) -> None:
    theta = np.random.default_rng(0).uniform(0, np.pi, 50)
    np.testing.assert_allclose(legendre(l, m, theta), sph_harm_y(l, m, theta, 0.0), atol=1e-13)


def test_real_harmonics_are_orthonormal_and_the_usual_ones() -> None:
    grid = Grid.gauss(8, 16)
    harmonics = real_harmonics(49, grid)
    gram = (harmonics * grid.weights.ravel()) @ harmonics.T
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-14)
    # Degree 1 is sqrt(3 / 4 pi) (y, z, x).
    np.testing.assert_allclose(
        harmonics[1:4].T, np.sqrt(3 / (4 * np.pi)) * grid.xyz[:, [1, 2, 0]], atol=1e-15
    )


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9, 10])
def test_real_harmonics_are_as_many_as_asked_for(count: int) -> None:
    grid = Grid.octahedral(2)
    harmonics = real_harmonics(count, grid)
    assert harmonics.shape == (count, grid.size)
    np.testing.assert_array_equal(harmonics, real_harmonics(16, grid)[:count])


def test_table_has_zeros_above_the_diagonal() -> None:
    table = legendre_table(5, np.array([0.3, 1.0]))
    assert table.shape == (6, 6, 2)
    for m in range(6):
        assert not table[m, :m].any()
        assert table[m, m:].all()
