"""Repeatable randomness for textures: a hash of integers, smooth noise, and filtered stripes."""

import numpy as np
from numpy.typing import NDArray


def hashed(i: NDArray, j: NDArray, seed: NDArray) -> NDArray[np.float32]:
    """A number in [0, 1) for each pair of integers and seed."""
    h = i.astype(np.int32).view(np.uint32) * np.uint32(0x9E3779B1)
    h ^= j.astype(np.int32).view(np.uint32) * np.uint32(0x85EBCA77)
    h ^= seed.astype(np.uint32) * np.uint32(0xC2B2AE3D)
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        h ^= h >> np.uint32(shift)
        h *= np.uint32(factor)
    h ^= h >> np.uint32(15)
    return (h >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def noise(u: NDArray, v: NDArray, seed: NDArray) -> NDArray[np.float32]:
    """Smooth noise of mean 0 within [-1, 1], a cell being 1 wide."""
    i, j = np.floor(u), np.floor(v)
    s, t = u - i, v - j
    s, t = s * s * (3 - 2 * s), t * t * (3 - 2 * t)
    i, j = i.astype(np.int32), j.astype(np.int32)
    low = hashed(i, j, seed) * (1 - s) + hashed(i + 1, j, seed) * s
    high = hashed(i, j + 1, seed) * (1 - s) + hashed(i + 1, j + 1, seed) * s
    return ((low * (1 - t) + high * t) * 2 - 1).astype(np.float32, copy=False)


def faded(footprint: NDArray, cell: NDArray | float) -> NDArray:
    """How much of a detail is left when a pixel is `footprint` wide: 1 down to 0."""
    return np.clip(1.5 - footprint / cell, 0.0, 1.0)


def stripes(
    u: NDArray, period: NDArray | float, width: NDArray | float, footprint: NDArray
) -> NDArray:
    """The part of a pixel that a stripe covers: one of `width` at each multiple of `period`.

    The box filter of a pulse train is exact: the difference of its integral at the pixel's ends.
    """

    def covered(x: NDArray) -> NDArray:
        whole = np.floor(x / period)
        return whole * width + np.minimum(x - whole * period, width)

    footprint = np.maximum(footprint, 1e-4)
    start = u + width / 2 - footprint / 2
    return (covered(start + footprint) - covered(start)) / footprint
