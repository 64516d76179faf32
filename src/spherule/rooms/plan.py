"""Where things go: walls with their free stretches, the floor with its free places, the camera's.

A plan never lets two things share a place, keeps doors clear, and keeps a place for the camera.
"""

import numpy as np
from numpy.typing import NDArray

from spherule.rooms.furniture import Style, Things, box, linear, post, style
from spherule.rooms.scene import Lamp, Opening, Part, Vector, Workshop
from spherule.rooms.textures import BOOKS, FLAT, GLASS, GLOW

TURNS = (-np.pi / 2, np.pi / 2, 0.0, np.pi)
"""What turns a thing's front, +y, from each wall into the room."""
Rect = tuple[float, float, float, float]


class Plan:
    """A room being furnished."""

    def __init__(self, rng: np.random.Generator, size: tuple[float, float, float]) -> None:
        self.rng = rng
        self.size = np.array(size)
        self.workshop = Workshop(shadowless=(BOOKS, GLOW))
        self.style: Style = style(self.workshop, rng)
        self.lamps: list[Lamp] = []
        self.camera: NDArray[np.float64] | None = None
        self._solid: list[Rect] = []
        self._clear: list[Rect] = []
        self._spans: list[list[tuple[float, float, float, float]]] = [[], [], [], []]

    def length(self, wall: int) -> float:
        """Of a wall: along y for the walls across x, and the other way round."""
        return float(self.size[1 - wall // 2])

    def on_wall(self, wall: int, along: float, out: float, z: float = 0.0) -> NDArray[np.float64]:
        """The point `along` a wall, `out` into the room."""
        across = self.size[wall // 2] - out if wall % 2 else out
        return np.array([across, along, z] if wall < 2 else [along, across, z])

    def stretch(
        self, wall: int, width: float, z: tuple[float, float], *, at: float | None = None
    ) -> float | None:
        """The middle of a free stretch of a wall, now taken, or None; `at` in [0, 1] is a wish."""
        room = self.length(wall) - width
        if room < 0.1:
            return None
        for k in range(12):
            share = self.rng.uniform(0.0, 1.0) if at is None or k else at
            middle = width / 2 + 0.05 + share * (room - 0.1)
            span = (middle - width / 2 - 0.06, middle + width / 2 + 0.06, *z)
            if not any(overlaps(span, other) for other in self._spans[wall]):
                self._spans[wall].append(span)
                return middle
        return None

    def stand(self, *, clear: float = 0.45) -> None:
        """Choose where the camera stands, in the free middle of the room."""
        high = self.size[:2]
        low = np.minimum(0.6, high * 0.4)
        tries = low + self.rng.random((40, 2)) * (high - 2 * low)

        def room(spot: NDArray) -> float:
            gaps = [_gap(spot, rect) for rect in self._solid]
            central = float(np.linalg.norm((spot - high / 2) / high))
            return min([0.8, *spot, *(high - spot), *gaps]) - 0.5 * central

        spot = max(tries, key=room)
        self.camera = np.array([*spot, self.rng.uniform(1.35, 1.7)])
        self._clear.append((spot[0] - clear, spot[0] + clear, spot[1] - clear, spot[1] + clear))

    def fits(self, rect: Rect, *, margin: float = 0.05) -> bool:
        """Whether a rectangle of the floor is inside the room and free."""
        inside = bool(
            min(rect[0], rect[2]) > -1e-6
            and rect[1] < self.size[0] + 1e-6
            and rect[3] < self.size[1] + 1e-6
        )
        inside = inside and not any(overlaps(rect, clear) for clear in self._clear)
        return inside and not any(overlaps(rect, solid, margin) for solid in self._solid)

    def put(self, things: Things, at: Vector, turn: float = 0.0, *, margin: float = 0.04) -> bool:
        """Stand things on the floor at (x, y), if there is room."""
        x, y = np.asarray(at, np.float64)
        rect = floor_rect(things, (x, y), turn)
        if not self.fits(rect, margin=margin):
            return False
        self.workshop.place(things, (x, y, 0.0), turn)
        self._solid.append(rect)
        return True

    def put_at_wall(
        self, things: Things, wall: int, *, high: float, at: float | None = None, gap: float = 0.02
    ) -> float | None:
        """Stand things with their back to a wall; where along it, or None if nothing is free."""
        low, top = extent(things)
        width = float(top[0] - low[0])
        spans = list(self._spans[wall])
        along = self.stretch(wall, width, (0.0, high), at=at)
        if along is None:
            return None
        x, y, _ = self.on_wall(wall, along, gap - float(low[1]))
        if self.put(things, (x, y), TURNS[wall], margin=0.0):
            return along
        self._spans[wall] = spans
        return None

    def hang(self, things: Things, wall: int, width: float, z: tuple[float, float]) -> bool:
        """Fix things, whose z is their height in the room, to a wall."""
        along = self.stretch(wall, width, z)
        if along is None:
            return False
        self.workshop.place(things, self.on_wall(wall, along, 0.0), TURNS[wall])
        return True

    def keep_clear(self, wall: int, along: float, width: float, out: float) -> None:
        a = self.on_wall(wall, along - width / 2, 0.0)
        b = self.on_wall(wall, along + width / 2, out)
        (x0, x1), (y0, y1) = sorted((a[0], b[0])), sorted((a[1], b[1]))
        self._clear.append((x0, x1, y0, y1))

    def door(self, wall: int, *, at: float | None = None, open_: bool = False) -> bool:
        """A door, closed or wide open onto what nobody knows."""
        width, high = float(self.rng.choice([0.85, 0.95, 1.6])), 2.08
        if open_:
            width = 0.95
        along = self.stretch(wall, width + 0.2, (0.0, high), at=at)
        if along is None:
            return False
        s, w, h = self.style, self.workshop, width / 2
        number = w.instance("door")
        half = (h, h, high / 2)
        if open_:
            beyond = w.material(FLAT, self.rng.uniform(0.25, 0.45) * np.array([1.0, 0.96, 0.9]))
            reveal = panel = w.surface("<UNK>", 1, beyond, half)
        else:
            leaf = s.wood if self.rng.random() < 0.6 else s.white
            reveal, panel = (
                w.surface("door", number, s.metal),
                w.surface("door", number, leaf, half),
            )
        recess = 1.3 if open_ else 0.07
        w.openings.append(Opening(wall, (along - h, 0.0), (along + h, high), recess, reveal, panel))
        frame = [
            box(s.metal, (-h - 0.06, -h), (0, 0.02), (0, high + 0.06)),
            box(s.metal, (h, h + 0.06), (0, 0.02), (0, high + 0.06)),
            box(s.metal, (-h, h), (0, 0.02), (high, high + 0.06)),
        ]
        if not open_:
            frame += self._leaf_details(h, width > 1.2)
        w.place([("door", frame)], self.on_wall(wall, along, 0.0), TURNS[wall])
        if open_:
            leaf_parts = [
                box(s.wood, (-h - 0.045, -h), (0.03, 0.03 + width * 0.95), (0.01, high - 0.01))
            ]
            self._solid.append(
                floor_rect([("door", leaf_parts)], self.on_wall(wall, along, 0.0)[:2], TURNS[wall])
            )
            w.place([("door", leaf_parts)], self.on_wall(wall, along, 0.0), TURNS[wall])
        self.keep_clear(wall, along, width, 0.95)
        return True

    def _leaf_details(self, h: float, double: bool) -> list[Part]:
        s, y = self.style, (-0.07, -0.03)
        details = [
            box(s.metal, (i, i + 0.13), (-0.03, -0.015), (1.0, 1.025))
            for i in ((-0.18, 0.05) if double else (h - 0.2,))
        ]
        if double:
            details.append(box(s.dark, (-0.006, 0.006), (y[0], y[0] + 0.004), (0, 2.08)))
        if self.rng.random() < 0.5:
            details.append(box(s.metal, (-h + 0.02, h - 0.02), (y[0], y[0] + 0.004), (0.02, 0.24)))
        return details

    def window(
        self, wall: int, width: float, sill: float, top: float, *, at: float | None = None
    ) -> float | None:
        """A window with frame, mullion and sill."""
        along = self.stretch(wall, width + 0.1, (sill, top), at=at)
        if along is None:
            return None
        s, w, h, recess = self.style, self.workshop, width / 2, 0.16
        number = w.instance("window")
        glass = w.surface("window", number, w.material(GLASS, (1, 1, 1)))
        reveal = w.surface("wall", 1, w.material(FLAT, linear("dedbd4")))
        w.openings.append(Opening(wall, (along - h, sill), (along + h, top), recess, reveal, glass))
        frame, y = s.frame, (-recess, -recess + 0.05)
        bars = [
            box(frame, (-h, -h + 0.05), y, (sill, top)),
            box(frame, (h - 0.05, h), y, (sill, top)),
            box(frame, (-h, h), y, (sill, sill + 0.05)),
            box(frame, (-h, h), y, (top - 0.05, top)),
        ]
        panes = max(1, round(width / 0.8))
        for k in range(1, panes):
            x = -h + k * width / panes
            bars.append(box(frame, (x - 0.025, x + 0.025), y, (sill, top)))
        if top - sill > 1.2:
            bars.append(box(frame, (-h, h), y, (top - 0.45, top - 0.41)))
        if sill > 0.3:
            bars.append(box(s.white, (-h - 0.04, h + 0.04), (-recess, 0.06), (sill - 0.03, sill)))
        w.place([("window", bars)], self.on_wall(wall, along, 0.0), TURNS[wall])
        return along

    def pillar(self, x: float, y: float, side: float, material: int, *, round_: bool) -> bool:
        """A column from floor to ceiling."""
        high = float(self.size[2])
        h = side / 2
        solid = (
            post(material, 0, 0, h, (0, high))
            if round_
            else box(material, (-h, h), (-h, h), (0, high))
        )
        return self.put([("column", [solid])], (x, y), margin=0.0)


def extent(things: Things) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The least and greatest coordinates of things in their frame."""
    parts = [part for _, solids in things for part in solids]
    centers, halves = np.array([p.center for p in parts]), np.array([p.half for p in parts])
    return (centers - halves).min(0), (centers + halves).max(0)


def floor_rect(things: Things, at: Vector, turn: float) -> Rect:
    """The rectangle along x and y of the floor below things that stand at a place."""
    low, high = extent(things)
    cos, sin = np.cos(turn), np.sin(turn)
    corners = [
        (cos * x - sin * y, sin * x + cos * y) for x in (low[0], high[0]) for y in (low[1], high[1])
    ]
    x, y = np.array(corners).T
    return (
        float(at[0] + x.min()),
        float(at[0] + x.max()),
        float(at[1] + y.min()),
        float(at[1] + y.max()),
    )


def _gap(spot: NDArray, rect: Rect) -> float:
    """From a point to a rectangle."""
    x = max(rect[0] - spot[0], spot[0] - rect[1], 0.0)
    return float(np.hypot(x, max(rect[2] - spot[1], spot[1] - rect[3], 0.0)))


def overlaps(a: Rect, b: Rect, margin: float = 0.0) -> bool:
    across = a[0] < b[1] + margin and b[0] < a[1] + margin
    return bool(across and a[2] < b[3] + margin and b[2] < a[3] + margin)
