import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch.utils.data import DataLoader

from spherule.data import CLASSES, Fold, PanoramaDataset, PanoramaSource, write_panoramas
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford_layout import write_stanford_layout

SMALL = RoomsConfig(size="16x32")


def same(a, b) -> bool:
    return all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=name == "depth")
        for name in ("rgb", "label", "depth")
    ) and (a.name, a.area) == (b.name, b.area)


def first(item):
    return item


def test_a_room_is_the_same_in_any_order_and_after_pickling() -> None:
    rooms = Rooms(SMALL, seed=5)
    forward = [rooms[i] for i in range(4)]
    again = pickle.loads(pickle.dumps(Rooms(SMALL, seed=5)))
    assert all(same(again[i], forward[i]) for i in reversed(range(4)))


@pytest.mark.parametrize("workers", [1, 2])
def test_rooms_are_bit_equal_for_any_number_of_workers(workers: int) -> None:
    rooms = Rooms(RoomsConfig(size="32x64", tilt=30), seed=2, samples=4)
    loader = DataLoader(rooms, batch_size=None, num_workers=workers, collate_fn=first)
    assert all(same(made, rooms[i]) for i, made in enumerate(loader))


def test_rooms_and_seeds_differ() -> None:
    images = [Rooms(SMALL, seed=seed)[i].rgb for seed in (0, 1) for i in range(4)]
    for i, a in enumerate(images):
        assert not any(np.array_equal(a, b) for b in images[:i])


def test_images_are_neither_dark_nor_washed_out() -> None:
    for index in range(6):
        rgb = Rooms(SMALL)[index].rgb
        assert 70 < rgb.mean() < 225
        assert rgb.std() > 20


def test_depth_is_known_but_behind_open_doors() -> None:
    unknown = 0
    for index in range(10):
        panorama = Rooms(SMALL)[index]
        missing = np.isnan(panorama.depth)
        np.testing.assert_array_equal(missing, panorama.label == CLASSES.index("<UNK>"))
        assert np.all(panorama.depth[~missing] > 0.1)
        unknown += missing.sum()
    assert unknown > 0


def test_tilt_spreads_cameras_over_a_cap() -> None:
    level, any_way = Rooms(SMALL), Rooms(RoomsConfig(size="16x32", tilt=40))
    for index in range(20):
        assert level.rotation(index)[2, 2] == pytest.approx(1)
    heights = np.array([any_way.rotation(index)[2, 2] for index in range(300)])
    assert heights.min() > np.cos(np.radians(40)) - 1e-9
    assert heights.mean() == pytest.approx((1 + np.cos(np.radians(40))) / 2, abs=0.01)
    rotation = any_way.rotation(3)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-14)
    assert np.linalg.det(rotation) == pytest.approx(1)


def test_rooms_fill_a_store(tmp_path: Path) -> None:
    rooms = Rooms(SMALL, seed=3, samples=7)
    assert isinstance(rooms, PanoramaSource)
    path = tmp_path / "rooms.zarr"
    folds = {"1": Fold(test=["area_5"], val=["area_3"])}
    done = list(write_panoramas(path, rooms, size=(16, 32), config={"seed": 3}, folds=folds))
    assert done[-1] == 7
    stored = PanoramaDataset(path, split="all")
    assert all(same(stored.panorama(i), rooms[i]) for i in range(7))
    held_out = PanoramaDataset(path, split="test", fold="1")
    assert [held_out.panorama(i).area for i in range(len(held_out))] == ["area_5"]


def test_stanford_layout_decodes_to_the_same_labels_and_depth(tmp_path: Path) -> None:
    rooms = Rooms(RoomsConfig(size="24x48"), seed=1, samples=7)
    root = tmp_path / "rooms"
    assert list(write_stanford_layout(root, rooms)) == list(range(1, 8))
    names = json.loads((root / "semantic_labels.json").read_text())
    assert len(set(names)) == len(names)
    missing = 0
    for index in range(7):
        panorama = rooms[index]
        folder = root / f"area_{index % 6 + 1}" / "pano"
        images = {}
        for kind in ("rgb", "semantic", "depth"):
            file = folder / kind / f"{panorama.name}_frame_equirectangular_domain_{kind}.png"
            with Image.open(file) as image:
                images[kind] = np.array(image)
        np.testing.assert_array_equal(images["rgb"], panorama.rgb)
        red, green, blue = np.moveaxis(images["semantic"].astype(int), -1, 0)
        number = 65536 * red + 256 * green + blue
        label = np.full(number.shape, CLASSES.index("<UNK>"))
        labeled = number != 0x0D0D0D
        parts = [names[k].split("_") for k in number[labeled]]
        label[labeled] = [CLASSES.index(part[0]) for part in parts]
        np.testing.assert_array_equal(label, panorama.label)
        assert {tuple(part[2:]) for part in parts} == {
            (*panorama.name.split("_")[2:], str(index % 6 + 1))
        }
        assert images["depth"].dtype == np.uint16
        unknown = images["depth"] == 65535
        np.testing.assert_array_equal(unknown, np.isnan(panorama.depth))
        error = np.abs(images["depth"] / 512 - panorama.depth)[~unknown]
        assert error.max() <= 1 / 1024 + 1e-6
        missing += unknown.sum()
    assert missing > 0
    with pytest.raises(FileExistsError, match="exists: remove it"):
        next(write_stanford_layout(root, rooms))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"size": "128"}, "size='128'"),
        ({"size": "0x256"}, "size='0x256'"),
        ({"tilt": -1.0}, "tilt=-1"),
        ({"tilt": 181.0}, "tilt=181"),
    ],
)
def test_bad_config_is_named(unchecked, config: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RoomsConfig(**config)


def test_bad_input_is_named(unchecked) -> None:
    with pytest.raises(ValueError, match="seed=-1"):
        Rooms(SMALL, seed=-1)
    with pytest.raises(ValueError, match="samples=0"):
        Rooms(SMALL, samples=0)
    with pytest.raises(IndexError, match="have no end"):
        Rooms(SMALL)[-1]
    with pytest.raises(IndexError, match="end at 3"):
        Rooms(SMALL, samples=3)[3]
    with pytest.raises(TypeError, match="no end"):
        len(Rooms(SMALL))
    with pytest.raises(ValueError, match="workers=-1"):
        next(write_stanford_layout("nowhere", Rooms(SMALL, samples=1), workers=-1))
