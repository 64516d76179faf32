"""The kinds of rooms: how large, of what materials, and what stands in them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from spherule.rooms import furniture as f
from spherule.rooms import objects
from spherule.rooms.fittings import (
    bistro,
    bookcase,
    carton_pile,
    chairs_around,
    columns,
    furniture_at_wall,
    notice_board,
    picture,
    radiator,
    small_things,
    television,
    whiteboard,
    windows,
    work_at_wall,
)
from spherule.rooms.furniture import box, linear
from spherule.rooms.plan import Plan
from spherule.rooms.textures import CONCRETE, FABRIC

Range = tuple[float, float]


@dataclass(frozen=True)
class Kind:
    """A kind of room; shares are probabilities."""

    name: str
    share: float
    size: tuple[Range, Range, Range]
    furnish: Callable[[Plan], None]
    floors: tuple[str, ...] = ("carpet", "planks", "tiles")
    suspended: float = 0.7
    beams: float = 0.25
    accent: float = 0.35
    wainscot: float = 0.1


def office(plan: Plan) -> None:
    rng, w, s = plan.rng, plan.workshop, plan.style
    daylit = int(rng.integers(4))
    opposite = daylit ^ 1
    plan.door(opposite, at=float(rng.choice([0.05, 0.95])), open_=rng.random() < 0.3)
    windows(plan, daylit)
    plan.stand()
    order = [wall for wall in rng.permutation(4) if wall != daylit]
    desks = 1 + int(rng.random() < 0.5)
    for wall in (*order, daylit)[: desks + 2]:
        length = float(rng.uniform(1.3, 1.7))
        workplace = objects.desk(s, rng, w, length)
        if desks and work_at_wall(plan, workplace, int(wall)):
            desks -= 1
    for _ in range(int(rng.integers(1, 3))):
        bookcase(plan)
    whiteboard(plan, daylit, 0.7)
    furniture_at_wall(
        plan, objects.cabinet(s, w, float(rng.uniform(0.8, 1.2)), float(rng.uniform(0.75, 1.1)))
    )
    if rng.random() < 0.6:
        furniture_at_wall(plan, f.chair(s))
    small_things(plan)
    radiator(plan, daylit)


def conference(plan: Plan) -> None:
    rng, s = plan.rng, plan.style
    long = int(plan.size[1] > plan.size[0])
    daylit = 2 * (1 - long) + int(rng.random() < 0.5)
    plan.door(daylit ^ 1, at=float(rng.choice([0.03, 0.97])), open_=rng.random() < 0.25)
    windows(plan, daylit)
    if rng.random() < 0.6:
        columns(plan, 2)
    length = float(min(plan.size[long] - 2.4, rng.uniform(2.2, 4.2)))
    x, y = plan.size[:2] / 2 + rng.uniform(-0.15, 0.15, 2)
    turn = long * np.pi / 2
    plan.put(f.table(s, rng, length, float(rng.uniform(1.0, 1.3)), 0.74), (x, y), turn)
    plan.stand(clear=0.35)
    chairs_around(plan, x, y, turn, length, 1.15, office=rng.random() < 0.6)
    front = 2 * long + int(rng.random() < 0.5)
    if not whiteboard(plan, daylit, 1.0, wall=front) or rng.random() < 0.5:
        television(plan, front ^ 1)
    bookcase(plan, 0.4)
    furniture_at_wall(plan, objects.cabinet(s, plan.workshop, 1.4, 0.8))
    small_things(plan)
    radiator(plan, daylit)


def lounge(plan: Plan) -> None:
    rng, w, s = plan.rng, plan.workshop, plan.style
    daylit = int(rng.integers(4))
    plan.door(daylit ^ 1, at=float(rng.uniform(0, 1)), open_=rng.random() < 0.4)
    windows(plan, daylit, tall=rng.random() < 0.6)
    if rng.random() < 0.5:
        columns(plan, 2)
    x, y = plan.size[:2] * rng.uniform(0.38, 0.62, 2)
    turn = float(rng.choice([0.0, np.pi / 2]))
    rug = w.material(FABRIC, linear(f.FABRICS[rng.integers(len(f.FABRICS))]))
    w.place([("floor", [box(rug, (-1.5, 1.5), (-1.0, 1.0), (0.0, 0.008))])], (x, y, 0.0), turn)
    plan.put(f.table(s, rng, 1.1, 0.6, 0.42), (x, y), turn)
    forward, aside = np.array([-np.sin(turn), np.cos(turn)]), np.array([np.cos(turn), np.sin(turn)])
    for side in (-1, 1):
        place = np.array([x, y]) + side * 1.05 * forward
        plan.put(f.sofa(s, 3 if side < 0 else 2), place, turn + (0 if side < 0 else np.pi))
    plan.put(f.sofa(s, 1), np.array([x, y]) + 1.45 * aside, turn + np.pi / 2)
    plan.stand(clear=0.35)
    for _ in range(2):
        bookcase(plan, 0.8)
    furniture_at_wall(plan, f.sofa(s, 2))
    if rng.random() < 0.6:
        bistro(plan)
    for _ in range(3):
        picture(plan)
    furniture_at_wall(plan, objects.floor_lamp(s, w))
    whiteboard(plan, daylit, 0.25)
    small_things(plan, plants=2)


def hallway(plan: Plan) -> None:
    rng, s, w = plan.rng, plan.style, plan.workshop
    long = int(plan.size[1] > plan.size[0])
    sides = (2, 3) if long == 0 else (0, 1)
    plan.door(2 * long, at=0.5, open_=rng.random() < 0.5)
    plan.door(2 * long + 1, at=0.5) if rng.random() < 0.5 else windows(plan, 2 * long + 1, most=1)
    glazed = rng.random() < 0.35
    if glazed:
        windows(plan, sides[1], tall=True)
    columns(plan, int(rng.integers(0, 4)), walls=sides)
    for _ in range(int(rng.integers(3, 7))):
        side = sides[0] if glazed else int(rng.choice(sides))
        plan.door(side, open_=rng.random() < 0.2)
    plan.stand(clear=0.4)
    for _ in range(2):
        notice_board(plan, walls=sides)
        picture(plan, walls=sides)
    if plan.size[1 - long] > 2.0:
        furniture_at_wall(plan, f.sofa(s, 2) if rng.random() < 0.4 else f.chair(s), walls=sides)
        if rng.random() < 0.5:
            furniture_at_wall(plan, objects.bookcase(s, rng, w, 1.0, 1.2), walls=sides, high=1.2)
    small_things(plan, plants=1, walls=sides)


def storage(plan: Plan) -> None:
    rng, w, s = plan.rng, plan.workshop, plan.style
    plan.door(int(rng.integers(4)), open_=rng.random() < 0.3)
    if rng.random() < 0.3:
        windows(plan, int(rng.integers(4)), most=1, sill=1.5)
    if rng.random() < 0.5:
        columns(plan, 1)
    plan.stand()
    for _ in range(5):
        furniture_at_wall(
            plan, objects.shelf_rack(s, rng, w, float(rng.uniform(1.0, 1.6))), high=1.9
        )
    if rng.random() < 0.6:
        furniture_at_wall(plan, f.table(s, rng, 1.3, 0.7, 0.75), high=0.8)
    for _ in range(7):
        carton_pile(plan)
    if rng.random() < 0.5:
        furniture_at_wall(plan, f.chair(s))
    small_things(plan, plants=0)


def classroom(plan: Plan) -> None:
    rng, s = plan.rng, plan.style
    long = int(plan.size[1] > plan.size[0])
    front = 2 * long + int(rng.random() < 0.5)
    daylit = 2 * (1 - long) + int(rng.random() < 0.5)
    whiteboard(plan, daylit, 1.0, wall=front, width=float(rng.uniform(2.4, 3.4)))
    plan.door(daylit ^ 1, at=0.04 if front % 2 else 0.96, open_=rng.random() < 0.2)
    windows(plan, daylit)
    columns(plan, int(rng.integers(0, 3)))
    plan.stand(clear=0.5)
    turn = (
        (np.pi / 2 if front % 2 == 0 else -np.pi / 2)
        if long == 0
        else (np.pi if front % 2 == 0 else 0)
    )
    depth, wide = plan.size[long], plan.size[1 - long]
    across = int((wide - 1.0) // 1.75)
    for i in range(int((depth - 2.6) // 1.35)):
        for j in range(across):
            away = 2.3 + 1.35 * i
            place = np.empty(2)
            place[long] = away if front % 2 == 0 else depth - away
            place[1 - long] = wide / 2 + (j - (across - 1) / 2) * 1.75
            if not plan.put(f.table(s, rng, 1.3, 0.5, 0.73), place, turn):
                continue
            back = np.array([np.sin(turn), -np.cos(turn)]) * 0.55
            side = np.array([np.cos(turn), np.sin(turn)]) * 0.32
            for k in (-1, 1):
                seat = place + back * rng.uniform(0.95, 1.25) + k * side
                plan.put(f.chair(s), seat, turn + rng.normal(0, 0.06), margin=-0.12)
    bookcase(plan, 0.6)
    picture(plan)
    small_things(plan)
    radiator(plan, daylit)


def open_space(plan: Plan) -> None:
    rng, w, s = plan.rng, plan.workshop, plan.style
    daylit = int(rng.integers(4))
    plan.door(daylit ^ 1, open_=rng.random() < 0.4)
    windows(plan, daylit, tall=rng.random() < 0.4)
    concrete = w.material(CONCRETE, linear("c4c1ba"))
    round_ = rng.random() < 0.4
    for i in (1, 2):
        x, y = plan.size[0] * i / 3, plan.size[1] * rng.uniform(0.45, 0.55)
        plan.pillar(float(x), float(y), 0.45, concrete, round_=round_)
    plan.stand(clear=0.5)
    for i in range(int(plan.size[0] // 2.6)):
        for j in range(int(plan.size[1] // 3.0)):
            x, y = 1.5 + 2.6 * i, 1.6 + 3.0 * j
            for side in (-1, 1):
                where, turn = y + side * 0.4, 0.0 if side > 0 else np.pi
                if plan.put(objects.desk(s, rng, w, 1.5), (x, where), turn, margin=0.0):
                    seat = where + side * 0.75
                    plan.put(
                        f.office_chair(s),
                        (x + rng.normal(0, 0.1), seat),
                        turn + np.pi + rng.normal(0, 0.3),
                        margin=-0.1,
                    )
    for _ in range(2):
        bookcase(plan)
    whiteboard(plan, daylit, 0.8)
    furniture_at_wall(plan, f.sofa(s, 2))
    small_things(plan, plants=2)


KINDS = (
    Kind("office", 0.28, ((3.2, 5.2), (3.0, 4.4), (2.6, 3.1)), office),
    Kind("conferenceRoom", 0.18, ((4.8, 7.5), (3.8, 5.4), (2.7, 3.3)), conference, beams=0.35),
    Kind("lounge", 0.14, ((5.0, 8.0), (4.5, 6.5), (2.8, 3.6)), lounge,
         ("planks", "planks", "tiles", "carpet"), 0.35, 0.45, 0.6),
    Kind("hallway", 0.16, ((8.0, 15.0), (1.7, 2.8), (2.5, 3.1)), hallway,
         ("tiles", "carpet", "tiles"), 0.7, 0.4, 0.15, 0.4),
    Kind("storage", 0.08, ((3.0, 5.0), (2.6, 4.0), (2.5, 3.2)), storage,
         ("concrete", "tiles"), 0.3, 0.4, 0.0),
    Kind("auditorium", 0.08, ((6.0, 9.0), (5.0, 7.0), (2.9, 3.7)), classroom, beams=0.5),
    Kind("openspace", 0.08, ((7.0, 10.5), (6.0, 8.5), (2.8, 3.5)), open_space, beams=0.5),
)  # fmt: skip
