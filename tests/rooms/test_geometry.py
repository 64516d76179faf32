from dataclasses import replace

import numpy as np
import pytest

from spherule import Grid
from spherule.geometry.rotations import about_z
from spherule.rooms import CLASSES, Scene, render, room, trace
from spherule.rooms.furniture import ball, box, post
from spherule.rooms.light import _past, shadows
from spherule.rooms.plan import Plan
from spherule.rooms.scene import BOX, Lamp, Materials, Workshop
from spherule.rooms.textures import FLAT
from tests.rooms.oracle import distances

SIZE, CAMERA = np.array([4.0, 5.0, 3.0]), np.array([1.5, 2.2, 1.4])


def empty_room(*things: tuple[str, list]) -> Scene:
    workshop = Workshop()
    gray = workshop.material(FLAT, (0.5, 0.5, 0.5))
    for label in ("wall", "wall", "wall", "wall", "floor", "ceiling"):
        workshop.surface(label, workshop.instance(label), gray)
    for thing in things:
        workshop.place([thing], (0.0, 0.0, 0.0))
    down = np.array([0.0, 0.0, -1.0])
    lamp = Lamp(np.array([2.0, 2.5, 3.0]), (0.3, 0.3), down, np.full(3, 20.0), True)
    return Scene(
        "office", SIZE, CAMERA, (), tuple(workshop.pieces), workshop.surfaces(),
        Materials.table(workshop.materials), (lamp,), None, np.full(3, 0.3), 1.4, 0,
    )  # fmt: skip


def rays(count: int, seed: int = 0) -> np.ndarray:
    d = np.random.default_rng(seed).normal(size=(count, 3))
    return d / np.linalg.norm(d, axis=1, keepdims=True)


def test_depth_of_an_empty_room_is_the_distance_to_its_planes() -> None:
    grid = Grid.fejer(32, 64, offset=0.5)
    view = render(empty_room(), grid)
    d = grid.xyz
    planes = np.where(d > 0, SIZE - CAMERA, CAMERA) / np.abs(d)
    np.testing.assert_array_equal(view.depth.ravel(), planes.min(1).astype(np.float32))
    names = np.array(["wall", "wall", "floor"], object)[planes.argmin(1)]
    names[(planes.argmin(1) == 2) & (d[:, 2] > 0)] = "ceiling"
    np.testing.assert_array_equal(np.array(CLASSES)[view.label.ravel()], names)


def test_depth_of_simple_solids_is_in_closed_form() -> None:
    scene = empty_room(
        ("table", [box(0, (2.5, 3.0), (2.0, 2.5), (0.0, 2.0))]),
        ("column", [post(0, 1.5, 4.2, 0.3, (0.0, 3.0))]),
        ("clutter", [ball(0, (0.5, 2.2, 1.4), (0.2, 0.4, 0.3))]),
    )
    d = np.array([[1, 0, 0], [1, 0.1, 0.1], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [0, 0, -1]], float)
    norm = np.linalg.norm(d, axis=1)
    hits = trace(scene, d / norm[:, None])
    np.testing.assert_allclose(hits.distance / norm, [1.0, 1.0, 1.7, 0.8, 1.6, 1.4], rtol=1e-13)
    labels = [CLASSES[k] for k in scene.surfaces.label[hits.surface]]
    assert labels == ["table", "table", "column", "clutter", "ceiling", "floor"]
    expected = [[-1, 0, 0], [-1, 0, 0], [0, -1, 0], [1, 0, 0], [0, 0, -1], [0, 0, 1]]
    np.testing.assert_allclose(hits.normal.T, expected, atol=1e-12)


@pytest.mark.parametrize("index", range(5))
def test_first_hits_are_those_of_an_independent_tracer(index: int) -> None:
    scene, d = room(1, index), rays(250, index)
    hits = trace(scene, d)
    distance, surface = distances(scene, d)
    np.testing.assert_allclose(hits.distance, distance, rtol=1e-9)
    # Where two things touch, either may be named.
    assert (hits.surface == surface).mean() > 0.99


@pytest.mark.parametrize("name", ["fejer:16x32@0.5", "gauss:12x24", "H8", "O8"])
def test_rotated_camera_sees_the_room_along_rotated_rays(name: str) -> None:
    scene, grid = room(0, 3), Grid.from_name(name)
    rotation = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    rotation *= np.linalg.det(rotation)
    view = render(scene, grid, rotation=rotation)
    hits = trace(scene, np.einsum("nk,kj->nj", grid.xyz, rotation))  # rows R^-1 x
    label = scene.surfaces.label[hits.surface].reshape(grid.shape)
    np.testing.assert_array_equal(view.label, label)
    known = np.isfinite(view.depth)
    depth = hits.distance.astype(np.float32).reshape(grid.shape)
    np.testing.assert_array_equal(view.depth[known], depth[known])
    assert view.rgb.shape == (*grid.shape, 3)


def test_rotation_moves_what_is_seen_along_x_to_r_x() -> None:
    grid = Grid.clenshaw_curtis(5, 8)  # has the pole and the x and y axes
    up_to_y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    view = render(empty_room(), grid, rotation=up_to_y)
    assert view.depth[2, 2] == pytest.approx(1.6)  # the ceiling, now along y
    assert CLASSES[view.label[2, 2]] == "ceiling"
    assert view.depth[2, 6] == pytest.approx(1.4)
    assert view.depth[0, 0] == pytest.approx(2.2)  # -y has come to the pole
    assert view.depth[2, 0] == pytest.approx(2.5)


def test_turning_the_camera_by_pixels_rolls_the_image() -> None:
    scene, shift = room(0, 6), 6
    still = render(scene, "32x64")
    turned = render(scene, "32x64", rotation=about_z(2 * np.pi * shift / 64))
    same = turned.surface == np.roll(still.surface, shift, axis=1)
    assert same.mean() > 0.999  # rounding decides where edges go through a pixel's center
    known = same & np.isfinite(turned.depth)
    rolled = np.roll(still.depth, shift, axis=1)
    np.testing.assert_allclose(turned.depth[known], rolled[known], rtol=1e-5)
    change = np.abs(turned.rgb.astype(int) - np.roll(still.rgb, shift, axis=1))
    assert change.mean() < 1.0


@pytest.mark.parametrize("index", range(10))
def test_labels_agree_with_where_the_rays_end(index: int) -> None:
    scene, d = room(3, index), rays(3000)
    hits = trace(scene, d)
    end = scene.camera + hits.distance[:, None] * d
    names = np.array(CLASSES)[scene.surfaces.label[hits.surface]]
    assert np.all(end[names == "floor", 2] < 0.01)
    assert np.all(end[names == "ceiling", 2] == pytest.approx(scene.size[2]))
    assert np.all(end[names == "table", 2] < 0.8)
    assert np.all(end[names == "chair", 2] < 1.1)
    assert np.all(end[names == "beam", 2] > scene.size[2] - 0.45)
    away = np.minimum(end[:, :2], scene.size[:2] - end[:, :2]).min(1)
    at_wall = np.isin(names, ["wall", "window", "board"])
    assert np.all(np.abs(away[at_wall]) < 0.17)
    board = end[names == "board", 2]
    assert board.size == 0 or (board.min() > 0.9 and board.max() < 2.1)


@pytest.mark.parametrize("index", range(25))
def test_things_stand_on_the_floor_or_are_fixed_to_a_wall_or_the_ceiling(index: int) -> None:
    scene = room(4, index)
    for piece in scene.pieces:
        low, high = piece.extent
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1])
                            for z in (low[2], high[2])])  # fmt: skip
        world = piece.origin + corners @ piece.axes
        on_floor = abs(world[:, 2].min()) < 1e-6
        hangs = abs(world[:, 2].max() - scene.size[2]) < 1e-6
        to_walls = min(world[:, :2].min(), (scene.size[:2] - world[:, :2]).min())
        assert on_floor or hangs or to_walls < 0.04
        assert world[:, 2].min() > -1e-6
        assert world[:, 2].max() < scene.size[2] + 1e-6
        assert to_walls > -0.17


def test_camera_stands_free() -> None:
    for index in range(50):
        scene = room(1, index)
        assert np.all(scene.camera > 0.3)
        assert np.all(scene.camera < scene.size - 0.3)
        for piece in scene.pieces:
            local = piece.axes @ (scene.camera - piece.origin)
            inside = np.abs(local - piece.centers) < piece.halves + 0.1
            assert not inside.all(1).any()


def test_shadow_is_whole_below_a_box_half_at_its_edge_and_none_beside_it() -> None:
    (piece,) = empty_room(("table", [box(0, (1, 3), (1, 3), (1.4, 1.6))])).pieces
    points = np.array([[2, 2, 0], [3, 2, 0], [0.1, 2, 0], [2, 2, 2]], np.float32).T
    up = np.broadcast_to(np.array([[0], [0], [3]], np.float32), (3, 4))
    left = _past(piece, points, up, 0.5, np.flatnonzero(piece.kinds == BOX))
    np.testing.assert_allclose(left, [0, 0.5, 1, 1], atol=1e-4)


def test_corners_and_what_stands_nearby_keep_ambient_light_away() -> None:
    scene = empty_room(("table", [box(0, (2, 3), (2, 3), (0, 1))]))
    floor = np.array([[1, 1, 0], [0.05, 1, 0], [1.95, 2.5, 0], [1, 4.9, 0]], np.float32).T
    up = np.zeros((3, 4), np.float32)
    up[2] = 1
    ambient = shadows(scene, floor, up)[0]
    assert ambient[0] == pytest.approx(1.0)
    assert np.all(ambient[1:] < 0.8)


def test_light_falls_off_with_distance_from_a_lamp() -> None:
    view = render(empty_room(), "64x128")
    floor = (view.label == CLASSES.index("floor")) & (view.depth < 4)
    x = CAMERA + view.depth[..., None] * Grid.fejer(64, 128, offset=0.5).xyz.reshape(64, 128, 3)
    away = np.linalg.norm(x - [2.0, 2.5, 0.0], axis=-1)
    near, far = (view.rgb[floor & side].mean() for side in (away < 0.8, away > 2.0))
    assert near > far + 20


def test_bad_rotation_is_named(unchecked) -> None:
    with pytest.raises(
        ValueError, match=r"rotation: expected a rotation matrix; .* differs from 1 by 3"
    ):
        render(empty_room(), "4x8", rotation=2 * np.eye(3))
    assert render(replace(empty_room(), exposure=0.0), "4x8").rgb.max() == 0


@pytest.mark.parametrize("z", [0.2, 1.0, 1.8])
def test_a_round_column_does_not_shade_its_own_lit_side(z: float) -> None:
    (piece,) = empty_room(("column", [post(0, 2.0, 2.0, 0.25, (0.0, 3.0))])).pieces
    angle = np.linspace(-0.9, 0.9, 9)
    side = [2 - 0.25 * np.cos(angle), 2 + 0.25 * np.sin(angle), np.full(9, z)]
    points = np.stack(side).astype(np.float32)
    lamp = np.array([[0.5], [2.0], [3.0]], np.float32)
    solids = np.array([0])
    np.testing.assert_array_equal(_past(piece, points, lamp - points, 0.6, solids), 1)
    behind = np.array([[2.3], [2.0], [0.0]], np.float32)
    assert _past(piece, behind, lamp - behind, 0.6, solids)[0] < 0.05


def test_what_hangs_on_a_wall_stays_on_it_and_overlaps_nothing() -> None:
    plan = Plan(np.random.default_rng(0), (4.0, 3.0, 2.5))
    for wall, length in enumerate((3.0, 3.0, 4.0, 4.0)):
        assert plan.stretch(wall, length, (0.0, 1.0)) is None
        taken: list[float] = []
        while (middle := plan.stretch(wall, 0.5, (0.0, 1.0))) is not None:
            assert 0.25 < middle < length - 0.25
            assert all(abs(middle - other) > 0.5 for other in taken)
            taken.append(middle)
        assert len(taken) >= 2
