import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from spherule.data import CLASSES, BadPanorama, PanoramaDataset, write_panoramas
from spherule.data.images import shrink
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford import (
    FOLDS,
    StanfordSource,
    decode_depth,
    decode_labels,
    read_classes,
)
from spherule.data.stanford_layout import write_stanford_layout
from tests.data.stanford_files import CAMERAS, LABELS, file_of, write_camera, write_dataset

SIZE = (12, 24)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_dataset(tmp_path / "2d3ds")


def test_labels_are_prefixes_and_the_missing_color_is_unknown(root: Path) -> None:
    classes = read_classes(root)
    assert [CLASSES[c] for c in classes] == ["<UNK>", "wall", "chair", "floor"]
    picture = np.zeros((1, 4, 3), dtype=np.uint8)
    picture[0, 1] = 0, 0, 2
    picture[0, 2] = 0x0D, 0x0D, 0x0D
    names = [CLASSES[c] for c in decode_labels(picture, classes)[0]]
    assert names == ["<UNK>", "chair", "<UNK>", "<UNK>"]
    many = np.zeros(900_000, dtype=np.uint8)
    many[65536 + 256 * 2 + 3] = 7
    picture[0, 0] = 1, 2, 3
    # Unknown, whatever label has this number.
    assert list(decode_labels(picture, many)[0]) == [7, 0, 13, 0]
    with pytest.raises(BadPanorama, match="unknown label: 66051 of 4 labels"):
        decode_labels(picture, classes)


def test_label_3341_is_what_the_file_says(root: Path) -> None:
    """0x0D0D is what 8-bit arithmetic makes of the missing color, but a label like others."""
    names = ["wall_1_office_1_1"] * 3341 + ["clutter_207_office_7_5", "door_1_office_1_1"]
    (root / "assets" / "semantic_labels.json").write_text(json.dumps(names))
    picture = np.array([[[0, 0x0D, 0x0D], [0, 0x0D, 0x0E], [0x0D, 0x0D, 0x0D]]], dtype=np.uint8)
    labels = decode_labels(picture, read_classes(root))[0]
    assert [CLASSES[c] for c in labels] == ["clutter", "door", "<UNK>"]
    names[3341] = "sofa_1_office_7_5"
    (root / "assets" / "semantic_labels.json").write_text(json.dumps(names))
    assert CLASSES[decode_labels(picture, read_classes(root))[0, 0]] == "sofa"
    with pytest.raises(BadPanorama, match="unknown label: 3342 of 3342 labels"):
        decode_labels(picture, read_classes(root)[:-1])


def test_missing_labels_are_clutter_as_in_the_public_code_if_asked(root: Path) -> None:
    plain, public = (StanfordSource(root, (24, 48), missing=m) for m in ("unknown", "clutter"))
    number = write_camera(root, "area_1", CAMERAS[0], (24, 48), seed=0)["number"]
    i = next(i for i, c in enumerate(plain.candidates) if c.camera == CAMERAS[0])
    missing = number == 0x0D0D0D
    assert {CLASSES[c] for c in public[i].label[missing]} == {"clutter"}
    assert {CLASSES[c] for c in plain[i].label[missing]} == {"<UNK>"}
    np.testing.assert_array_equal(public[i].label[~missing], plain[i].label[~missing])
    assert plain.config != public.config


def test_depth_is_in_metres_and_unknown_depth_is_none() -> None:
    numbers = np.array([[512, 1, 65534, 65535, 0]])
    meters = [1, 1 / 512, 65534 / 512, np.nan, np.nan]
    for dtype in (np.uint16, np.int32):
        np.testing.assert_array_equal(decode_depth(numbers.astype(dtype))[0], np.float32(meters))
    colors = np.stack([numbers & 255, numbers >> 8, numbers * 0], -1).astype(np.uint8)
    np.testing.assert_array_equal(decode_depth(colors)[0], np.float32(meters))
    assert np.isnan(decode_depth(np.full((1, 1, 3), 255, np.uint8)))


@pytest.mark.parametrize("labels", ["nearest", "majority"])
def test_files_in_the_original_layout_become_panoramas(tmp_path: Path, labels) -> None:
    root = write_dataset(tmp_path / "2d3ds")
    truth = write_camera(root, "area_1", CAMERAS[0], (24, 48), seed=5)
    source = StanfordSource(root, SIZE, labels=labels)
    assert len(source) == 4
    panorama = source[0]
    assert (panorama.name, panorama.area) == (f"area_1/{CAMERAS[0]}", "area_1")
    np.testing.assert_array_equal(panorama.rgb, np.rint(shrink(truth["rgb"], SIZE)))
    valid = truth["depth"] != 65535
    meters = np.where(valid, truth["depth"] / 512, 0)
    weights = -np.diff(np.cos(np.pi * np.arange(25) / 24))[:, None] * valid
    for i, j in ((0, 0), (7, 3)):
        cell = np.s_[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        if valid[cell].any():
            wanted = np.average(meters[cell], weights=weights[cell])
            assert panorama.depth[i, j] == pytest.approx(wanted, rel=1e-6)
    numbers = np.where(truth["number"] == 0x0D0D0D, 0, truth["number"])
    if labels == "nearest":
        np.testing.assert_array_equal(panorama.label, read_classes(root)[numbers][1::2, 1::2])
    else:
        assert set(np.unique(panorama.label)) <= set(read_classes(root))


def test_original_files_come_out_as_they_are(tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "2d3ds", SIZE)
    truth = write_camera(root, "area_1", CAMERAS[0], SIZE, seed=5)
    for labels in ("nearest", "majority"):
        panorama = StanfordSource(root, SIZE, labels=labels)[0]
        np.testing.assert_array_equal(panorama.rgb, truth["rgb"])
        numbers = np.where(truth["number"] == 0x0D0D0D, 0, truth["number"])
        np.testing.assert_array_equal(panorama.label, read_classes(root)[numbers])
        depth = np.where(truth["depth"] == 65535, np.nan, truth["depth"] / 512)
        np.testing.assert_array_equal(panorama.depth, depth.astype(np.float32))


def test_depth_in_colors_and_alpha_channels_are_read_too(root: Path) -> None:
    plain = StanfordSource(root, SIZE)[0]
    path = file_of(root, "area_1", CAMERAS[0], "depth")
    depth = np.array(Image.open(path)).astype(np.int32)
    colors = np.stack([depth & 255, depth >> 8, depth >> 16], -1).astype(np.uint8)
    Image.fromarray(colors).save(path)
    path = file_of(root, "area_1", CAMERAS[0], "rgb")
    Image.open(path).convert("RGBA").save(path)
    again = StanfordSource(root, SIZE)[0]
    np.testing.assert_array_equal(again.depth, plain.depth)
    np.testing.assert_array_equal(again.rgb, plain.rgb)


def spoil(root: Path) -> dict[str, str]:
    """Ten bad panoramas, and what is wrong with each."""
    wrong = {}

    def camera(kind: str) -> str:
        name = f"camera_{len(wrong):032x}_office_1"
        write_camera(root, "area_2", name, (24, 48), seed=len(wrong))
        wrong[f"area_2/{name}"] = kind
        return name

    for kind in ("rgb", "semantic", "depth"):
        file_of(root, "area_2", camera("missing partner"), kind).unlink()
    path = file_of(root, "area_2", camera("damaged"), "rgb")
    path.write_bytes(path.read_bytes()[:-700])
    for shape in ((24, 49), (22, 44), (6, 12)):
        name = camera("wrong size")
        kind = "rgb" if shape[0] == 6 else "semantic"
        Image.new("RGB", shape[::-1]).save(file_of(root, "area_2", name, kind))
    Image.new("L", (48, 24)).save(file_of(root, "area_2", camera("wrong mode"), "semantic"))
    Image.new("RGB", (48, 24), (9, 9, 9)).save(
        file_of(root, "area_2", camera("unknown label"), "semantic")
    )
    path = file_of(root, "area_2", camera("outside"), "rgb")
    path.unlink()
    secret = root.parent / "secret.png"
    Image.new("RGB", (48, 24)).save(secret)
    path.symlink_to(secret)
    path = file_of(root, "area_2", camera("not a file"), "depth")
    path.unlink()
    os.mkfifo(path)
    strange = root / "area_2" / "pano" / "rgb" / "\x1b[31m..\\..\\evil.png"
    strange.write_bytes(b"")
    wrong[r"area_2/rgb/\x1b[31m..\\..\\evil.png"] = "strange name"
    (strange.parent / ".DS_Store.png").write_bytes(b"")
    return wrong


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_files_are_named_counted_and_skipped(root: Path, tmp_path: Path, workers: int) -> None:
    wrong = spoil(root)
    source = StanfordSource(root, SIZE)
    assert len(source) == 4 + len(wrong)
    out = tmp_path / "pano.zarr"
    before = {p for p in tmp_path.rglob("*") if out not in p.parents}
    list(
        write_panoramas(
            out, source, size=SIZE, config=source.config, folds=FOLDS, workers=workers, bad="skip"
        )
    )
    data = PanoramaDataset(out, split="all")
    assert {s["name"]: s["kind"] for s in data.skipped} == wrong
    assert all(s["name"].isprintable() for s in data.skipped)
    assert [data.panorama(i).area for i in range(len(data))] == ["area_1"] * 2 + ["area_5a"] * 2
    assert {p for p in tmp_path.rglob("*") if out not in p.parents} - {out} == before


def test_bad_files_stop_the_run_by_choice(root: Path, tmp_path: Path) -> None:
    spoil(root)
    source = StanfordSource(root, SIZE)
    with pytest.raises(BadPanorama, match=r"area_2/camera_0+_office_1: missing partner: no rgb/"):
        list(write_panoramas(tmp_path / "p.zarr", source, size=SIZE, config=source.config))
    assert not (tmp_path / "p.zarr").exists()


def test_folds_hold_out_the_communitys_areas(tmp_path: Path) -> None:
    areas = tuple(f"area_{name}" for name in ("1", "2", "3", "4", "5a", "5b", "6"))
    root = write_dataset(tmp_path / "2d3ds", SIZE, areas)
    source = StanfordSource(root, SIZE)
    out = tmp_path / "p.zarr"
    list(write_panoramas(out, source, size=SIZE, config=source.config, folds=FOLDS))
    tested = []
    for fold in "123":
        parts = [PanoramaDataset(out, split=s, fold=fold) for s in ("train", "val", "test")]
        areas = [{part.panorama(i).area for i in range(len(part))} for part in parts]
        assert sum(map(len, parts)) == 14
        assert sum(map(len, areas)) == 7  # each area is in one part
        assert len(parts[1]) < len(parts[0])
        tested += sorted(areas[2])
    assert tested == ["area_5a", "area_5b", "area_2", "area_4", "area_1", "area_3", "area_6"]


def test_a_store_is_not_continued_from_other_files(root: Path, tmp_path: Path) -> None:
    source = StanfordSource(root, SIZE)
    run = write_panoramas(tmp_path / "p.zarr", source, size=SIZE, config=source.config)
    assert [next(run), next(run)] == [0, 1]
    run.close()
    other = StanfordSource(root, SIZE, labels="majority")
    with pytest.raises(ValueError, match="was made otherwise"):
        next(write_panoramas(tmp_path / "p.zarr", other, size=SIZE, config=other.config))
    file = file_of(root, "area_1", CAMERAS[1], "rgb")
    for kind in ("rgb", "semantic", "depth"):
        file = file_of(root, "area_1", CAMERAS[1], kind)
        file.rename(file.with_name(file.name.replace("conferenceRoom_1", "lobby_1")))
    other = StanfordSource(root, SIZE)
    with pytest.raises(ValueError, match="was made otherwise"):
        next(write_panoramas(tmp_path / "p.zarr", other, size=SIZE, config=other.config))


def test_rooms_written_in_the_original_layout_come_back(tmp_path: Path) -> None:
    rooms = Rooms(RoomsConfig(size="24x48"), seed=1, samples=4)
    list(write_stanford_layout(tmp_path / "2d3ds", rooms))
    source = StanfordSource(tmp_path / "2d3ds", (24, 48))
    made = {f"{room.area}/{room.name}": room for room in (rooms[i] for i in range(4))}
    assert len(source) == 4
    for i in range(4):
        read = source[i]
        np.testing.assert_array_equal(read.rgb, made[read.name].rgb)
        np.testing.assert_array_equal(read.label, made[read.name].label)
        np.testing.assert_allclose(read.depth, made[read.name].depth, atol=1 / 1024 + 1e-6)
        assert read.area == made[read.name].area


def test_rooms_shrink_as_photographs_do(tmp_path: Path) -> None:
    rooms = Rooms(RoomsConfig(size="48x96"), seed=2, samples=2)
    list(write_stanford_layout(tmp_path / "2d3ds", rooms))
    source = StanfordSource(tmp_path / "2d3ds", SIZE, labels="majority")
    for i in range(2):
        small, large = source[i], rooms[i]
        assert small.name == f"{large.area}/{large.name}"
        np.testing.assert_allclose(small.rgb, shrink(large.rgb, SIZE), atol=0.51)
        parts = large.label.reshape(12, 4, 24, 4).transpose(0, 2, 1, 3).reshape(*SIZE, 16)
        pure = (parts == parts[..., :1]).all(-1)
        assert pure.mean() > 0.5
        np.testing.assert_array_equal(small.label[pure], parts[pure][:, 0])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is damaged"),
        ("[" * 100_000, "is damaged"),
        ("{}", "expected a list of names"),
        ("[1]", "expected a list of names"),
        (json.dumps([*LABELS, "spaceship_1_office_1"]), "spaceship: none of beam"),
        (" " * (2**24 + 1), "16777217 bytes"),
    ],
)
def test_damaged_label_lists_are_named(root: Path, content: str, words: str) -> None:
    (root / "assets" / "semantic_labels.json").write_text(content)
    with pytest.raises(ValueError, match=words):
        StanfordSource(root, SIZE)


def test_missing_roots_and_labels_are_named(root: Path, tmp_path: Path, unchecked) -> None:
    with pytest.raises(FileNotFoundError, match="semantic_labels"):
        StanfordSource(tmp_path, SIZE)
    (tmp_path / "semantic_labels.json").write_text(json.dumps(LABELS))
    with pytest.raises(FileNotFoundError, match=r"no area_\*/pano/rgb"):
        StanfordSource(tmp_path, SIZE)
    with pytest.raises(ValueError, match="labels='mean'"):
        StanfordSource(root, SIZE, labels="mean")
    with pytest.raises(ValueError, match="missing='mask' is not one of 'unknown', 'clutter'"):
        StanfordSource(root, SIZE, missing="mask")
