"""Light that reaches points of a room: lamps and windows with soft shadows, the sun, and ambient
light that corners and furniture keep away.

A lamp is a rectangle, one ray goes to its middle, and a box takes away the part of the beam that
it covers: the beam narrows from the lamp's width to nothing at the point, so shadows are sharp
where things touch and soften with distance, without noise. Round solids cast the shadow of a box.
"""

import numpy as np
from numpy.typing import NDArray

from spherule.rooms.scene import BOX, Lamp, Piece, Scene, Sun
from spherule.rooms.trace import bounds, near_cones, product

REACH = 0.35
"""How far ambient light looks for things in its way, meters."""
DIM = 0.01
"""Light below this is taken as unshadowed."""


def shadows(
    scene: Scene, points: NDArray[np.float32], normals: NDArray[np.float32]
) -> NDArray[np.float32]:
    """What is left of each kind of light, between 0 and 1: ambient, the lamps, the sun; (k, n)."""
    left = np.ones((len(scene.lamps) + 2, points.shape[1]), np.float32)
    left[0] = _openness(scene, points, normals)
    for k, lamp in enumerate(scene.lamps, start=1):
        lit = np.flatnonzero(_shine(lamp, points, normals) * lamp.power.max() > DIM)
        left[k, lit] = _unblocked(scene, lamp, points[:, lit])
    left[-1] = 0.0 if scene.sun is None else _sunlit(scene, scene.sun, points, normals)
    return left


def irradiance(
    scene: Scene,
    points: NDArray[np.float32],
    normals: NDArray[np.float32],
    left: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Light on surfaces, (3, n) by color, given what `shadows` leave of it."""
    # Ambient light comes from the floor, which the lamps light, more than from the ceiling.
    total = scene.ambient.astype(np.float32)[:, None] * ((1.25 - 0.6 * normals[2]) * left[0])
    for lamp, part in zip(scene.lamps, left[1:-1], strict=True):
        total += lamp.power.astype(np.float32)[:, None] * (_shine(lamp, points, normals) * part)
    if scene.sun is not None:
        facing = np.maximum(product(scene.sun.towards.astype(np.float32), normals), 0)
        total += scene.sun.color.astype(np.float32)[:, None] * (facing * left[-1])
    return total


def _shine(lamp: Lamp, points: NDArray, normals: NDArray) -> NDArray[np.float32]:
    """Irradiance of a Lambertian rectangle of power 1, as if it were all in its middle."""
    v = lamp.center.astype(np.float32)[:, None] - points
    square = v[0] * v[0] + v[1] * v[1] + v[2] * v[2]
    arriving = v[0] * normals[0] + v[1] * normals[1] + v[2] * normals[2]
    leaving = -product(lamp.normal.astype(np.float32), v)
    arriving, leaving = np.maximum(arriving, 0), np.maximum(leaving, 0)
    area = np.float32(4 * lamp.half[0] * lamp.half[1])
    # The area keeps what is near the lamp from being lit without bound.
    return arriving * leaving / (np.float32(np.pi) * square * (square + area) + np.float32(1e-6))


def _unblocked(scene: Scene, lamp: Lamp, points: NDArray[np.float32]) -> NDArray[np.float32]:
    v = lamp.center.astype(np.float32)[:, None] - points
    length = np.sqrt((v * v).sum(0))
    open_part = np.ones(points.shape[1], np.float32)
    width = 2 * float(np.sqrt(lamp.half[0] * lamp.half[1]))
    pieces = [piece for piece in scene.pieces if piece.casts.size]
    if not pieces:
        return open_part
    centers, radii = bounds(pieces)
    centers = centers - lamp.center
    # A shadow reaches past the cone by half a beam: what is nearer to the point than to the lamp
    # stays within a quarter of the lamp's width, and the rest of a softer edge is let go.
    candidates = near_cones(centers, radii + width / 4, -v / np.maximum(length, 1e-6))
    nearest = np.linalg.norm(centers, axis=1) - radii
    for piece, near, away in zip(pieces, candidates, nearest, strict=True):
        near = near[length[near] > away]
        if near.size:
            open_part[near] *= _past(piece, points[:, near], v[:, near], width, piece.casts)
    return open_part


def _past(
    piece: Piece, points: NDArray, v: NDArray, width: float, solids: NDArray[np.int64]
) -> NDArray[np.float32]:
    """The part of the beams from points along v that gets past solids of a piece."""
    axes = piece.axes.astype(np.float32)
    o = product(axes, points - piece.origin.astype(np.float32)[:, None])
    v = product(axes, v)
    v = np.where(np.abs(v) < 1e-5, np.float32(1e-5), v)
    part = np.ones(points.shape[1], np.float32)
    low, high = piece.extent
    inverse = 1 / v
    grown = width / 4
    near, far = _through(((low + high) / 2)[None], ((high - low) / 2 + grown)[None], o, inverse)
    enter, leave = _latest(near)[0], _earliest(far)[0]
    tried = np.flatnonzero((enter < leave) & (leave > 1e-4) & (enter < 1))
    if not tried.size:
        return part
    o, v, inverse = o[:, tried], v[:, tried], inverse[:, tried]
    centers, halves = piece.centers[solids], piece.blockers[solids]
    near, far = _through(centers, halves, o, inverse)
    # Along the ray's main direction: rays that just miss a box sideways still count.
    main = np.argmax(np.abs(v), axis=0)
    start = np.where(main == 2, near[2], np.where(main == 1, near[1], near[0]))
    end = np.where(main == 2, far[2], np.where(main == 1, far[1], far[0]))
    cover = ((end > 1e-3) & (start < 1 - 1e-3)).astype(np.float32)
    cover *= ~_touching(piece.kinds[solids], centers, halves, o)
    over_beam = 1 / (np.float32(width) * np.minimum(np.maximum(start, 0.02), 1))
    squares = v * v
    for i, j in ((0, 1), (0, 2), (1, 2)):
        # From t to the distance between ray and edge, in beams.
        scale = np.abs(v[i] * v[j]) / np.sqrt(squares[i] + squares[j])
        one = far[j] - near[i]
        one *= scale
        one *= over_beam
        other = far[i] - near[j]
        other *= scale
        other *= over_beam
        np.minimum(one, 0.5, out=one)
        np.minimum(other, 0.5, out=other)
        one += other
        cover *= np.maximum(one, 0, out=one)
    part[tried] = np.multiply.reduce(1 - cover)
    return part


def _touching(kinds: NDArray, centers: NDArray, halves: NDArray, o: NDArray) -> NDArray[np.bool_]:
    """Which points lie on which solids (rows), so that no beam of theirs is blocked by it.

    For a round solid that is a wider box, because its own box cuts through it, but not at its foot:
    what it stands on is in its shadow.
    """
    boxes = (kinds == BOX)[:, None]
    reach = np.where(boxes, halves + 2e-3, halves * 1.3).astype(np.float32)
    foot = np.where(boxes[:, 0], -reach[:, 2], 1e-3 - halves[:, 2]).astype(np.float32)
    centers = centers.astype(np.float32)
    inside = o[2] - centers[:, 2, None] > foot[:, None]
    for k in range(3):
        inside &= np.abs(o[k] - centers[:, k, None]) < reach[:, k, None]
    return inside


def _latest(near: list[NDArray]) -> NDArray:
    return np.maximum(np.maximum(near[0], near[1]), near[2])


def _earliest(far: list[NDArray]) -> NDArray:
    return np.minimum(np.minimum(far[0], far[1]), far[2])


def _through(
    centers: NDArray, halves: NDArray, o: NDArray, inverse: NDArray
) -> tuple[list[NDArray[np.float32]], list[NDArray[np.float32]]]:
    """Where rays enter and leave the three slabs of boxes (rows)."""
    near, far = [], []
    centers, halves = centers.astype(np.float32), halves.astype(np.float32)
    for k in range(3):
        middle = centers[:, k, None] - o[k]
        middle *= inverse[k]
        reach = halves[:, k, None] * np.abs(inverse[k])
        near.append(middle - reach)
        middle += reach
        far.append(middle)
    return near, far


def _openness(scene: Scene, points: NDArray, normals: NDArray) -> NDArray[np.float32]:
    """How free the space in front of a point is: the distance to the nearest thing from REACH above
    it, over REACH.
    """
    probe = points + np.float32(REACH) * normals
    size = scene.size.astype(np.float32)[:, None]
    free = np.minimum(np.minimum(probe, size - probe).min(0), REACH)
    square = (probe * probe).sum(0)
    if scene.pieces:
        centers, radii = bounds(scene.pieces)
        limit = (radii + REACH) ** 2 - (centers**2).sum(1) + 1e-3
        along = product(centers.astype(np.float32), probe)
        inside = square - 2 * along < limit.astype(np.float32)[:, None]
        for piece, row in zip(scene.pieces, inside, strict=True):
            near = np.flatnonzero(row)
            if near.size:
                free[near] = np.minimum(free[near], _distance(piece, probe[:, near]))
    open_part = np.clip(free / np.float32(REACH), 0, 1)
    return np.float32(0.35) + np.float32(0.65) * open_part * (2 - open_part)


def _distance(piece: Piece, points: NDArray) -> NDArray[np.float32]:
    """From points to the nearest solid of a piece, 0 inside."""
    away = points - piece.origin.astype(np.float32)[:, None]
    local = product(piece.axes.astype(np.float32), away)
    centers, halves = piece.centers.astype(np.float32), piece.halves.astype(np.float32)
    square = np.zeros((centers.shape[0], points.shape[1]), np.float32)
    for k in range(3):
        beyond = np.maximum(np.abs(local[k] - centers[:, k, None]) - halves[:, k, None], 0)
        square += beyond * beyond
    return np.sqrt(square.min(0))


def _sunlit(scene: Scene, sun: Sun, points: NDArray, normals: NDArray) -> NDArray[np.float32]:
    """Whether the sun reaches a point: through a window, and past everything."""
    towards = sun.towards.astype(np.float32)
    facing = product(towards, normals)
    through = np.zeros(points.shape[1], bool)
    for opening in scene.openings:
        across, along = opening.wall // 2, 1 - opening.wall // 2
        out = 1.0 if opening.wall % 2 else -1.0
        if towards[across] * out < 0.05 or opening.low[1] <= 0:
            continue
        inside = np.ones(points.shape[1], bool)
        wall = scene.size[across] if out > 0 else 0.0
        for plane in (wall, wall + out * opening.recess):
            t = (np.float32(plane) - points[across]) / towards[across]
            for k, axis in enumerate((along, 2)):
                at = points[axis] + t * towards[axis]
                inside &= (at > opening.low[k]) & (at < opening.high[k])
            if plane == wall:
                inside &= t > 0
        through |= inside
    lit = np.flatnonzero(through & (facing > 0))
    left = np.zeros(points.shape[1], np.float32)
    if lit.size:
        left[lit] = 1.0
        v = np.broadcast_to(12 * towards[:, None], (3, lit.size))
        for piece in scene.pieces:
            every = np.arange(piece.kinds.size)
            left[lit] *= _past(piece, points[:, lit], v, 0.25, every)
    return left
