"""Panoramas of a room: color, label and depth of the ray through each point of a grid.

Labels and depth are those of the ray through the point itself. Colors are antialiased where
faces meet: four rays share such a pixel, and take the colors of the points beside it that see the
same faces.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from spherule import checks
from spherule.geometry.rotations import rotation_matrix
from spherule.grids import Grid, image_grid
from spherule.grids.serial import as_grid
from spherule.rooms.classes import UNKNOWN
from spherule.rooms.light import irradiance, shadows
from spherule.rooms.outside import outside
from spherule.rooms.scene import CEILING, Lamp, Scene
from spherule.rooms.textures import GLASS, GLOW, SCREEN, TEXTURES, Spot
from spherule.rooms.trace import ROUND, Hits, blocks, product, trace


@dataclass(frozen=True)
class View:
    """What the camera sees, arrays in the grid's shape."""

    rgb: NDArray[np.uint8]
    """(*grid.shape, 3), sRGB."""
    label: NDArray[np.uint8]
    """Index into CLASSES."""
    depth: NDArray[np.float32]
    """Meters from the camera along the ray; NaN where it is unknown."""
    surface: NDArray[np.int64]
    """Number of the scene's surface."""


@checks.arguments
def render(
    scene: Scene, grid: Grid | str, *, rotation: Float[NDArray, "3 3"] | None = None
) -> View:
    """The room on a grid, turned as f'(x) = f(R^-1 x): the point x shows what lies along R^-1 x.

    A grid is a Grid, its name, or the size of an image such as 128x256, whose pixels are those of
    `fejer:128x256@0.5`.
    """
    if isinstance(grid, str):
        size = grid[:1].isdigit()
        grid = image_grid(*checks.shape("grid", grid)) if size else as_grid(grid)
    turned = np.eye(3) if rotation is None else rotation_matrix("rotation", rotation)
    directions = product(grid.xyz, turned)
    hits = trace(scene, directions)
    left = _shadows(scene, grid, hits, directions)
    color = np.empty((3, grid.size), np.float32)
    for block in blocks(grid.size):
        some = hits.take(block)
        color[:, block] = shade(scene, some, directions[block], left[:, block], grid.spacing)
    _antialias(scene, grid, turned, hits, left, color)
    label = scene.surfaces.label[hits.surface]
    depth = hits.distance.astype(np.float32)
    depth[label == UNKNOWN] = np.nan
    return View(
        rgb=_encoded(color).T.reshape(*grid.shape, 3),
        label=label.reshape(grid.shape),
        depth=depth.reshape(grid.shape),
        surface=hits.surface.reshape(grid.shape),
    )


def _shadows(
    scene: Scene, grid: Grid, hits: Hits, directions: NDArray[np.float64]
) -> NDArray[np.float32]:
    """Shadows on every second point of a ring, alternating; the others take the mean of their
    neighbors on the same face, or have their own if there is none.
    """
    seen, beside = 8 * hits.surface + hits.face, _beside(grid)
    own = _alternating(grid)
    same = (seen[beside] == seen) & own[beside]
    count = np.where(own, 0, same.sum(0))
    done = np.flatnonzero(own | (count == 0))
    points = _points(scene, hits, directions)
    left = np.zeros((len(scene.lamps) + 2, seen.size), np.float32)
    for block in blocks(done.size):
        some = done[block]
        left[:, some] = shadows(scene, points[:, some], hits.normal[:, some].astype(np.float32))
    rest = np.flatnonzero(count)
    total = np.zeros((left.shape[0], rest.size), np.float32)
    for side, like in zip(beside, same, strict=True):
        total += left[:, side[rest]] * like[rest]
    left[:, rest] = total / count[rest].astype(np.float32)
    if scene.sun is not None:
        # The sun's shadows are sharp: without this, their edges would show who has its own.
        alike = seen[beside] == seen
        around = (left[-1][beside] * alike).sum(0) / np.maximum(alike.sum(0), 1)
        left[-1] = np.where(alike.any(0), 0.5 * (left[-1] + around), left[-1])
    return left


def _points(scene: Scene, hits: Hits, directions: NDArray[np.float64]) -> NDArray[np.float32]:
    return (scene.camera[:, None] + hits.distance * directions.T).astype(np.float32)


def shade(
    scene: Scene,
    hits: Hits,
    directions: NDArray[np.float64],
    left: NDArray[np.float32],
    spacing: float,
) -> NDArray[np.float32]:
    """Colors between 0 and 1, linear in what a display shows, (3, n); `left` are the shadows."""
    d = directions.T.astype(np.float32)
    normal = hits.normal.astype(np.float32)
    points = _points(scene, hits, directions)
    material = scene.surfaces.material[hits.surface]
    texture = scene.materials.texture[material]
    slant = np.maximum(np.abs(d[0] * normal[0] + d[1] * normal[1] + d[2] * normal[2]), 0.12)
    footprint = (spacing * hits.distance).astype(np.float32) / slant
    albedo = _albedo(scene, hits, material, texture, footprint)
    color = albedo * irradiance(scene, points, normal, left)
    shown = np.flatnonzero(texture == SCREEN)
    color[:, shown] += np.float32(0.8) * albedo[:, shown]
    glass = np.flatnonzero(texture == GLASS)
    color[:, glass] = outside(scene, d[:, glass])
    glow = np.flatnonzero(texture == GLOW)
    color[:, glow] = scene.materials.a[material[glow]].T
    ceiling = np.flatnonzero(hits.surface == CEILING)
    for lamp in scene.lamps:
        if lamp.panel and ceiling.size:
            cover = _panel(lamp, points[:, ceiling], footprint[ceiling])
            bright = (3.0 * lamp.power / lamp.power.max()).astype(np.float32)[:, None]
            color[:, ceiling] += (bright - color[:, ceiling]) * cover
    return 1 - np.exp(np.float32(-scene.exposure) * color)


def _panel(lamp: Lamp, points: NDArray, footprint: NDArray) -> NDArray[np.float32]:
    """The part of each pixel that a panel of the ceiling covers."""
    width = np.maximum(footprint, 0.01)
    inside = [lamp.half[k] - np.abs(points[k] - np.float32(lamp.center[k])) for k in (0, 1)]
    x, y = (np.clip(side / width + 0.5, 0, 1) for side in inside)
    return (x * y).astype(np.float32)


def _albedo(
    scene: Scene, hits: Hits, material: NDArray, texture: NDArray, footprint: NDArray
) -> NDArray[np.float32]:
    """The color of surfaces in white light; 0 for what shines by itself."""
    table = scene.materials
    result = np.zeros((3, texture.size), np.float32)
    for kind in np.unique(table.texture[table.texture < len(TEXTURES)]):
        where = np.flatnonzero(texture == kind)
        if not where.size:
            continue
        which = material[where]
        local, face = hits.local[:, where].astype(np.float32), hits.face[where]
        half = scene.surfaces.half[hits.surface[where]].T
        axis = face // 2
        u = np.where(axis == 0, local[1], local[0])
        v = np.where(axis == 2, local[1], local[2])
        if (face == ROUND).any():
            around = np.arctan2(local[1], local[0]) * half[0]
            u = np.where(face == ROUND, around, u)
            v = np.where(face == ROUND, local[2], v)
        spot = Spot(
            u,
            v,
            np.where(axis == 0, half[1], half[0]),
            np.where(axis == 2, half[1], half[2]),
            table.a[which].T,
            table.b[which].T,
            table.p[which, 0],
            table.p[which, 1],
            table.seed[which],
            footprint[where],
        )
        result[:, where] = np.maximum(TEXTURES[kind](spot), 0)
    return result


@lru_cache(maxsize=8)
def _beside(grid: Grid) -> NDArray[np.int64]:
    """Four neighbors of each point: along its ring, and nearest on the rings above and below."""
    ring = np.repeat(np.arange(grid.nrings), grid.nphi)
    column = np.arange(grid.size) - grid.ringstart[ring]
    sides = [grid.ringstart[ring] + (column + step) % grid.nphi[ring] for step in (1, -1)]
    for step in (1, -1):
        other = np.clip(ring + step, 0, grid.nrings - 1)
        turns = (grid.point_phi - grid.phi0[other]) / (2 * np.pi)
        nearest = np.rint(turns * grid.nphi[other]).astype(np.int64) % grid.nphi[other]
        sides.append(grid.ringstart[other] + nearest)
    return np.stack(sides)


@lru_cache(maxsize=8)
def _alternating(grid: Grid) -> NDArray[np.bool_]:
    ring = np.repeat(np.arange(grid.nrings), grid.nphi)
    return (np.arange(grid.size) - grid.ringstart[ring] + ring) % 2 == 0


def _antialias(
    scene: Scene,
    grid: Grid,
    turned: NDArray[np.float64],
    hits: Hits,
    left: NDArray[np.float32],
    color: NDArray[np.float32],
) -> None:
    """Colors of the points where faces meet become means over four rays."""
    seen = 8 * hits.surface + hits.face
    beside = _beside(grid)
    edges = np.flatnonzero((seen[beside] != seen).any(0))
    if not edges.size:
        return
    theta, phi = grid.point_theta[edges], grid.point_phi[edges]
    step = np.pi / np.repeat(grid.nphi, grid.nphi)[edges]
    rays = []
    for a, b in ((-0.75, -0.25), (-0.25, 0.75), (0.25, -0.75), (0.75, 0.25)):
        t, p = theta + a * np.pi / (2 * grid.nrings), phi + b * step
        rays.append(np.stack([np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)], -1))
    directions = product(np.concatenate(rays), turned)
    fine = trace(scene, directions)
    own = np.tile(edges, 4)
    sees = 8 * fine.surface + fine.face
    source = np.full(own.size, -1)
    for place in (*beside[::-1], np.arange(grid.size)):
        source = np.where(seen[place[own]] == sees, place[own], source)
    shades = color[:, np.maximum(source, 0)]
    alone = np.flatnonzero(source < 0)
    for block in blocks(alone.size):
        # Things thinner than a pixel stand in the shadow that their pixel's middle is in.
        some = alone[block]
        thin, part = fine.take(some), left[:, own[some]]
        shades[:, some] = shade(scene, thin, directions[some], part, grid.spacing)
    color[:, edges] = shades.reshape(3, 4, -1).mean(1)


def _encoded(color: NDArray[np.float32]) -> NDArray[np.uint8]:
    """sRGB in bytes."""
    c = np.clip(color, 0, 1)
    curve = np.where(c <= 0.0031308, 12.92 * c, 1.055 * c ** np.float32(1 / 2.4) - 0.055)
    return np.rint(curve * 255).astype(np.uint8)
