"""The arrays that a grid is made of, and what must hold of them."""

import hashlib
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Reals = NDArray[np.float64]

# Points are counted in 32 bits.
MOST_POINTS = 2**31 - 1
# Longitudes farther out than this, in radians, keep fewer than ten digits of their direction.
_FARTHEST = 1e6
# What simple rules of few rings miss of the sphere's area; other conventions of weights miss more.
_AREA_TOLERANCE = 0.01


class Rings(NamedTuple):
    """Of each ring from north to south, as `Grid` describes them."""

    theta: Reals
    nphi: NDArray[np.int64]
    phi0: Reals
    ring_weights: Reals

    def digest(self) -> str:
        """The same for the same bits."""
        digest = hashlib.blake2b(digest_size=8)
        for array in self:
            digest.update(array.tobytes())
        return digest.hexdigest()


def checked(
    theta: ArrayLike, nphi: ArrayLike, phi0: ArrayLike, ring_weights: ArrayLike, *, partial: bool
) -> Rings:
    """Rings of a user's own; unless `partial` they cover the sphere."""
    theta, phi0, weights = (
        finite_reals(name, values)
        for name, values in (("theta", theta), ("phi0", phi0), ("ring_weights", ring_weights))
    )
    counts = np.atleast_1d(_as_array("nphi", nphi))
    if not np.issubdtype(counts.dtype, np.integer):
        raise TypeError(f"nphi: expected integers, got {_entries(nphi, counts)}")
    sizes = {"theta": theta, "nphi": counts, "phi0": phi0, "ring_weights": weights}
    if theta.size == 0 or any(a.shape != (theta.size,) for a in sizes.values()):
        shapes = ", ".join(f"{name} {a.shape}" for name, a in sizes.items())
        raise ValueError(f"expected one entry a ring in each of four 1-D arrays, got {shapes}")
    if theta[0] < 0 or theta[-1] > np.pi or np.any(np.diff(theta) <= 0):
        # Longitudes cannot tell: many turns are as good as one.
        degrees = "; they look like degrees: use np.radians, for phi0 too"
        raise ValueError(
            f"theta: colatitudes must increase strictly within [0, pi] radians, got "
            f"{theta[0]:g} ... {theta[-1]:g}{degrees if theta.max() > 2 * np.pi else ''}"
        )
    if np.abs(phi0).max() > _FARTHEST:
        raise ValueError(
            f"phi0: expected longitudes in radians within {_FARTHEST:g}, where they still mean "
            f"a direction, got {phi0[np.abs(phi0).argmax()]:g}"
        )
    if counts.min() < 1:
        raise ValueError(f"nphi: every ring needs a point, got {counts.min()}")
    if counts.sum(dtype=float) > MOST_POINTS:
        raise ValueError(f"nphi: expected at most {MOST_POINTS} points, got {counts.sum()}")
    if weights.min() < 0 or weights.max() == 0:
        least, most = weights.min(), weights.max()
        raise ValueError(f"ring_weights must be >= 0, and some > 0, got {least} to {most}")
    area = float((weights * counts).sum())
    if not partial and not is_sphere(area):
        raise ValueError(
            f"ring_weights: the areas of all points sum to {area:.6g}, not to the sphere's "
            f"4 pi = {4 * np.pi:.6g}; a weight is that of one point. For rings that cover a "
            "part of the sphere, partial=True"
        )
    return Rings(theta + 0.0, counts.astype(np.int64), once_around(phi0), weights)


def is_sphere(area: float) -> bool:
    """Whether areas of points cover the sphere."""
    return abs(area / (4 * np.pi) - 1) <= _AREA_TOLERANCE


def once_around(phi: Reals) -> Reals:
    """Longitudes in [0, 2 pi)."""
    reduced = np.mod(phi, 2 * np.pi)
    # What is a little less than 0 rounds to a whole turn.
    return np.where(reduced < 2 * np.pi, reduced, 0.0)


def finite_reals(name: str, values: ArrayLike) -> Reals:
    """The values as a float64 array, at least 1-D, or an error that names the argument."""
    array = np.atleast_1d(_as_array(name, values))
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name}: expected real numbers, got {_entries(values, array)}")
    array = array.astype(np.float64)
    if not np.all(np.isfinite(array)):
        raise ValueError(
            f"{name}: expected finite numbers, got {np.count_nonzero(~np.isfinite(array))} of "
            f"{array.size} that are not"
        )
    return array


def _entries(values: ArrayLike, array: NDArray) -> str:
    """What came, for messages."""
    kind = "" if hasattr(values, "dtype") else f"{type(values).__name__} of "
    return f"{kind}{array.dtype}"


def _as_array(name: str, values: ArrayLike) -> NDArray:
    try:
        return np.asarray(values)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: expected numbers in rows of one length: {error}") from None
