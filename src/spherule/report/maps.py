"""Maps of fields on any ring grid: the whole sphere (Mollweide) or one side (orthographic)."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from spherule.geometry.great_circles import angles
from spherule.geometry.interpolation import nearest_points
from spherule.geometry.rotations import about_y, about_z
from spherule.grids import Grid
from spherule.ops import resample
from spherule.report.earth import coastlines, graticule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

MISSING = "0.72"
_COAST: dict[str, Any] = {"color": "0.1", "linewidth": 0.6}
_GRATICULE: dict[str, Any] = {"color": "0.25", "linewidth": 0.4, "alpha": 0.4}
SMOOTH = 180
"""Rings from which on a map may be drawn as it is."""
Projection: TypeAlias = Literal["mollweide", "orthographic"]


def draw_map(
    ax: "Axes",
    u: ArrayLike,
    grid: Grid,
    *,
    projection: Projection = "mollweide",
    center: tuple[float, float] = (0.0, 0.0),
    pixels: int = 600,
    limits: tuple[float, float] | None = None,
    cmap: str = "RdBu_r",
    earth: bool = False,
) -> "AxesImage":
    """Draw a field `grid.shape` so that each point's cell is seen, gray where it is missing, or
    colors `(*grid.shape, 3)` from 0 to 1; `center` is latitude and longitude in degrees, `earth`
    draws coasts and meridians.
    """
    values = np.asarray(u, dtype=np.float64)
    if values.shape not in (grid.shape, (*grid.shape, 3)):
        raise ValueError(f"u: expected {grid.shape} for {grid!r}, got {values.shape}")
    values = values.reshape(grid.size, *values.shape[len(grid.shape) :])
    visible, points = _seen(grid, projection, tuple(center), pixels)
    image = np.full((*visible.shape, *values.shape[1:]), np.nan)
    image[visible] = values[points]
    if image.ndim == 3:
        image = np.dstack([np.nan_to_num(image), visible])  # the rest is transparent
    width, height = _HALVES[projection]
    low, high = (np.nanmin(values), np.nanmax(values)) if limits is None else limits
    drawn = ax.imshow(
        image,
        origin="lower",
        extent=(-width, width, -height, height),
        cmap=cmap,
        vmin=low,
        vmax=high,
        interpolation="antialiased",
    )
    outline = np.linspace(0, 2 * np.pi, 361)
    ax.fill(width * np.cos(outline), height * np.sin(outline), color=MISSING, zorder=-1)
    if earth:
        for lines, style in ((graticule(), _GRATICULE), (coastlines(), _COAST)):
            paths = [_project(line @ facing(*center).T, projection) for line in lines]
            ax.plot(*np.concatenate(paths).T, **style)
    ax.plot(width * np.cos(outline), height * np.sin(outline), color="0.35", linewidth=0.8)
    ax.set_aspect("equal")
    ax.set_axis_off()
    return drawn


def smooth(u: NDArray, grid: Grid) -> tuple[NDArray, Grid]:
    """A field on a grid fine enough that its cells are not seen; one with holes stays as it is."""
    if grid.nrings >= SMOOTH or np.isnan(u).any():
        return u, grid
    fine = Grid.gauss(SMOOTH, 2 * SMOOTH)
    return resample(torch.from_numpy(u), grid, fine).numpy(), fine


@lru_cache(maxsize=8)  # a page shows the same view of many fields
def _seen(
    grid: Grid, projection: Projection, center: tuple[float, float], pixels: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which pixels see the sphere, and which point of the grid each of these sees."""
    width, height = _HALVES[projection]
    x, y = np.meshgrid(*(_pixel_centers(side, pixels * side // width) for side in (width, height)))
    xyz, visible = _UNPROJECT[projection](x, y)
    return visible, nearest_points(grid, *angles(xyz[visible] @ facing(*center)))


def _pixel_centers(side: float, count: int) -> NDArray[np.float64]:
    return side * ((np.arange(count) + 0.5) / count * 2 - 1)


def _orthographic(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Points of the unit sphere seen from the x axis, and which pixels see it."""
    depth = 1 - x**2 - y**2
    return np.stack([np.sqrt(np.maximum(depth, 0)), x, y], axis=-1), depth >= 0


def _mollweide(x: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    auxiliary = np.arcsin(np.clip(y, -1, 1))
    latitude = np.arcsin(np.clip((2 * auxiliary + np.sin(2 * auxiliary)) / np.pi, -1, 1))
    longitude = np.pi / 2 * x / np.maximum(np.cos(auxiliary), 1e-12)
    inside = (x / 2) ** 2 + y**2 <= 1
    cos = np.cos(latitude)
    return np.stack(
        [cos * np.cos(longitude), cos * np.sin(longitude), np.sin(latitude)], axis=-1
    ), inside


_HALVES = {"mollweide": (2, 1), "orthographic": (1, 1)}
"""Of a map's width and height."""
_UNPROJECT = {"mollweide": _mollweide, "orthographic": _orthographic}


def _project(xyz: NDArray, projection: Projection) -> NDArray:
    """The picture (points + 1, 2) of a line of unit vectors, with NaN where it is not seen, where
    it leaves the map on one side to come back on the other, and at its end.
    """
    if projection == "orthographic":
        flat = np.where(xyz[:, :1] > 0, xyz[:, 1:], np.nan)
    else:
        latitude, longitude = np.arcsin(xyz[:, 2].clip(-1, 1)), np.arctan2(xyz[:, 1], xyz[:, 0])
        auxiliary = latitude.copy()
        for _ in range(30):  # Newton; slow only at the poles, where it matters least
            slope = np.maximum(2 + 2 * np.cos(2 * auxiliary), 1e-9)
            wrong = 2 * auxiliary + np.sin(2 * auxiliary) - np.pi * np.sin(latitude)
            auxiliary = (auxiliary - wrong / slope).clip(-np.pi / 2, np.pi / 2)
        flat = np.stack([2 / np.pi * longitude * np.cos(auxiliary), np.sin(auxiliary)], axis=-1)
        torn = np.flatnonzero(np.abs(np.diff(longitude)) > np.pi) + 1
        flat = np.insert(flat, torn, np.nan, axis=0)
    return np.append(flat, [[np.nan, np.nan]], axis=0)


def facing(latitude: float, longitude: float) -> NDArray[np.float64]:
    """The rotation, acting from the right, that brings the x axis to this place, north up."""
    a, b = np.radians(latitude), np.radians(longitude)
    return about_y(a) @ about_z(b).T
