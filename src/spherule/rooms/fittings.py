"""What rooms of several kinds share: rows of windows, desks with chairs, boards, pictures, columns,
and the small things of everywhere.
"""

import numpy as np

from spherule.rooms import furniture as f
from spherule.rooms import objects
from spherule.rooms.furniture import Things, box, linear
from spherule.rooms.plan import TURNS, Plan
from spherule.rooms.textures import BOARD, CONCRETE, FABRIC, FLAT, PICTURE, RIBS, SCREEN


def windows(
    plan: Plan, wall: int, *, most: int = 4, tall: bool = False, sill: float | None = None
) -> None:
    """A row of equal windows."""
    rng = plan.rng
    width = float(rng.uniform(1.1, 1.9))
    low = (0.12 if tall else float(rng.uniform(0.8, 0.95))) if sill is None else sill
    top = float(min(plan.size[2] - 0.3, rng.uniform(2.2, 2.6)))
    count = int(np.clip((plan.length(wall) - 0.3) // (width + 0.35), 1, most))
    for k in range(count):
        share = (k + 0.5) / count
        room = plan.length(wall) - width - 0.2
        at = (share * plan.length(wall) - width / 2 - 0.1) / max(room, 0.1)
        plan.window(wall, width, low, top, at=float(np.clip(at, 0, 1)))


def work_at_wall(plan: Plan, workplace: Things, wall: int) -> bool:
    """A desk whose back is at a wall, and the chair that belongs to it."""
    along = plan.put_at_wall(workplace, wall, high=1.25)
    if along is None:
        return False
    x, y, _ = plan.on_wall(wall, along, 0.38 + 0.02 + float(plan.rng.uniform(0.62, 0.8)))
    angle = TURNS[wall] + np.pi + float(plan.rng.normal(0, 0.35))
    plan.put(f.office_chair(plan.style), (x, y), angle, margin=-0.12)
    return True


def chairs_around(
    plan: Plan, x: float, y: float, turn: float, length: float, depth: float, *, office: bool
) -> None:
    """Chairs on both long sides and at the ends of a table, each facing it."""
    rng, make = plan.rng, f.office_chair if office else f.chair
    places = [
        (a, side * (depth / 2 + rng.uniform(0.18, 0.4)), np.pi if side > 0 else 0.0)
        for a in np.arange(-length / 2 + 0.4, length / 2 - 0.3, 0.72)
        for side in (-1, 1)
    ]
    places += [(side * (length / 2 + 0.3), 0.0, side * np.pi / 2) for side in (-1, 1)]
    cos, sin = np.cos(turn), np.sin(turn)
    for a, b, facing in places:
        plan.put(
            make(plan.style),
            (x + cos * a - sin * b, y + sin * a + cos * b),
            turn + facing + rng.normal(0, 0.12),
            margin=-0.2,
        )


def furniture_at_wall(
    plan: Plan, things: Things, *, walls: tuple[int, ...] = (0, 1, 2, 3), high: float = 1.0
) -> bool:
    """Try the walls in some order."""
    return any(
        plan.put_at_wall(things, int(wall), high=high) is not None
        for wall in plan.rng.permutation(walls)
    )


def bookcase(plan: Plan, share: float = 1.0) -> None:
    if plan.rng.random() < share:
        width, high = float(plan.rng.uniform(0.8, 1.8)), float(plan.rng.choice([1.2, 1.9, 2.1]))
        things = objects.bookcase(plan.style, plan.rng, plan.workshop, width, high)
        furniture_at_wall(plan, things, high=high)


def whiteboard(
    plan: Plan, daylit: int, share: float, *, wall: int | None = None, width: float | None = None
) -> bool:
    """A white or green board at the height of the eyes, in a frame with a tray."""
    rng, w, s = plan.rng, plan.workshop, plan.style
    if rng.random() > share:
        return False
    green = rng.random() < 0.25
    face = w.material(
        BOARD,
        linear("2f4a3c") if green else linear("f1f1ee"),
        linear("dfe3dc") if green else linear("27406e"),
    )
    h = (float(rng.uniform(1.2, 2.4)) if width is None else width) / 2
    solids = [
        box(s.metal, (-h - 0.03, h + 0.03), (0.0, 0.02), (0.92, 2.08)),
        box(face, (-h, h), (0.02, 0.026), (0.95, 2.05)),
        box(s.metal, (-h, h), (0.02, 0.09), (0.92, 0.945)),
    ]
    choices = [k for k in rng.permutation(4) if k != daylit] if wall is None else [wall]
    return any(plan.hang([("board", solids)], int(k), 2 * h + 0.1, (0.9, 2.1)) for k in choices)


def notice_board(plan: Plan, walls: tuple[int, ...]) -> None:
    rng, w = plan.rng, plan.workshop
    cork = w.material(FABRIC, linear("b48a5e"))
    solids = [box(cork, (-0.6, 0.6), (0.0, 0.025), (1.05, 1.95))]
    for _ in range(6):
        x, z = rng.uniform(-0.52, 0.35), rng.uniform(1.08, 1.6)
        sheet = w.material(FLAT, linear(("f5f3ec", "f2e6a0", "cfe3ee", "eec9c0")[rng.integers(4)]))
        solids.append(box(sheet, (x, x + 0.2), (0.025, 0.027), (z, z + 0.28)))
    plan.hang([("board", solids)], int(rng.choice(walls)), 1.3, (1.0, 2.0))


def television(plan: Plan, wall: int) -> None:
    w, s = plan.workshop, plan.style
    shown = w.material(SCREEN, linear("e8ecf2"), linear("31557d"))
    solids = [
        box(s.dark, (-0.72, 0.72), (0.02, 0.07), (1.05, 1.87)),
        box(shown, (-0.69, 0.69), (0.07, 0.075), (1.08, 1.84)),
    ]
    plan.hang([("clutter", solids)], wall, 1.5, (1.0, 1.9))


def picture(plan: Plan, walls: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    rng, w = plan.rng, plan.workshop
    a, b = rng.uniform(0.1, 0.8, 3), rng.uniform(0.02, 0.5, 3)
    h, k = rng.uniform(0.25, 0.6), rng.uniform(0.25, 0.45)
    print_ = box(w.material(PICTURE, a, b), (-h, h), (0.0, 0.025), (1.55 - k, 1.55 + k))
    plan.hang([("clutter", [print_])], int(rng.choice(walls)), 2 * h + 0.1, (1.5 - k, 1.6 + k))


def radiator(plan: Plan, wall: int) -> None:
    """Below the windows."""
    metal = plan.workshop.material(RIBS, linear("e6e4de"), linear("b5b3ad"), (0.06, 0.0))
    solids = [box(metal, (-0.6, 0.6), (0.03, 0.11), (0.12, 0.7))]
    plan.put_at_wall([("clutter", solids)], wall, high=0.72, gap=0.03)


def columns(plan: Plan, count: int, walls: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    """Columns that stand out of the walls."""
    rng = plan.rng
    material = plan.workshop.material(
        CONCRETE, linear(("cfccc5", "b9b6b0", "e0dcd4")[rng.integers(3)])
    )
    side = float(rng.uniform(0.3, 0.5))
    solids = [box(material, (-side / 2, side / 2), (0.0, side * 0.8), (0.0, float(plan.size[2])))]
    for _ in range(count):
        plan.put_at_wall(
            [("column", solids)], int(rng.choice(walls)), high=float(plan.size[2]), gap=0.0
        )


def carton_pile(plan: Plan) -> None:
    """One to three cartons, the smaller on the larger."""
    rng = plan.rng
    things: Things = []
    x, y, z = rng.uniform(0.18, 0.3), rng.uniform(0.16, 0.25), 0.0
    for _ in range(int(rng.integers(1, 4))):
        top = z + float(rng.uniform(0.2, 0.4))
        things.append(("clutter", objects.carton(rng, plan.workshop, (-x, x), (-y, y), (z, top))))
        x, y, z = x * rng.uniform(0.7, 1), y * rng.uniform(0.7, 1), top
    where = rng.uniform((0.4, 0.4), plan.size[:2] - 0.4)
    plan.put(things, where, float(rng.uniform(0, np.pi)), margin=0.05)


def bistro(plan: Plan) -> None:
    """A round table with chairs."""
    rng, s = plan.rng, plan.style
    top = [
        f.post(s.top, 0, 0, 0.42, (0.71, 0.74)),
        f.post(s.metal, 0, 0, 0.035, (0.03, 0.71)),
        f.post(s.metal, 0, 0, 0.25, (0.0, 0.03)),
    ]
    for _ in range(8):
        x, y = rng.uniform((1.0, 1.0), plan.size[:2] - 1.0)
        if plan.put([("table", top)], (x, y), margin=0.45):
            start = rng.uniform(0, np.pi)
            for k in range(3):
                angle = start + k * 2.0944
                place = x + 0.6 * np.cos(angle), y + 0.6 * np.sin(angle)
                plan.put(f.chair(s), place, angle + np.pi / 2, margin=-0.15)
            return


def small_things(plan: Plan, *, plants: int = 1, walls: tuple[int, ...] = (0, 1, 2, 3)) -> None:
    rng, w, s = plan.rng, plan.workshop, plan.style
    furniture_at_wall(plan, objects.bin_(s, rng), walls=walls)
    for _ in range(plants):
        if rng.random() < 0.75:
            furniture_at_wall(
                plan, objects.plant(rng, w, float(rng.uniform(0.9, 1.7))), walls=walls
            )
    if rng.random() < 0.7:
        picture(plan, walls)
    if rng.random() < 0.35:
        carton_pile(plan)
