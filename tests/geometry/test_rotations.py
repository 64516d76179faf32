import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from spherule.geometry.rotations import about_y, about_z, rotation_matrix


@pytest.mark.parametrize("angle", [0.0, 0.3, -2.0, 7.0])
def test_rotations_are_scipys(angle: float) -> None:
    for made, axis in ((about_y(angle), "y"), (about_z(angle), "z")):
        np.testing.assert_allclose(made, Rotation.from_euler(axis, angle).as_matrix(), atol=1e-15)


def test_a_rotation_is_one_up_to_single_precision() -> None:
    R = about_z(0.4) @ about_y(1.0)
    np.testing.assert_array_equal(rotation_matrix("R", R), R)
    rotation_matrix("R", R.astype(np.float32))
    with pytest.raises(ValueError, match=r"turn: expected .*; turn turn\^T differs from 1 by"):
        rotation_matrix("turn", 1.0001 * R)
