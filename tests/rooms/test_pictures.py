import numpy as np
import pytest

from spherule.grids import image_grid
from spherule.rooms import CLASSES, render, room, trace
from spherule.rooms.kinds import KINDS


def test_every_class_and_kind_appears_in_plausible_amounts() -> None:
    grid, area = image_grid(24, 48), np.zeros(len(CLASSES))
    kinds = set()
    for index in range(60):
        scene = room(0, index)
        label = scene.surfaces.label[trace(scene, grid.xyz).surface]
        area += np.bincount(label, grid.weights.ravel(), len(CLASSES)) / (4 * np.pi * 60)
        kinds.add(scene.kind)
    share = dict(zip(CLASSES, area, strict=True))
    assert kinds == {kind.name for kind in KINDS}
    assert sum(share.values()) == pytest.approx(1)
    assert min(share.values()) > 5e-4
    assert max(share, key=share.get) == "wall"
    for name in ("floor", "ceiling"):
        assert 0.1 < share[name] < 0.35
    for name in ("table", "chair", "bookcase", "window", "door", "clutter"):
        assert 0.008 < share[name] < 0.15
    assert share["<UNK>"] < 0.03


def test_colors_are_smoothed_towards_the_mean_over_a_pixel() -> None:
    scene = room(0, 0)
    coarse, fine = render(scene, "32x64"), render(scene, "128x256")
    mean = fine.rgb.reshape(32, 4, 64, 4, 3).mean((1, 3))
    grid = image_grid(32, 64)
    hard = fine.rgb.reshape(32, 4, 64, 4, 3)[:, 2, :, 2]
    weight = grid.weights[..., None]
    error, without = (((image - mean) ** 2 * weight).mean() for image in (coarse.rgb, hard))
    assert error < 0.6 * without


def test_a_picture_is_the_same_on_a_grid_and_its_names() -> None:
    scene = room(0, 1)
    views = [render(scene, grid) for grid in (image_grid(8, 16), "8x16", "fejer:8x16@0.5")]
    for view in views[1:]:
        np.testing.assert_array_equal(view.rgb, views[0].rgb)


def test_bad_input_is_named(unchecked) -> None:
    scene = room(0, 1)
    with pytest.raises(ValueError, match="grid='8': expected rows and columns"):
        render(scene, "8")
    with pytest.raises(ValueError, match="rotation: has determinant -1"):
        render(scene, "8x16", rotation=-np.eye(3))
