"""Ray tracing again, plainly: every ray against every face of everything, no culling, no slabs."""

import numpy as np
from numpy.typing import NDArray

from spherule.rooms import Scene
from spherule.rooms.scene import BOX, CYLINDER


def distances(scene: Scene, directions: NDArray) -> tuple[NDArray, NDArray]:
    """Distance and surface of the first hit of rays (n, 3) from the camera."""
    candidates = [*_shell(scene, directions)]
    for piece in scene.pieces:
        o = piece.axes @ (scene.camera - piece.origin)
        v = directions @ piece.axes.T
        for k, kind in enumerate(piece.kinds):
            solid = {BOX: _box, CYLINDER: _cylinder}.get(kind, _ellipsoid)
            t = solid(o - piece.centers[k], v, piece.halves[k])
            candidates.append((t, piece.surface + k))
    t = np.stack([t for t, _ in candidates])
    first = t.argmin(0)
    surfaces = np.array([surface for _, surface in candidates])
    return t.min(0), surfaces[first]


def _shell(scene: Scene, d: NDArray):
    """The six sides, walls with holes, and the five faces behind each hole."""
    o = scene.camera
    for surface in range(6):
        axis, side = divmod(surface, 2)
        t, at = _plane(o, d, axis, scene.size[axis] * side)
        inside = np.ones(len(d), bool)
        for other in {0, 1, 2} - {axis}:
            inside &= (at[:, other] >= 0) & (at[:, other] <= scene.size[other])
        for hole in scene.openings:
            if hole.wall == surface:
                inside &= ~_within(at[:, [1 - axis, 2]], hole.low, hole.high)
        yield np.where(inside, t, np.inf), surface
    for hole in scene.openings:
        axis, out = hole.wall // 2, hole.wall % 2
        wall = scene.size[axis] * out
        back = wall + hole.recess * (1 if out else -1)
        t, at = _plane(o, d, axis, back)
        yield np.where(_within(at[:, [1 - axis, 2]], hole.low, hole.high), t, np.inf), hole.panel
        for k, across in enumerate((1 - axis, 2)):
            for end in (hole.low[k], hole.high[k]):
                t, at = _plane(o, d, across, end)
                depth = (at[:, axis] - wall) * (1 if out else -1)
                other = (2, 1 - axis)[k]
                side = (at[:, other] > hole.low[1 - k]) & (at[:, other] < hole.high[1 - k])
                behind = (depth > 0) & (depth < hole.recess)
                yield np.where(side & behind, t, np.inf), hole.reveal


def _within(at: NDArray, low, high) -> NDArray:
    return ((at > low) & (at < high)).all(1)


def _plane(o: NDArray, d: NDArray, axis: int, place: float) -> tuple[NDArray, NDArray]:
    t = (place - o[axis]) / d[:, axis]
    t = np.where(t > 0, t, np.inf)
    return t, o + np.where(np.isfinite(t), t, 0)[:, None] * d


def _box(o: NDArray, v: NDArray, half: NDArray) -> NDArray:
    best = np.full(len(v), np.inf)
    for axis in range(3):
        others = [k for k in range(3) if k != axis]
        for side in (-1, 1):
            t, at = _plane(o, v, axis, side * half[axis])
            inside = (np.abs(at[:, others]) <= half[others]).all(1)
            best = np.minimum(best, np.where(inside, t, np.inf))
    return best


def _cylinder(o: NDArray, v: NDArray, half: NDArray) -> NDArray:
    best = np.full(len(v), np.inf)
    for side in (-1, 1):
        t, at = _plane(o, v, 2, side * half[2])
        best = np.minimum(best, np.where(np.hypot(at[:, 0], at[:, 1]) <= half[0], t, np.inf))
    for k, ray in enumerate(v):
        roots = np.roots([ray[:2] @ ray[:2], 2 * ray[:2] @ o[:2], o[:2] @ o[:2] - half[0] ** 2])
        for t in roots[np.isreal(roots)].real:
            if 0 < t < best[k] and abs(o[2] + t * ray[2]) <= half[2]:
                best[k] = t
    return best


def _ellipsoid(o: NDArray, v: NDArray, half: NDArray) -> NDArray:
    best = np.full(len(v), np.inf)
    for k, ray in enumerate(v):
        a, b = o / half, ray / half
        roots = np.roots([b @ b, 2 * a @ b, a @ a - 1])
        ahead = roots[np.isreal(roots) & (roots.real > 0)].real
        if ahead.size:
            best[k] = ahead.min()
    return best
