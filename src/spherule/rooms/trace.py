"""What each ray meets first: exact, in float64, vectorized over the rays near each piece.

All rays start at the camera. A piece is tried only on the rays inside the cone around its bounding
sphere; there, all of its solids at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from spherule import checks
from spherule.rooms.scene import BOX, CYLINDER, ELLIPSOID, Opening, Piece, Scene

BLOCK = 2**16
FEW = 3
"""Solids that are tried at once; where a piece has more, the box around it is tried first."""
ROUND = 6
"""The face of a cylinder's side and of an ellipsoid; 0 to 5 are the faces of a box."""


@dataclass(frozen=True)
class Hits:
    """Where rays end, one column a ray."""

    distance: NDArray[np.float64]
    surface: NDArray[np.int64]
    face: NDArray[np.int64]
    """0 to 5 for the outward normals -x, +x, -y, +y, -z, +z of a solid's frame, or ROUND."""
    normal: NDArray[np.float64]
    """Towards the camera's side, in the world, (3, n)."""
    local: NDArray[np.float64]
    """The point in its solid's frame, or in the world on the shell, (3, n)."""

    def take(self, rays: NDArray[np.int64] | slice) -> "Hits":
        """Some of them."""
        return Hits(
            self.distance[rays],
            self.surface[rays],
            self.face[rays],
            self.normal[:, rays],
            self.local[:, rays],
        )


@checks.arguments
def trace(scene: Scene, directions: Float[NDArray, "rays 3"]) -> Hits:
    """The first hits of rays from the camera along unit vectors."""
    lengths = np.linalg.norm(directions, axis=-1) if directions.ndim == 2 else np.zeros(1)
    if directions.shape[1:] != (3,) or not np.allclose(lengths, 1):
        raise ValueError(f"directions: expected unit vectors (rays, 3), got {directions.shape}")
    parts = [_trace(scene, directions[block]) for block in blocks(len(directions))]
    if len(parts) == 1:
        return parts[0]
    arrays = zip(*(vars(part).values() for part in parts), strict=True)
    return Hits(*(np.concatenate(several, axis=-1) for several in arrays))


def blocks(count: int) -> list[slice]:
    """What is worked on at once, so that large images need little memory."""
    return [slice(start, min(start + BLOCK, count)) for start in range(0, count, BLOCK)]


def _trace(scene: Scene, directions: NDArray[np.float64]) -> Hits:
    d = np.ascontiguousarray(directions.T, dtype=np.float64)
    # A ray within a plane would divide 0 by 0; 1e-14 off it, nothing changes.
    d = np.where(np.abs(d) < 1e-14, 1e-14, d)
    hits = _shell(scene, d)
    for opening in scene.openings:
        _opening(scene, opening, d, hits)
    if scene.pieces:
        centers, radii = bounds(scene.pieces)
        candidates = near_cones(centers - scene.camera, radii, d)
        for piece, rays in zip(scene.pieces, candidates, strict=True):
            if rays.size:
                _piece(scene, piece, d[:, rays], rays, hits)
    return hits


def bounds(pieces: Sequence[Piece]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Centers (k, 3) and radii of spheres around pieces."""
    return (
        np.stack([piece.bound_center for piece in pieces]),
        np.array([piece.bound_radius for piece in pieces]),
    )


def product(a: NDArray, b: NDArray) -> NDArray:
    """a @ b on one thread: for matrices this thin, those of BLAS cost more than they bring."""
    return np.einsum("...k,kn->...n", a, b)


def near_cones(
    centers: NDArray[np.float64], radii: NDArray[np.float64], d: NDArray
) -> list[NDArray[np.int64]]:
    """For each sphere the rays from the origin that may meet it."""
    away = np.maximum(np.linalg.norm(centers, axis=1), 1e-9)
    cos = np.sqrt(np.maximum(1 - (radii / away) ** 2, 0.0))
    cos = np.where(radii >= away, -2.0, cos - 1e-3)  # roomy: float32 decides only what is tried
    axes = (centers / away[:, None]).astype(np.float32)
    inside = product(axes, d.astype(np.float32, copy=False)) > cos.astype(np.float32)[:, None]
    return [np.flatnonzero(row) for row in inside]


def _shell(scene: Scene, d: NDArray[np.float64]) -> Hits:
    outward = d > 0
    planes = np.where(outward, scene.size[:, None], 0.0)
    t = (planes - scene.camera[:, None]) / d
    axis = np.argmin(t, axis=0)
    rays = np.arange(d.shape[1])
    distance = t[axis, rays]
    side = outward[axis, rays]
    normal = np.zeros_like(d)
    normal[axis, rays] = np.where(side, -1.0, 1.0)
    local = scene.camera[:, None] + distance * d
    surface = 2 * axis + side
    return Hits(distance, surface, surface.copy(), normal, local)


def _opening(scene: Scene, opening: Opening, d: NDArray[np.float64], hits: Hits) -> None:
    """Rays that leave the shell through the rectangle go on to its sides or its far panel."""
    across, along = opening.wall // 2, 1 - opening.wall // 2
    place = hits.local
    rays = np.flatnonzero(
        (hits.surface == opening.wall)
        & (
            np.abs(place[along] - (opening.low[0] + opening.high[0]) / 2)
            < (opening.high[0] - opening.low[0]) / 2
        )
        & (
            np.abs(place[2] - (opening.low[1] + opening.high[1]) / 2)
            < (opening.high[1] - opening.low[1]) / 2
        )
    )
    if not rays.size:
        return
    v, out = d[:, rays], opening.wall % 2
    t = np.empty_like(v)
    far = scene.size[across] + opening.recess if out else -opening.recess
    t[across] = (far - scene.camera[across]) / v[across]
    for k, axis in enumerate((along, 2)):
        end = np.where(v[axis] > 0, opening.high[k], opening.low[k])
        t[axis] = (end - scene.camera[axis]) / v[axis]
    axis = np.argmin(t, axis=0)
    each = np.arange(rays.size)
    distance = t[axis, each]
    hits.distance[rays] = distance
    hits.surface[rays] = np.where(axis == across, opening.panel, opening.reveal)
    side = v[axis, each] > 0
    hits.face[rays] = 2 * axis + side
    normal = np.zeros_like(v)
    normal[axis, each] = np.where(side, -1.0, 1.0)
    hits.normal[:, rays] = normal
    hits.local[:, rays] = scene.camera[:, None] + distance * v


def _piece(
    scene: Scene, piece: Piece, d: NDArray[np.float64], rays: NDArray[np.int64], hits: Hits
) -> None:
    o = piece.axes @ (scene.camera - piece.origin)
    v = product(piece.axes, d)
    v = np.where(np.abs(v) < 1e-14, 1e-14, v)
    if piece.kinds.size > FEW:
        low, high = piece.extent
        # A little larger than it is: what touches its sides must not be lost to rounding.
        enter, leave = _slabs((low + high)[None] / 2 - o, (high - low)[None] / 2 + 1e-6, 1.0 / v)
        (close,) = ((enter < leave) & (leave > 0) & (enter < hits.distance[rays]))[0].nonzero()
        rays, v = rays[close], v[:, close]
        if not rays.size:
            return
    best = hits.distance[rays]
    which = np.full(rays.size, -1)
    for kind, meet in ((BOX, _boxes), (CYLINDER, _cylinders), (ELLIPSOID, _ellipsoids)):
        members = np.flatnonzero(piece.kinds == kind)
        if not members.size:
            continue
        t = meet(piece.centers[members] - o, piece.halves[members], v)
        first = np.argmin(t, axis=0)
        nearest = t[first, np.arange(rays.size)]
        closer = nearest < best
        best = np.where(closer, nearest, best)
        which = np.where(closer, members[first], which)
    met = np.flatnonzero(which >= 0)
    if not met.size:
        return
    which, best, v, rays = which[met], best[met], v[:, met], rays[met]
    local = o[:, None] + best * v - piece.centers[which].T
    half = piece.halves[which].T
    normal, face = _normals(piece.kinds[which], local, half)
    hits.distance[rays] = best
    hits.surface[rays] = piece.surface + which
    hits.face[rays] = face
    hits.normal[:, rays] = product(piece.axes.T, normal)
    hits.local[:, rays] = local


def _boxes(centers: NDArray, halves: NDArray, v: NDArray) -> NDArray[np.float64]:
    """Distance to each box (rows) along each ray (columns), inf where it is missed."""
    enter, leave = _slabs(centers, halves, 1.0 / v)
    return np.where((enter < leave) & (enter > 0), enter, np.inf)


def _slabs(centers: NDArray, halves: NDArray, inverse: NDArray) -> tuple[NDArray, NDArray]:
    enter = leave = None
    for k in range(3):
        middle = centers[:, k, None] * inverse[k]
        width = halves[:, k, None] * np.abs(inverse[k])
        near = middle - width
        middle += width
        enter = near if enter is None else np.maximum(enter, near, out=enter)
        leave = middle if leave is None else np.minimum(leave, middle, out=leave)
    assert enter is not None
    assert leave is not None
    return enter, leave


def _cylinders(centers: NDArray, halves: NDArray, v: NDArray) -> NDArray[np.float64]:
    """Upright cylinders: the interval inside the round wall, cut by that between the caps."""
    a = v[0] ** 2 + v[1] ** 2
    b = centers[:, 0, None] * v[0] + centers[:, 1, None] * v[1]
    rest = (centers[:, :2] ** 2).sum(1) - halves[:, 0] ** 2
    root = np.sqrt(np.maximum(b * b - a * rest[:, None], 0.0))
    through = b * b > a * rest[:, None]
    middle, width = centers[:, 2, None] / v[2], halves[:, 2, None] / np.abs(v[2])
    enter = np.maximum((b - root) / a, middle - width)
    leave = np.minimum((b + root) / a, middle + width)
    return np.where(through & (enter < leave) & (enter > 0), enter, np.inf)


def _ellipsoids(centers: NDArray, halves: NDArray, v: NDArray) -> NDArray[np.float64]:
    a = b = rest = None
    for k in range(3):
        scaled, place = v[k] / halves[:, k, None], (centers[:, k] / halves[:, k])[:, None]
        a = scaled**2 if a is None else a + scaled**2
        b = scaled * place if b is None else b + scaled * place
        rest = place**2 if rest is None else rest + place**2
    assert a is not None
    assert b is not None
    assert rest is not None
    inside = b * b - a * (rest - 1)
    t = (b - np.sqrt(np.maximum(inside, 0.0))) / a
    return np.where((inside > 0) & (t > 0), t, np.inf)


def _normals(kinds: NDArray, local: NDArray, half: NDArray) -> tuple[NDArray, NDArray]:
    """Outward normals in the solid's frame, and faces."""
    each = np.arange(kinds.size)
    depth = np.abs(local) / half
    cylinder = kinds == CYLINDER
    if cylinder.any():
        radius = np.hypot(local[0], local[1]) / half[0]
        depth = np.where(cylinder, np.stack([radius, np.zeros_like(radius), depth[2]]), depth)
    axis = np.argmax(depth, axis=0)
    side = local[axis, each] > 0
    normal = np.zeros_like(local)
    normal[axis, each] = np.where(side, 1.0, -1.0)
    face = 2 * axis + side
    curved = (kinds == ELLIPSOID) | (cylinder & (axis == 0))
    if curved.any():
        slope = local / half**2
        slope[2] = np.where(cylinder, 0.0, slope[2])
        slope = slope / np.maximum(np.sqrt((slope**2).sum(0)), 1e-12)
        normal = np.where(curved, slope, normal)
        face = np.where(curved, ROUND, face)
    return normal, face
