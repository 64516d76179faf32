import mpmath
import numpy as np
import pytest
from scipy.special import roots_legendre

from spherule.grids import quadrature

DEGREE = {
    "gauss": lambda n: 2 * n - 1,
    "lobatto": lambda n: 2 * n - 3,
    "clenshaw_curtis": lambda n: n - 1 + n % 2,
    "fejer": lambda n: n - 1 + n % 2,
}


def legendre_integrals(theta: np.ndarray, weights: np.ndarray, degree: int) -> np.ndarray:
    """The rule applied to P_0 ... P_degree, in extended precision."""
    x = np.cos(theta.astype(np.longdouble))
    before, p = np.ones_like(x), x
    integrals = [(weights * before).sum()]
    for l in range(1, degree + 1):
        integrals.append((weights * p).sum())
        before, p = p, ((2 * l + 1) * x * p - l * before) / (l + 1)
    return np.array(integrals)


@pytest.mark.parametrize("rule", DEGREE)
@pytest.mark.parametrize("sizes", [range(2, 65), (96, 127, 128, 255, 256), (511, 512)], ids=str)
def test_rule_is_exact_to_the_degree_it_promises(rule: str, sizes) -> None:
    for n in sizes:
        theta, weights = getattr(quadrature, rule)(n)
        assert theta.shape == weights.shape == (n,)
        assert np.all(np.diff(theta) > 0)
        assert np.all(weights > 0)
        integrals = legendre_integrals(theta, weights, DEGREE[rule](n))
        assert abs(integrals[0] - 2) <= 1e-14
        assert np.abs(integrals[1:]).max() <= 1e-14


@pytest.mark.parametrize("rule", DEGREE)
def test_rule_is_not_exact_beyond(rule: str) -> None:
    for n in (4, 5, 12):
        degree = DEGREE[rule](n)
        assert abs(legendre_integrals(*getattr(quadrature, rule)(n), degree + 1)[-1]) > 1e-4


def test_gauss_agrees_with_scipy() -> None:
    x, w = roots_legendre(200)
    theta, weights = quadrature.gauss(200)
    np.testing.assert_allclose(np.cos(theta), x[::-1], atol=1e-15)
    np.testing.assert_allclose(weights, w, atol=2e-15)


def test_gauss_near_the_pole_agrees_with_mpmath() -> None:
    theta, weights = quadrature.gauss(512)
    with mpmath.workdps(40):
        root = mpmath.cos(mpmath.mpf(theta[0]))
        for _ in range(3):
            p, before = mpmath.legendre(512, root), mpmath.legendre(511, root)
            slope = 512 * (before - root * p) / (1 - root**2)
            root -= p / slope
        assert abs(float(mpmath.acos(root)) / theta[0] - 1) < 4e-16
        assert abs(float(2 / ((1 - root**2) * slope**2)) / weights[0] - 1) < 1e-14


@pytest.mark.parametrize("n", [2, 31, 128])
def test_equiangular_rule_has_its_own_area(n: int) -> None:
    theta, weights = quadrature.equiangular(n)
    assert theta[0] == weights[0] == 0
    assert theta[-1] < np.pi
    # sum of sines: cot of half a step
    assert abs(weights.sum() * np.tan(np.pi / (2 * n)) * n / np.pi - 1) < 1e-14
