import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y

from spherule import ops
from tests.oracles import random_coeffs


def evaluate(coeffs: torch.Tensor, xyz: np.ndarray) -> np.ndarray:
    """The field at any points, by scipy's harmonics."""
    theta = np.arctan2(np.hypot(xyz[:, 0], xyz[:, 1]), xyz[:, 2])
    phi = np.arctan2(xyz[:, 1], xyz[:, 0])
    total = np.zeros(len(xyz))
    for l in range(coeffs.shape[-1]):
        for m in range(l + 1):
            value = coeffs[l, m].item() * sph_harm_y(l, m, theta, phi)
            total += (2 - (m == 0)) * value.real
    return total


@given(angles=st.tuples(*[st.floats(-4, 4)] * 3))
def test_rotated_field_has_the_values_of_the_rotated_points(angles: tuple) -> None:
    R = Rotation.from_euler("zyz", angles).as_matrix()
    coeffs = random_coeffs(7)
    x = np.random.default_rng(0).normal(size=(20, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(
        evaluate(ops.rotate(coeffs, R), x), evaluate(coeffs, x @ R), atol=1e-11
    )


@pytest.mark.parametrize("tilt", [0.0, 1e-16, 1e-10, 1e-5, np.pi - 1e-10, np.pi])
def test_rotations_near_the_poles(tilt: float) -> None:
    R = Rotation.from_euler("zyz", [0.7, tilt, -1.9]).as_matrix()
    coeffs = random_coeffs(20)
    there = ops.rotate(coeffs, R)
    torch.testing.assert_close(ops.rotate(there, R.T), coeffs, rtol=0, atol=1e-12)
    x = np.random.default_rng(0).normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(evaluate(there, x), evaluate(coeffs, x @ R), atol=1e-10)


def test_rotations_compose_and_keep_power_at_high_degree() -> None:
    first, second = Rotation.random(2, random_state=0).as_matrix()
    coeffs = random_coeffs(128, 2)
    chained = ops.rotate(ops.rotate(coeffs, first), second)
    torch.testing.assert_close(chained, ops.rotate(coeffs, second @ first), rtol=0, atol=1e-11)
    torch.testing.assert_close(ops.power_spectrum(chained), ops.power_spectrum(coeffs))


def test_rotation_is_differentiable_and_keeps_precision() -> None:
    R = Rotation.random(random_state=1).as_matrix()
    coeffs = random_coeffs(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda c: ops.rotate(c, R), (coeffs,))
    single = ops.rotate(random_coeffs(3, dtype=torch.complex64), torch.tensor(R).float())
    assert single.dtype == torch.complex64


def test_bad_input_is_named(unchecked) -> None:
    coeffs = random_coeffs(3)
    for R, words in [
        (np.eye(2), r"R: expected a rotation matrix \(3, 3\)"),
        (2 * np.eye(3), "differs from 1 by 3"),
        (-np.eye(3), "reflection"),
        (np.full((3, 3), np.nan), "R: expected finite numbers"),
    ]:
        with pytest.raises(ValueError, match=words):
            ops.rotate(coeffs, R)
