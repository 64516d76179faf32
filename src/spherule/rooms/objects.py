"""Desks and what lies on them, shelves, and clutter: lamps, cartons, plants, bins."""

import numpy as np

from spherule.rooms.furniture import FABRICS, Style, Things, ball, box, linear, post
from spherule.rooms.scene import Part, Workshop
from spherule.rooms.textures import BOOKS, FABRIC, FLAT, GLOW, LEAVES, RIBS, SCREEN


def desk(s: Style, rng: np.random.Generator, workshop: Workshop, length: float) -> Things:
    """A desk with its back to -y, drawers, a monitor or two, and what lies about on it."""
    x, y, high = length / 2, 0.38, 0.73
    side = 1 if rng.random() < 0.5 else -1
    drawers = sorted((side * (x - 0.04), side * (x - 0.45)))
    solids = [
        box(s.top, (-x, x), (-y, y), (high - 0.03, high)),
        box(s.wood, (-x, x), (-y, -y + 0.02), (0.3, high - 0.03)),
        box(s.white, (drawers[0], drawers[1]), (-y + 0.03, y - 0.04), (0.04, high - 0.03)),
        box(s.metal, (-x, -x + 0.04), (-y, y), (0, high - 0.03)),
        box(s.metal, (x - 0.04, x), (-y, y), (0, high - 0.03)),
    ]
    for k in range(3):
        z = 0.15 + 0.2 * k
        solids.append(
            box(
                s.dark,
                (sum(drawers) / 2 - 0.06, sum(drawers) / 2 + 0.06),
                (y - 0.04, y - 0.02),
                (z + 0.08, z + 0.10),
            )
        )
    things: Things = [("table", solids)]
    for cx in (0.0,) if rng.random() < 0.6 else (-0.3, 0.3):
        things.append(("clutter", monitor(s, workshop, cx - side * 0.12, -0.12, high)))
    keys = workshop.material(RIBS, linear("1d1e20"), linear("4a4b4e"), (0.02, 0.0))
    things.append(("clutter", [box(keys, (-0.34, 0.1), (0.08, 0.22), (high, high + 0.02))]))
    paper = workshop.material(FLAT, linear("f2efe6"))
    px = side * (x - 0.25)
    things.append(
        (
            "clutter",
            [
                box(
                    paper,
                    (px - 0.15, px + 0.15),
                    (-0.1, 0.12),
                    (high, high + rng.uniform(0.01, 0.08)),
                )
            ],
        )
    )
    mug = workshop.material(FLAT, linear(FABRICS[rng.integers(len(FABRICS))]))
    things.append(("clutter", [post(mug, -side * (x - 0.18), 0.1, 0.04, (high, high + 0.1))]))
    if rng.random() < 0.6:
        things.append(("clutter", desk_lamp(s, workshop, -side * (x - 0.15), -0.24, high)))
    return things


def monitor(s: Style, workshop: Workshop, x: float, y: float, z: float) -> list[Part]:
    shown = workshop.material(SCREEN, linear("dfe6ee"), linear("3b5f8a"))
    return [
        box(s.dark, (x - 0.28, x + 0.28), (y - 0.02, y + 0.015), (z + 0.12, z + 0.47)),
        box(shown, (x - 0.265, x + 0.265), (y + 0.012, y + 0.018), (z + 0.135, z + 0.455)),
        box(s.dark, (x - 0.03, x + 0.03), (y - 0.05, y - 0.02), (z, z + 0.3)),
        box(s.dark, (x - 0.12, x + 0.12), (y - 0.1, y + 0.08), (z, z + 0.012)),
    ]


def desk_lamp(s: Style, workshop: Workshop, x: float, y: float, z: float) -> list[Part]:
    shade = workshop.material(GLOW, (1.6, 1.25, 0.8))
    return [
        post(s.dark, x, y, 0.07, (z, z + 0.02)),
        post(s.dark, x, y, 0.012, (z, z + 0.34)),
        post(shade, x, y, 0.1, (z + 0.32, z + 0.46)),
    ]


def floor_lamp(s: Style, workshop: Workshop) -> Things:
    shade = workshop.material(GLOW, (1.9, 1.5, 1.0))
    return [
        (
            "clutter",
            [
                post(s.dark, 0, 0, 0.15, (0, 0.03)),
                post(s.dark, 0, 0, 0.015, (0, 1.45)),
                post(shade, 0, 0, 0.2, (1.4, 1.72)),
            ],
        )
    ]


def bookcase(
    s: Style, rng: np.random.Generator, workshop: Workshop, width: float, high: float
) -> Things:
    """Sides, shelves, and rows of books of several heights; its back at -y."""
    x, y, board = width / 2, 0.15, 0.022
    solids = [
        box(s.wood, (-x, -x + board), (-y, y), (0, high)),
        box(s.wood, (x - board, x), (-y, y), (0, high)),
        box(s.wood, (-x, x), (-y, -y + 0.012), (0, high)),
    ]
    levels = max(2, round(high / 0.36))
    gap = (high - 0.06) / levels
    for k in range(levels + 1):
        z = 0.05 + k * gap
        solids.append(box(s.wood, (-x, x), (-y, y), (z - board, z)))
    solids.append(box(s.wood, (-x, x), (-y, y - 0.03), (0, 0.04)))
    for k in range(levels):
        z, left = 0.05 + k * gap, -x + board
        while left < x - 0.25:
            right = min(left + rng.uniform(0.25, 0.9), x - board - 0.005)
            if rng.random() < 0.86:
                spines = workshop.material(
                    BOOKS, rng.uniform(0.02, 0.4, 3), p=(rng.uniform(0.025, 0.05), 0.0)
                )
                top = z + min(rng.uniform(0.2, 0.3), gap - 0.05)
                solids.append(
                    box(spines, (left, right), (-y + 0.012, rng.uniform(0.02, 0.1)), (z, top))
                )
            left = right + rng.choice([0.0, 0.02, 0.12])
    return [("bookcase", solids)]


def cabinet(s: Style, workshop: Workshop, width: float, high: float) -> Things:
    """A low or tall cupboard: clutter, as the classes have no better name."""
    x = width / 2
    solids = [
        box(s.dark, (-x + 0.02, x - 0.02), (-0.2, 0.18), (0, 0.06)),
        box(s.wood, (-x, x), (-0.22, 0.2), (0.06, high)),
        box(s.top, (-x - 0.01, x + 0.01), (-0.22, 0.23), (high, high + 0.025)),
        box(s.wood, (-x + 0.01, -0.004), (0.2, 0.218), (0.08, high - 0.02)),
        box(s.wood, (0.004, x - 0.01), (0.2, 0.218), (0.08, high - 0.02)),
    ]
    solids += [
        box(s.metal, (i - 0.008, i + 0.008), (0.218, 0.235), (high * 0.5, high * 0.5 + 0.14))
        for i in (-0.05, 0.05)
    ]
    return [("clutter", solids)]


def shelf_rack(s: Style, rng: np.random.Generator, workshop: Workshop, width: float) -> Things:
    """A metal rack with cartons: the rack is a bookcase, the cartons are clutter."""
    x, y, high = width / 2, 0.22, 1.9
    frame = [
        box(s.metal, (i - 0.02, i + 0.02), (j - 0.02, j + 0.02), (0, high))
        for i in (-x + 0.02, x - 0.02)
        for j in (-y + 0.02, y - 0.02)
    ]
    levels = (0.12, 0.55, 0.98, 1.41, 1.84)
    frame += [box(s.metal, (-x, x), (-y, y), (z, z + 0.03)) for z in levels]
    things: Things = [("bookcase", frame)]
    for z in levels[:4]:
        left = -x + 0.05
        while left < x - 0.35:
            right = left + rng.uniform(0.25, 0.5)
            if right > x - 0.04:
                break
            if rng.random() < 0.8:
                things.append(
                    (
                        "clutter",
                        carton(
                            rng,
                            workshop,
                            (left, right),
                            (-y + 0.04, y - 0.03),
                            (z + 0.03, z + rng.uniform(0.2, 0.37)),
                        ),
                    )
                )
            left = right + rng.uniform(0.02, 0.15)
    return things


def carton(
    rng: np.random.Generator,
    workshop: Workshop,
    x: tuple[float, float],
    y: tuple[float, float],
    z: tuple[float, float],
) -> list[Part]:
    """A cardboard box with tape along its middle."""
    colors = ("b58a5a", "a97c4e", "c49a6c", "9a7348", "dcd6c8", "4d6a8a")
    code = colors[rng.integers(len(colors))]
    side = workshop.material(FABRIC, linear(code))
    tape = workshop.material(FLAT, [v * 1.25 for v in linear(code)])
    (a, b), (c, d), top = x, y, z[1]
    middle = (a + b) / 2
    return [
        box(side, x, y, z),
        box(
            tape,
            (middle - 0.025, middle + 0.025),
            (c - 0.001, d + 0.001),
            (top - 0.08, top + 0.001),
        ),
    ]


def plant(rng: np.random.Generator, workshop: Workshop, high: float) -> Things:
    """A pot with a bush of leaves."""
    pot = workshop.material(FLAT, linear(("b5623f", "e6e2da", "3a3d40")[rng.integers(3)]))
    soil = workshop.material(FLAT, linear("2b1d14"))
    green = workshop.material(LEAVES, linear("2c5a27"), linear("7fa650"))
    radius = rng.uniform(0.13, 0.19)
    solids = [
        post(pot, 0, 0, radius, (0, 0.3)),
        post(soil, 0, 0, radius - 0.015, (0.3, 0.302)),
        post(soil, 0, 0, 0.02, (0.3, high * 0.7)),
    ]
    for _ in range(7):
        angle, out = rng.uniform(0, 2 * np.pi), rng.uniform(0.05, 0.2)
        z = rng.uniform(0.5, 0.95) * high
        size = rng.uniform(0.10, 0.2)
        solids.append(
            ball(green, (out * np.cos(angle), out * np.sin(angle), z), (size, size, size * 0.8))
        )
    return [("clutter", solids)]


def bin_(s: Style, rng: np.random.Generator) -> Things:
    rim = rng.uniform(0.12, 0.16)
    return [
        (
            "clutter",
            [post(s.dark, 0, 0, rim, (0, 0.34)), post(s.metal, 0, 0, rim + 0.008, (0.34, 0.36))],
        )
    ]
