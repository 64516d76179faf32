"""Furniture: lists of solids in a frame whose origin is on the floor, front towards +y.

Sizes are those of real furniture, drawn within its usual range; what a function returns is
`[(class, solids), ...]`, ready for `Workshop.place`.
"""

from dataclasses import dataclass

import numpy as np

from spherule.rooms.scene import BOX, CYLINDER, ELLIPSOID, Part, Workshop
from spherule.rooms.textures import (
    FABRIC,
    FLAT,
    WOOD,
)

Things = list[tuple[str, list[Part]]]


def linear(code: str) -> tuple[float, float, float]:
    """Linear RGB of an sRGB color such as 8a5a3c."""
    values = [int(code[k : k + 2], 16) / 255 for k in (0, 2, 4)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def box(m: int, x: tuple[float, float], y: tuple[float, float], z: tuple[float, float]) -> Part:
    """A box by its ranges."""
    (a, b), (c, d), (e, f) = x, y, z
    center = ((a + b) / 2, (c + d) / 2, (e + f) / 2)
    return Part(BOX, center, ((b - a) / 2, (d - c) / 2, (f - e) / 2), m)


def post(m: int, x: float, y: float, radius: float, z: tuple[float, float]) -> Part:
    """An upright cylinder."""
    low, high = z
    return Part(CYLINDER, (x, y, (low + high) / 2), (radius, radius, (high - low) / 2), m)


def ball(m: int, center: tuple[float, float, float], half: tuple[float, float, float]) -> Part:
    return Part(ELLIPSOID, center, half, m)


WOODS = (
    ("a8794f", "7d5432"),
    ("c9a478", "a47c50"),
    ("7a4e30", "54331d"),
    ("d8bd94", "bb9a6c"),
    ("5c3d2a", "3f281a"),
)
FABRICS = ("2f4858", "6b2f33", "3d4f3a", "4a4a4f", "7a6a58", "1f2a44", "8a7f73", "a34a28", "35606b")
METALS = ("b9bcc0", "2a2b2d", "8f9296", "d9d9d6")


@dataclass
class Style:
    """What the furniture of one room has in common."""

    wood: int
    top: int
    metal: int
    dark: int
    white: int
    fabric: int
    seat: int
    frame: int
    """Of the windows."""


def style(workshop: Workshop, rng: np.random.Generator) -> Style:
    pale = rng.random() < 0.35
    a, b = WOODS[rng.integers(len(WOODS))]
    wood = workshop.material(WOOD, linear(a), linear(b))
    white = workshop.material(FLAT, linear("e4e2dc"))
    metal = workshop.material(FLAT, linear(METALS[rng.integers(len(METALS))]))
    dark = workshop.material(FLAT, linear("232427"))
    cloth = [FABRICS[k] for k in rng.choice(len(FABRICS), 2, replace=False)]
    fabric, seat = (workshop.material(FABRIC, linear(code)) for code in cloth)
    frame = white if rng.random() < 0.6 else dark
    return Style(wood, white if pale else wood, metal, dark, white, fabric, seat, frame)


def table(s: Style, rng: np.random.Generator, length: float, depth: float, high: float) -> Things:
    """A top on four legs, or on two frames."""
    x, y, leg = length / 2, depth / 2, 0.025
    solids = [box(s.top, (-x, x), (-y, y), (high - 0.035, high))]
    if rng.random() < 0.6:
        for i in (-1, 1):
            for j in (-1, 1):
                cx, cy = i * (x - 0.06), j * (y - 0.06)
                solids.append(
                    box(s.metal, (cx - leg, cx + leg), (cy - leg, cy + leg), (0, high - 0.035))
                )
    else:
        for i in (-1, 1):
            cx = i * (x - 0.12)
            solids.append(box(s.metal, (cx - 0.03, cx + 0.03), (-y + 0.05, y - 0.05), (0, 0.04)))
            solids.append(box(s.metal, (cx - 0.03, cx + 0.03), (-0.05, 0.05), (0, high - 0.035)))
    return [("table", solids)]


def chair(s: Style) -> Things:
    """A chair on four legs."""
    solids = [
        box(s.seat, (-0.22, 0.22), (-0.2, 0.22), (0.42, 0.47)),
        box(s.seat, (-0.21, 0.21), (-0.23, -0.19), (0.55, 0.88)),
    ]
    for i in (-0.2, 0.2):
        solids.append(box(s.metal, (i - 0.015, i + 0.015), (0.18, 0.21), (0, 0.42)))
        solids.append(box(s.metal, (i - 0.015, i + 0.015), (-0.22, -0.19), (0, 0.86)))
    return [("chair", solids)]


def office_chair(s: Style) -> Things:
    """A swivel chair: star base on castors, column, seat, back and arms."""
    solids = [
        box(s.dark, (-0.3, 0.3), (-0.025, 0.025), (0.04, 0.08)),
        box(s.dark, (-0.025, 0.025), (-0.3, 0.3), (0.04, 0.08)),
        post(s.metal, 0, 0, 0.03, (0.06, 0.44)),
        box(s.fabric, (-0.25, 0.25), (-0.24, 0.25), (0.43, 0.51)),
        box(s.fabric, (-0.22, 0.22), (-0.28, -0.22), (0.58, 1.08)),
        box(s.dark, (-0.03, 0.03), (-0.31, -0.27), (0.45, 0.8)),
    ]
    solids += [
        post(s.dark, i, j, 0.03, (0, 0.06))
        for i, j in ((-0.28, 0), (0.28, 0), (0, 0.28), (0, -0.28))
    ]
    for i in (-0.29, 0.29):
        solids.append(box(s.dark, (i - 0.03, i + 0.03), (-0.16, 0.14), (0.66, 0.69)))
        solids.append(box(s.dark, (i - 0.015, i + 0.015), (-0.06, -0.02), (0.47, 0.66)))
    return [("chair", solids)]


def sofa(s: Style, seats: int) -> Things:
    """Arms, back, and a cushion a seat; its back at -y."""
    x = seats * 0.31 + 0.16
    solids = [
        box(s.fabric, (-x, x), (-0.42, 0.4), (0.06, 0.3)),
        box(s.fabric, (-x, x), (-0.45, -0.22), (0.3, 0.82)),
        box(s.fabric, (-x, -x + 0.17), (-0.42, 0.42), (0.06, 0.6)),
        box(s.fabric, (x - 0.17, x), (-0.42, 0.42), (0.06, 0.6)),
        box(s.dark, (-x + 0.06, x - 0.06), (-0.38, 0.36), (0, 0.06)),
    ]
    width = 2 * (x - 0.17) / seats
    for k in range(seats):
        a = -x + 0.17 + k * width
        solids.append(
            box(
                s.seat if seats > 2 else s.fabric,
                (a + 0.008, a + width - 0.008),
                (-0.22, 0.41),
                (0.3, 0.44),
            )
        )
    return [("sofa", solids)]
