"""The picture for where there is no WebGL, and for paper: a PNG without any library."""

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.interpolation import nearest_points
from spherule.grids import Grid

GRAY = (158, 158, 158)
"""Of missing values."""
SIDE = 420


def still(
    values: NDArray,
    grid: Grid,
    table: NDArray[np.uint8],
    limits: tuple[float, float],
    place: tuple[float, float],
) -> bytes:
    """One field (points), seen from above a place: latitude and longitude in degrees."""
    axis = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    x, y = np.meshgrid(axis, -axis)
    depth = 1 - x**2 - y**2
    seen = depth > 0
    toward, east, north = frame(*place)
    xyz = (
        np.sqrt(depth[seen])[:, None] * toward + x[seen][:, None] * east + y[seen][:, None] * north
    )
    theta = np.arctan2(np.hypot(xyz[:, 0], xyz[:, 1]), xyz[:, 2])
    phi = np.arctan2(xyz[:, 1], xyz[:, 0])
    found = values.ravel()[nearest_points(grid, theta, phi)].astype(np.float64)
    picture = np.full((SIDE, SIDE, 3), 255, np.uint8)
    picture[seen] = paint(found, table, limits)
    return png(picture)


def frame(latitude: float, longitude: float) -> tuple[NDArray, NDArray, NDArray]:
    """Unit vectors towards a place, and to the east and north of it."""
    a, b = np.radians([latitude, longitude])
    return (
        np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)]),
        np.array([-np.sin(b), np.cos(b), 0.0]),
        np.array([-np.sin(a) * np.cos(b), -np.sin(a) * np.sin(b), np.cos(a)]),
    )


def paint(
    values: NDArray, table: NDArray[np.uint8], limits: tuple[float, float]
) -> NDArray[np.uint8]:
    """Colors of values: gray where they are missing."""
    low, high = limits
    finite = np.isfinite(values)
    t = (np.where(finite, values, low) - low) / (high - low)
    colors = table[np.rint(t.clip(0, 1) * (len(table) - 1)).astype(int)]
    return np.where(finite[..., None], colors, np.array(GRAY, np.uint8))


def png(picture: NDArray[np.uint8]) -> bytes:
    """A picture (rows, columns, 3) as a file."""
    rows, columns, _ = picture.shape
    # A 0 before each row: no filter.
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), picture.reshape(rows, -1)], axis=1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
