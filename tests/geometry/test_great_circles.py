import mpmath
import numpy as np
import pytest

from spherule.geometry.great_circles import angles, distance, haversine, seen_from


def vector(theta, phi) -> np.ndarray:
    return np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1)


def test_distances_are_those_of_vectors() -> None:
    rng = np.random.default_rng(0)
    (theta, other), turn = rng.uniform(0, np.pi, (2, 200)), rng.uniform(-7, 7, 200)
    product = (vector(theta, 0 * turn) * vector(other, turn)).sum(-1)
    np.testing.assert_allclose(distance(theta, other, turn), np.arccos(product), atol=1e-12)
    np.testing.assert_allclose(haversine(theta, other, turn), (1 - product) / 2, atol=1e-15)


@pytest.mark.parametrize("step", [1e-3, 1e-8, 1e-14])
def test_near_points_lose_no_digits(step: float) -> None:
    with mpmath.workdps(60):
        for theta, turn in ((1.0, step), (1e-5, 0.5 * step), (0.7, 0.0)):
            other = theta + step
            t, o, p = (mpmath.mpf(x) for x in (theta, other, turn))
            cosine = mpmath.cos(t) * mpmath.cos(o) + mpmath.sin(t) * mpmath.sin(o) * mpmath.cos(p)
            exact = float(mpmath.acos(cosine))
            assert float(distance(theta, other, turn)) == pytest.approx(exact, rel=1e-14)


def test_antipodes_are_pi_apart() -> None:
    theta = np.linspace(0, np.pi, 9)
    np.testing.assert_allclose(distance(theta, np.pi - theta, np.pi), np.pi, atol=3e-8)
    assert not np.isnan(distance(theta, np.pi - theta, np.pi)).any()


def test_azimuth_runs_from_south_over_east() -> None:
    away = 1e-3
    south, east, north, west = (1 + away, 0.0), (1.0, away), (1 - away, 0.0), (1.0, -away)
    theta, turn = np.array([south, east, north, west]).T
    far, azimuth = seen_from(1.0, theta, turn)
    np.testing.assert_allclose(azimuth, np.array([0, 1, 2, 3]) * np.pi / 2, atol=1e-3)
    np.testing.assert_array_equal(far, distance(1.0, theta, turn))


def test_angles_undo_vectors_of_any_length() -> None:
    rng = np.random.default_rng(1)
    theta, phi = rng.uniform(0, np.pi, (4, 5)), rng.uniform(-np.pi, np.pi, (4, 5))
    found = angles(3 * vector(theta, phi))
    np.testing.assert_allclose(found, (theta, phi), atol=1e-14)
