"""A room from (seed, index): its kind, shell and light, then the furniture of its kind."""

import numpy as np
from numpy.typing import NDArray

from spherule import checks
from spherule.rooms.furniture import box, linear
from spherule.rooms.kinds import KINDS, Kind
from spherule.rooms.plan import Plan
from spherule.rooms.scene import Lamp, Materials, Scene, Sun
from spherule.rooms.textures import (
    BRICK,
    CARPET,
    CONCRETE,
    GLASS,
    PANELS,
    PLANKS,
    PLASTER,
    TILES,
    WOOD,
)

PAINTS = ("e8e3d8", "d9dcd8", "e9e6e1", "cfd8d6", "e3d5bd", "d5c9b8", "c8d3dc", "f0ece2", "d8d0c4")
ACCENTS = ("7f9a8c", "a8563e", "4f6f8f", "c79a4b", "6e7f5a", "8c6a7a")
BOARDS = (("b98a5a", "94683c"), ("c9a57a", "a88357"), ("7d5636", "5a3b22"), ("d6bf9c", "b89c74"))
CARPETS = (("5d6670", "7d8791"), ("6b5e50", "8f8070"), ("3f5563", "6a7f8a"), ("70757a", "989ca0"),
           ("59434a", "7a6068"), ("7b7a6c", "9a998a"))  # fmt: skip
TILE_COLORS = (
    ("d6d2c8", "9d998f"),
    ("b9b4aa", "8a867d"),
    ("8f8b84", "63605b"),
    ("e2dfd8", "b0aca3"),
)
MAX_LAMPS = 4


@checks.arguments
def room(seed: int, index: int) -> Scene:
    """Room `index` of a seed: always the same."""
    checks.integer("seed", seed, low=0)
    checks.integer("index", index, low=0)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
    kind = KINDS[rng.choice(len(KINDS), p=[k.share for k in KINDS])]
    length, width, height = (float(rng.uniform(low, high)) for low, high in kind.size)
    across = rng.random() < 0.5
    plan = Plan(rng, (width, length, height) if across else (length, width, height))
    _shell(plan, kind)
    _lamps(plan, kind)
    kind.furnish(plan)
    assert plan.camera is not None
    daylight = _daylight(plan)
    workshop = plan.workshop
    bright = rng.uniform(0.9, 1.15)
    warmth = np.array([1.0, rng.uniform(0.94, 1.0), rng.uniform(0.84, 1.0)])
    return Scene(
        kind=kind.name,
        size=plan.size,
        camera=plan.camera,
        openings=tuple(workshop.openings),
        pieces=tuple(workshop.pieces),
        surfaces=workshop.surfaces(),
        materials=Materials.table(workshop.materials),
        lamps=(*plan.lamps, *daylight),
        sun=_sun(plan) if daylight and rng.random() < 0.45 else None,
        ambient=(0.35 if daylight else 0.31) * warmth,
        exposure=1.45 * bright,
        seed=int(rng.integers(2**31)),
    )


def _shell(plan: Plan, kind: Kind) -> None:
    """Materials of walls, floor and ceiling: the first six surfaces."""
    rng, w = plan.rng, plan.workshop
    paint = PAINTS[rng.integers(len(PAINTS))]
    skirting = linear(("efece6", "4a3a2c", "8b8f93")[rng.integers(3)])
    wainscot = float(rng.uniform(0.9, 1.1)) if rng.random() < kind.wainscot else 0.0
    wall = w.material(PLASTER, linear(paint), skirting, (0.09, wainscot))
    walls = [wall] * 4
    if rng.random() < kind.accent:
        other = (
            w.material(BRICK, linear("9a5a42"), linear("b9b0a4"))
            if rng.random() < 0.35
            else w.material(
                PLASTER, linear(ACCENTS[rng.integers(len(ACCENTS))]), skirting, (0.09, 0.0)
            )
        )
        walls[rng.integers(4)] = other
    for k, material in enumerate(walls):
        w.surface("wall", k + 1, material)
        w.instance("wall")
    w.surface("floor", w.instance("floor"), _floor(plan, kind))
    suspended = rng.random() < kind.suspended
    ceiling = (
        w.material(PANELS, linear("eeece6"), linear("d2d1cc"), (0.6, 0.0))
        if suspended
        else w.material(CONCRETE if rng.random() < 0.25 else PLASTER, linear("eae8e3"))
    )
    w.surface("ceiling", w.instance("ceiling"), ceiling)


def _floor(plan: Plan, kind: Kind) -> int:
    rng, w = plan.rng, plan.workshop
    choice = kind.floors[rng.integers(len(kind.floors))]
    if choice == "planks":
        a, b = BOARDS[rng.integers(len(BOARDS))]
        return w.material(PLANKS, linear(a), linear(b), (rng.uniform(0.09, 0.2), 1.4))
    if choice == "carpet":
        a, b = CARPETS[rng.integers(len(CARPETS))]
        return w.material(CARPET, linear(a), linear(b), (0.5 if rng.random() < 0.5 else 0.0, 0.0))
    if choice == "tiles":
        a, b = TILE_COLORS[rng.integers(len(TILE_COLORS))]
        return w.material(TILES, linear(a), linear(b), (float(rng.choice([0.3, 0.45, 0.6])), 0.0))
    return w.material(CONCRETE, linear("8f8d88"))


def _lamps(plan: Plan, kind: Kind) -> None:
    """Panels of the ceiling in even rows, and beams between the rows."""
    rng, size = plan.rng, plan.size
    counts = np.clip(np.round(size[:2] / 2.6), 1, 5).astype(int)
    while counts.prod() > MAX_LAMPS:
        counts[np.argmax(counts)] -= 1
    long = int(np.argmax(size[:2]))
    half = [0.3, 0.3]
    half[long] = float(rng.choice([0.3, 0.6, 0.6]))
    tint = np.array([1.0, rng.uniform(0.9, 1.0), rng.uniform(0.74, 1.0)])
    # As much light for each square meter of the floor, wherever it comes from.
    power = rng.uniform(1.15, 1.5) * size[0] * size[1] / counts.prod() * (size[2] / 2.8)
    for i in range(counts[0]):
        for j in range(counts[1]):
            place = (np.array([i, j]) + 0.5) * size[:2] / counts
            place = np.round(place / 0.6 - 0.5) * 0.6 + 0.3
            center = np.array([*np.clip(place, half, size[:2] - half), size[2]])
            lamp = Lamp(center, (half[0], half[1]), np.array([0.0, 0.0, -1.0]), power * tint, True)
            plan.lamps.append(lamp)
    if rng.random() < kind.beams:
        concrete = plan.workshop.material(CONCRETE, linear("c9c6c0"))
        timber = plan.workshop.material(WOOD, linear("8a6242"), linear("5f4129"))
        material = timber if rng.random() < 0.4 else concrete
        deep, wide = rng.uniform(0.2, 0.4), rng.uniform(0.12, 0.25)
        for i in range(counts[long] + 1):
            at = float(np.clip(i * size[long] / counts[long], wide, size[long] - wide))
            ends = [(0.0, float(size[0])), (0.0, float(size[1]))]
            ends[long] = (at - wide, at + wide)
            beam = box(material, ends[0], ends[1], (float(size[2] - deep), float(size[2])))
            plan.workshop.place([("beam", [beam])], (0, 0, 0))


def _daylight(plan: Plan) -> list[Lamp]:
    """One lamp for the windows of each wall."""
    lamps = []
    for wall in range(4):
        glass = [
            o for o in plan.workshop.openings
            if o.wall == wall and _is_glass(plan, o.panel)
        ]  # fmt: skip
        if not glass:
            continue
        low, high = np.array([o.low for o in glass]), np.array([o.high for o in glass])
        area = float((high - low).prod(1).sum())
        (u, v), (h, k) = (low.min(0) + high.max(0)) / 2, (high.max(0) - low.min(0)) / 2
        normal = np.zeros(3)
        normal[wall // 2] = -1.0 if wall % 2 else 1.0
        center = plan.on_wall(wall, float(u), -glass[0].recess, float(v))
        power = 2.6 * area * np.array([0.86, 0.95, 1.08])
        lamps.append(Lamp(center, (float(h), float(k)), normal, power, False))
    return lamps


def _is_glass(plan: Plan, surface: int) -> bool:
    material = plan.workshop.material_of(surface)
    return plan.workshop.materials[material].texture == GLASS


def _sun(plan: Plan) -> Sun:
    """Somewhere outside the first wall with windows, not too high."""
    wall = next(o.wall for o in plan.workshop.openings if _is_glass(plan, o.panel))
    out = np.zeros(3)
    out[wall // 2] = 1.0 if wall % 2 else -1.0
    side = np.array([-out[1], out[0], 0.0]) * plan.rng.uniform(-0.9, 0.9)
    towards: NDArray = out + side + np.array([0.0, 0.0, plan.rng.uniform(0.35, 0.9)])
    return Sun(towards / np.linalg.norm(towards), np.array([2.6, 2.3, 1.9]))
