"""Rotations as matrices (3, 3): points x become R x, fields f'(x) = f(R^-1 x)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spherule.grids.rings import finite_reals


def about_y(angle: float) -> NDArray[np.float64]:
    """The rotation that moves the pole towards longitude 0."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]])


def about_z(angle: float) -> NDArray[np.float64]:
    """The rotation about the axis of the poles, eastward."""
    cos, sin = np.cos(angle), np.sin(angle)
    return np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])


def rotation_matrix(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """The values as a rotation, or an error that names the argument."""
    matrix = finite_reals(name, values)
    if matrix.shape != (3, 3):
        raise ValueError(f"{name}: expected a rotation matrix (3, 3), got {matrix.shape}")
    if not np.allclose(matrix @ matrix.T, np.eye(3), rtol=0, atol=1e-5):
        raise ValueError(
            f"{name}: expected a rotation matrix; {name} {name}^T differs from 1 by "
            f"{np.abs(matrix @ matrix.T - np.eye(3)).max():.3g}"
        )
    if np.linalg.det(matrix) < 0:
        raise ValueError(f"{name}: has determinant -1, a reflection; expected a rotation")
    return matrix
