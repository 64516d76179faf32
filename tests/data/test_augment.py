import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from spherule import Grid
from spherule.data import Augmentation, Panorama, PanoramaDataset, write_panoramas
from spherule.data.augment import jittered, mirrored, rolled, rotated, tilt_matrix
from spherule.data.rooms import Rooms, RoomsConfig

SIZE = (16, 32)
GRID = Grid.fejer(*SIZE, offset=0.5)


def noise(seed: int = 0) -> Panorama:
    rng = np.random.default_rng(seed)
    depth = rng.uniform(1, 9, SIZE).astype(np.float32)
    depth[rng.random(SIZE) < 0.2] = np.nan
    rgb = rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8)
    return Panorama(rgb, rng.integers(0, 14, SIZE, dtype=np.uint8), depth, "n", "area_1")


def tagged() -> Panorama:
    """Label, depth and red all say the same of a pixel."""
    label = np.random.default_rng(0).integers(0, 14, SIZE, dtype=np.uint8)
    rgb = np.repeat(label[..., None] * 10, 3, axis=-1)
    return Panorama(rgb, label, label.astype(np.float32) + 1)


def same(a: Panorama, b: Panorama) -> bool:
    arrays = [(getattr(a, n), getattr(b, n)) for n in ("rgb", "label", "depth")]
    return all(np.array_equal(x, y, equal_nan=x.dtype == np.float32) for x, y in arrays)


def smooth(grid_xyz: np.ndarray) -> np.ndarray:
    x, y, z = grid_xyz.T
    return 128 + 60 * np.stack([x, y * z, z**2 - x * y], -1)


@pytest.mark.parametrize("tilt", [0.0, 1.0])
def test_image_labels_and_depth_move_alike(tilt: float) -> None:
    augment = Augmentation(jitter=0.0, tilt=tilt)
    for index in range(8):
        moved = augment(tagged(), 0, index)
        np.testing.assert_array_equal(moved.depth, moved.label + 1)
        if tilt == 0:
            np.testing.assert_array_equal(moved.rgb[..., 0], moved.label * 10)


def test_augmentation_depends_on_seed_epoch_and_index_only() -> None:
    panorama = noise()
    augment = Augmentation(tilt=0.5, seed=3)
    first = augment(panorama, 2, 5)
    assert same(first, replace(augment)(panorama, 2, 5))
    others = [augment(panorama, 3, 5), augment(panorama, 2, 6)]
    others.append(replace(augment, seed=4)(panorama, 2, 5))
    assert not any(same(first, other) for other in others)
    assert same(panorama, noise())  # the original is left alone


def test_switching_one_off_leaves_the_others() -> None:
    panorama = noise()
    for index in range(6):
        plain = Augmentation(jitter=0.0)(panorama, 0, index)
        assert np.array_equal(Augmentation(jitter=0.3)(panorama, 0, index).label, plain.label)
        turned = Augmentation(jitter=0.0, mirror=False)(panorama, 0, index)
        assert same(turned, plain) or same(mirrored(turned), plain)
    off = Augmentation(roll=False, mirror=False, jitter=0.0)
    assert same(off(panorama, 1, 2), panorama)


def test_rolls_and_mirrors_happen_as_often_as_they_should() -> None:
    panorama = tagged()
    panorama = replace(panorama, label=np.broadcast_to(np.arange(32, dtype=np.uint8), SIZE))
    columns, mirrors = [], 0
    for index in range(400):
        label = Augmentation(jitter=0.0)(panorama, 0, index).label[0].astype(int)
        mirrors += (label[1] - label[0]) % 32 != 1
        columns.append(label[0])
    assert 160 < mirrors < 240
    assert set(columns) == set(range(32))


def test_rotation_about_the_vertical_is_a_roll() -> None:
    panorama = noise()
    assert same(rotated(panorama, np.eye(3)), panorama)
    for columns in (1, 5, 31):
        angle = 2 * math.pi * columns / 32
        c, s = math.cos(angle), math.sin(angle)
        turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
        assert same(rotated(panorama, turn), rolled(panorama, columns))


def test_half_turns_about_horizontal_axes_are_exact() -> None:
    panorama = noise()
    over = rotated(panorama, np.diag([1.0, -1.0, -1.0]))
    np.testing.assert_array_equal(over.label, panorama.label[::-1, ::-1])
    np.testing.assert_array_equal(over.rgb, panorama.rgb[::-1, ::-1])


def test_rotated_fields_are_those_of_the_rotated_camera() -> None:
    grid = Grid.fejer(64, 128, offset=0.5)
    rng = np.random.default_rng(0)
    for _ in range(5):
        R = tilt_matrix(*rng.uniform(0, 3, 2))
        original, wanted = (smooth(xyz).reshape(64, 128, 3) for xyz in (grid.xyz, grid.xyz @ R))
        north = (grid.xyz[:, 2] > 0.2).reshape(64, 128).astype(np.uint8)
        panorama = Panorama(
            np.rint(original).astype(np.uint8), north, np.where(north, 2, np.nan).astype(np.float32)
        )
        found = rotated(panorama, R)
        assert np.abs(found.rgb - wanted).max() < 1.5
        height = (grid.xyz @ R)[:, 2].reshape(64, 128)
        clear = np.abs(height - 0.2) > math.pi / 64
        np.testing.assert_array_equal(found.label[clear], (height > 0.2)[clear])
        np.testing.assert_array_equal(np.isfinite(found.depth), found.label == 1)


def test_rotated_pictures_are_what_a_tilted_camera_sees() -> None:
    rooms = Rooms(RoomsConfig(size="64x128"), seed=0)
    R = tilt_matrix(1.0, 0.6)
    level, tilted = (rooms.view(0, turn)[1] for turn in (np.eye(3), R))
    found = rotated(Panorama(level.rgb, level.label, level.depth), R)
    wrong = rotated(Panorama(level.rgb, level.label, level.depth), R.T)
    assert (found.label == tilted.label).mean() > 0.95 > 2 * (wrong.label == tilted.label).mean()
    assert np.nanmedian(np.abs(found.depth - tilted.depth)) < 0.03
    assert np.abs(found.rgb.astype(int) - tilted.rgb).mean() < 6


def test_tilts_move_the_zenith_within_their_angle_uniformly() -> None:
    def zenith(height: float, tilt: float) -> float:
        return float(tilt_matrix(0.7, math.acos(1 - height * (1 - math.cos(tilt))))[2, 2])

    R = tilt_matrix(0.7, 0.4)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    zenith_moved = R @ [0, 0, 1]
    assert math.acos(zenith_moved[2]) == pytest.approx(0.4)
    assert math.atan2(zenith_moved[1], zenith_moved[0]) == pytest.approx(0.7)
    assert zenith(1.0, 0.5) == pytest.approx(math.cos(0.5))
    assert zenith(0.5, math.pi) == pytest.approx(0.0, abs=1e-15)


def test_colors_change_by_their_factors() -> None:
    rgb = np.random.default_rng(0).integers(60, 120, (*SIZE, 3), dtype=np.uint8)
    np.testing.assert_array_equal(jittered(rgb, 1.0, 1.0, 1.0), rgb)
    np.testing.assert_array_equal(jittered(rgb, 1.5, 1.0, 1.0), np.rint(rgb * 1.5))
    gray = jittered(rgb, 1.0, 1.0, 0.0)
    assert np.abs(gray - gray[..., :1].astype(float)).max() <= 1
    flat = jittered(rgb, 1.0, 0.0, 0.0)
    mean = np.average(rgb @ [0.299, 0.587, 0.114], weights=GRID.weights)
    assert np.abs(flat - mean).max() <= 0.5 + 1e-9
    assert jittered(rgb, 9.0, 1.0, 1.0).max() == 255


class Source:
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Panorama:
        return noise(index)


def test_data_sets_apply_it_anew_in_each_epoch(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
    path = tmp_path / "p.zarr"
    list(write_panoramas(path, Source(), size=SIZE, config={}))
    augment = Augmentation(tilt=0.3)
    data = PanoramaDataset(path, split="all", augment=augment)
    plain = PanoramaDataset(path, split="all")
    wanted = torch.from_numpy(augment(plain.panorama(4), 0, 4).label).long()
    assert torch.equal(data[4]["label"], wanted)
    loader = DataLoader(data, batch_sampler=[[6 * e + i for i in range(6)] for e in (0, 1)])
    first, second = (batch["label"] for batch in loader)
    assert torch.equal(second[3], data[6 + 3]["label"])
    later = torch.from_numpy(augment(plain.panorama(3), 1, 3).label).long()
    assert torch.equal(second[3], later)
    assert not torch.equal(first, second)


def test_bad_input_is_named(unchecked) -> None:
    for name, value in (("jitter", 1.0), ("jitter", -0.1), ("tilt", 20.0), ("seed", -1)):
        with pytest.raises(ValueError, match=f"{name}={value}"):
            Augmentation(**{name: value})
