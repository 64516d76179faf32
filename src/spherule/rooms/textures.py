"""Procedural textures: the color of a surface at a point, antialiased to the pixel's footprint.

Each function takes a `Spot` (points of surfaces that share the texture) and returns linear RGB
`(3, n)`. Names in capitals number them, for the table of materials.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule.rooms.noise import faded, hashed, noise, stripes


class Spot(NamedTuple):
    """Points to be colored."""

    u: NDArray[np.float32]
    """Across: along the wall, or x on a floor; meters."""
    v: NDArray[np.float32]
    """Height on a wall, y on a floor."""
    half_u: NDArray[np.float32]
    half_v: NDArray[np.float32]
    """Half sides of the face; 0 on the shell."""
    a: NDArray[np.float32]
    b: NDArray[np.float32]
    """The material's colors, (3, n)."""
    p: NDArray[np.float32]
    q: NDArray[np.float32]
    seed: NDArray[np.uint32]
    footprint: NDArray[np.float32]
    """Width of a pixel on the surface, meters."""


def mixed(a: NDArray, b: NDArray, share: NDArray | float) -> NDArray:
    return a + (b - a) * share


def below(v: NDArray, edge: NDArray | float, footprint: NDArray) -> NDArray:
    """The part of a pixel that lies below an edge."""
    return np.clip((edge - v) / np.maximum(footprint, 1e-3) + 0.5, 0, 1)


def flat(s: Spot) -> NDArray:
    return s.a


def plaster(s: Spot) -> NDArray:
    """Painted wall: faint blotches, a skirting board of color b up to height p, and a second
    color, darker, up to height q.
    """
    tone = 1 + 0.025 * noise(s.u * 1.7, s.v * 1.7, s.seed)
    tone = tone + 0.02 * faded(s.footprint, 0.05) * noise(s.u * 25, s.v * 25, s.seed + 1)
    tone = tone * (1 - 0.28 * below(s.v, s.q, s.footprint) * (s.q > 0))
    return mixed(s.a * tone, s.b, below(s.v, s.p, s.footprint) * (s.p > 0))


def planks(s: Spot) -> NDArray:
    """Floor boards p wide and q long, each of its own tone, with grain."""
    row = np.floor(s.v / s.p)
    shift = hashed(row, row * 0, s.seed) * s.q
    column = np.floor((s.u + shift) / s.q)
    tone = 0.5 + (hashed(column, row, s.seed + 3) - 0.5) * faded(s.footprint, 2 * s.p)
    grain = faded(s.footprint, 0.03) * noise(s.u * 3 + 17 * tone, s.v * 60, s.seed + 5)
    wide = noise(s.u * 1.2 + 31 * tone, s.v * 14, s.seed + 9)
    gap = np.maximum(
        stripes(s.v, s.p, 0.005, s.footprint), stripes(s.u + shift, s.q, 0.005, s.footprint)
    )
    share = np.clip(0.15 + 0.5 * tone + 0.12 * grain + 0.16 * wide, 0, 1)
    return mixed(s.a, s.b, share) * (1 - 0.6 * gap)


def carpet(s: Spot) -> NDArray:
    """Pile with flecks of color b, in squares p wide where p > 0."""
    tone = 0.12 * faded(s.footprint, 0.03) * noise(s.u * 60, s.v * 60, s.seed)
    tone = tone + 0.02 * noise(s.u * 3, s.v * 3, s.seed + 1)
    fleck = np.clip(noise(s.u * 40, s.v * 30, s.seed + 2) * 2 - 0.5, 0, 1)
    fleck = fleck * faded(s.footprint, 0.04)
    side = np.where(s.p > 0, s.p, 1.0)
    i, j = np.floor(s.u / side), np.floor(s.v / side)
    square = np.where(s.p > 0, 0.10 * (np.mod(i + j, 2) - 0.5) * (1 + hashed(i, j, s.seed)), 0.0)
    return mixed(s.a, s.b, 0.22 * fleck) * (1 + tone + square)


def tiles(s: Spot) -> NDArray:
    """Square tiles p wide with joints of color b."""
    i, j = np.floor(s.u / s.p), np.floor(s.v / s.p)
    tone = 1 + 0.07 * (hashed(i, j, s.seed) - 0.5)
    vein = 0.04 * noise(s.u * 6 + 9 * i, s.v * 6 + 5 * j, s.seed + 1)
    joint = np.maximum(stripes(s.u, s.p, 0.008, s.footprint), stripes(s.v, s.p, 0.008, s.footprint))
    return mixed(s.a * (tone + vein), s.b, joint)


def panels(s: Spot) -> NDArray:
    """Suspended ceiling: speckled panels p wide in a grid of rails of color b."""
    i, j = np.floor(s.u / s.p), np.floor(s.v / s.p)
    speck = np.clip(noise(s.u * 40, s.v * 40, s.seed) - 0.35, 0, 1) * faded(s.footprint, 0.04)
    tone = 0.985 + 0.03 * hashed(i, j, s.seed) - 0.18 * speck
    rail = np.maximum(stripes(s.u, s.p, 0.024, s.footprint), stripes(s.v, s.p, 0.024, s.footprint))
    return mixed(s.a * tone, s.b, rail)


def wood(s: Spot) -> NDArray:
    """Grain between colors a and b along the longer side of the face."""
    upright = s.half_v > s.half_u
    along, across = np.where(upright, s.v, s.u), np.where(upright, s.u, s.v)
    bend = noise(along * 1.5, across * 3, s.seed)
    ring = noise(along * 0.8 + 3, across * 22 + 1.6 * bend, s.seed + 1)
    fine = faded(s.footprint, 0.015) * noise(along * 5, across * 130, s.seed + 2)
    return mixed(s.a, s.b, np.clip(0.45 + 0.4 * ring + 0.15 * fine, 0, 1))


def fabric(s: Spot) -> NDArray:
    weave = faded(s.footprint, 0.02) * noise(s.u * 90, s.v * 90, s.seed)
    return s.a * (1 + 0.10 * weave + 0.06 * noise(s.u * 7, s.v * 7, s.seed + 1))


SPINES = np.array(
    [
        [0.25, 0.03, 0.03], [0.03, 0.07, 0.22], [0.02, 0.11, 0.07], [0.02, 0.02, 0.02],
        [0.45, 0.38, 0.27], [0.16, 0.07, 0.03], [0.05, 0.16, 0.22], [0.55, 0.53, 0.48],
        [0.42, 0.22, 0.04], [0.12, 0.12, 0.13], [0.10, 0.03, 0.07], [0.30, 0.32, 0.34],
    ],
    np.float32,
).T  # fmt: skip
"""Colors of books."""


def books(s: Spot) -> NDArray:
    """Spines about p wide, of all colors and several heights, some with a band or a title."""
    cell = np.floor(s.u / s.p + 0.35 * noise(s.u / s.p * 0.37, s.u * 0, s.seed))
    zero = np.zeros_like(cell)
    pick = [hashed(cell, zero + k, s.seed) for k in range(5)]
    color = SPINES[:, (pick[0] * SPINES.shape[1]).astype(np.int64)] * (0.6 + 0.8 * pick[1])
    light = color.mean(0)
    color = mixed(color, s.a, 0.25 * pick[2])
    height = (s.v + s.half_v) / np.maximum(2 * s.half_v, 1e-3)
    detail = faded(s.footprint, s.p)
    band = (np.abs(height - 0.30 - 0.4 * pick[3]) < 0.07) & (pick[4] > 0.45)
    title = np.where(light > 0.3, 0.12, 0.75)
    color = np.where(band, mixed(color, title, 0.8 * detail), color)
    above = height > 0.74 + 0.26 * pick[3]
    edge = 1 - 0.5 * detail * (np.mod(s.u / s.p, 1.0) < 0.12)
    plain = color * edge
    shade = np.where(above, mixed(plain, 0.05 + 0 * plain, np.maximum(detail, 0.4)), plain)
    return mixed(shade, np.full_like(shade, 0.17), 0.6 * (1 - detail))


def board(s: Spot) -> NDArray:
    """A writing board of color a with lines of writing and a drawing in color b."""
    left = (s.u + s.half_u) / np.maximum(2 * s.half_u, 1e-3)
    top = (s.half_v - s.v) / np.maximum(2 * s.half_v, 1e-3)
    line = np.floor(top * 9)
    reach = 0.12 + 0.38 * hashed(line, line * 0, s.seed)
    written = (left > 0.06) & (left < reach) & (line > 0) & (line < 7)
    text = np.abs(np.mod(top * 9, 1.0) - 0.5 + 0.25 * noise(s.u * 28, line, s.seed)) < 0.16
    text &= noise(s.u * 16, line, s.seed + 2) > -0.35
    x, y = left - 0.74, (top - 0.5) * 0.6
    bow = np.abs(np.hypot(x, y) - 0.14 - 0.015 * noise(left * 9, top * 7, s.seed + 5)) < 0.006
    axis = ((np.abs(x + 0.18) < 0.003) & (np.abs(y) < 0.22)) | (
        (np.abs(y - 0.22) < 0.004) & (np.abs(x) < 0.2)
    )
    ink = np.where(written & text, 0.75, 0.0) + np.where(bow | axis, 0.8, 0.0)
    smear = 0.03 * noise(s.u * 2, s.v * 3, s.seed + 7)
    ink = np.clip(ink, 0, 0.9) * np.clip(1.7 - s.footprint / 0.03, 0.25, 1)
    return mixed(s.a * (1 + smear), s.b, ink)


def brick(s: Spot) -> NDArray:
    row = np.floor(s.v / 0.075)
    shift = np.mod(row, 2) * 0.125
    column = np.floor((s.u + shift) / 0.25)
    tone = 0.5 + (hashed(column, row, s.seed) - 0.5) * faded(s.footprint, 0.1)
    rough = faded(s.footprint, 0.03) * noise(s.u * 40, s.v * 60, s.seed + 1)
    joint = np.maximum(
        stripes(s.v, 0.075, 0.012, s.footprint), stripes(s.u + shift, 0.25, 0.012, s.footprint)
    )
    return mixed(s.a * (0.75 + 0.5 * tone + 0.1 * rough), s.b, joint)


def screen(s: Spot) -> NDArray:
    """A monitor that is on: a bar, a pane and lines of text."""
    x = (s.u + s.half_u) / np.maximum(2 * s.half_u, 1e-3)
    y = (s.half_v - s.v) / np.maximum(2 * s.half_v, 1e-3)
    row = np.floor(y * 22)
    text = (x > 0.3) & (x < 0.4 + 0.5 * hashed(row, row * 0, s.seed)) & (np.mod(row, 2) == 0)
    text &= (y > 0.12) & (y < 0.92)
    pane = np.where(x < 0.26, s.b * 0.6, np.where(y < 0.08, s.b, s.a))
    return np.where(text, mixed(pane, s.b * 0.3, 0.7 * faded(s.footprint, 0.03)), pane)


def picture(s: Spot) -> NDArray:
    """A framed print: a dark rim, a pale mat, soft shapes between the colors a and b."""
    x, y = s.u / np.maximum(s.half_u, 1e-3), s.v / np.maximum(s.half_v, 1e-3)
    rim = np.minimum(s.half_u * (1 - np.abs(x)), s.half_v * (1 - np.abs(y)))
    field = noise(x * 1.6 + 5, y * 1.3, s.seed) + 0.5 * noise(x * 4, y * 3.3, s.seed + 1)
    hills = np.where(y < 0.3 * noise(x * 2, x * 0, s.seed + 2) - 0.1, s.b * 0.5, s.a)
    art = mixed(hills, s.b, np.clip(0.5 + 0.9 * field, 0, 1))
    mat = mixed(art, np.full_like(art, 0.72), below(rim, 0.09, s.footprint))
    return mixed(mat, np.full_like(mat, 0.04), below(rim, 0.02, s.footprint))


def concrete(s: Spot) -> NDArray:
    tone = 0.05 * noise(s.u * 2.2, s.v * 2.2, s.seed) + 0.03 * noise(s.u * 9, s.v * 9, s.seed + 1)
    fine = 0.05 * noise(s.u * 45, s.v * 45, s.seed + 2) * faded(s.footprint, 0.04)
    return s.a * (1 + tone + fine)


def leaves(s: Spot) -> NDArray:
    """Foliage: light and dark patches."""
    patch = noise(s.u * 22, s.v * 22, s.seed) + 0.5 * noise(s.u * 50, s.v * 50, s.seed + 1)
    return mixed(s.a, s.b, np.clip(0.5 + 0.8 * patch, 0, 1))


def ribs(s: Spot) -> NDArray:
    """Upright ribs p apart, as on radiators, slatted fronts and shutters; q = 1 lays them flat."""
    across = np.where(s.q > 0, s.v, s.u)
    return mixed(s.a, s.b, stripes(across, np.maximum(s.p, 1e-3), 0.3 * s.p, s.footprint))


TEXTURES: tuple[Callable[[Spot], NDArray], ...] = (
    flat, plaster, planks, carpet, tiles, panels, wood, fabric, books, board, brick, screen,
    picture, concrete, leaves, ribs,
)  # fmt: skip
(
    FLAT, PLASTER, PLANKS, CARPET, TILES, PANELS, WOOD, FABRIC, BOOKS, BOARD, BRICK, SCREEN,
    PICTURE, CONCRETE, LEAVES, RIBS,
) = range(len(TEXTURES))  # fmt: skip
GLASS, GLOW = range(len(TEXTURES), len(TEXTURES) + 2)
"""What shines by itself: the view out of a window, a lamp, and what lies behind an open door."""
