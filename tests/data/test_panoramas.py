import dataclasses
import errno
import json
import math
import shutil
from collections import namedtuple
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from torch.utils.data import DataLoader

from spherule import Grid
from spherule.data import (
    CLASSES,
    BadPanorama,
    Fold,
    Panorama,
    PanoramaDataset,
    PanoramaStatistics,
    depth_mask,
    write_panoramas,
)
from spherule.data.panorama_store import random_split
from spherule.data.panoramas import FORMAT

zarr = pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")

SIZE = (12, 24)
GRID = Grid.fejer(*SIZE, offset=0.5)
FOLDS = {
    "a": Fold(test=("area_1",), val=("area_2",)),
    "b": Fold(test=("area_2",), val=("area_3", "area_8")),
    "untested": Fold(test=("area_9",), val=("area_2",)),
    "unchecked": Fold(test=("area_2",), val=("area_9",)),
    "untrained": Fold(test=("area_1",), val=("area_2", "area_3")),
}


class Noise:
    """Random pictures; those in `bad` can't be used."""

    def __init__(self, samples: int, bad: tuple[int, ...] = ()) -> None:
        self.samples, self.bad = samples, bad

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> Panorama:
        if index in self.bad:
            raise BadPanorama(f"view {index}", "truncated", "3 bytes")
        rng = np.random.default_rng(index)
        depth = rng.uniform(1, 9, SIZE).astype(np.float32)
        depth[rng.random(SIZE) < 0.2] = np.nan
        return Panorama(
            rng.integers(0, 256, (*SIZE, 3), dtype=np.uint8),
            rng.integers(0, len(CLASSES), SIZE, dtype=np.uint8),
            depth,
            f"view {index}",
            f"area_{1 + index % 3}",
        )


def write(path: Path, source: Noise, **options) -> list[int]:
    options = {"size": SIZE, "config": {"seed": 1}, "folds": FOLDS} | options
    return list(write_panoramas(path, source, **options))


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "p.zarr"
    assert write(path, Noise(9)) == list(range(10))
    return path


@pytest.fixture
def copy(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "copy.zarr"))


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_xarray_opens_it_with_names_units_and_coordinates(stored: Path) -> None:
    with xr.open_zarr(stored) as ds:
        assert dict(ds.sizes) == {"sample": 9, "lat": 12, "lon": 24, "channel": 3, "moment": 23}
        assert ds.rgb.dims == ("sample", "lat", "lon", "channel")
        assert (ds.rgb.dtype, ds.label.dtype, ds.depth.dtype) == (np.uint8, np.uint8, np.float32)
        assert ds.depth.units == "m"
        assert Grid.match(ds.lat.values, ds.lon.values).grid == GRID
        assert ds.attrs["classes"] == list(CLASSES)
        assert ds.attrs["config"] == {"seed": 1}
        assert ds.fold_a.flag_values == [0, 1, 2]
        assert ds.fold_a.flag_meanings == "train val test"
        assert list(ds.name.values) == [f"view {i}" for i in range(9)]
        np.testing.assert_array_equal(ds.rgb[4], Noise(9)[4].rgb)


def test_samples_come_back_standardized_with_invalid_depth_marked(stored: Path) -> None:
    data = PanoramaDataset(stored, split="all")
    assert (len(data), data.grid, data.classes) == (9, GRID, CLASSES)
    sample, panorama = data[-1], Noise(9)[8]
    assert torch.equal(sample["label"], torch.from_numpy(panorama.label).long())
    assert torch.equal(sample["valid"], torch.from_numpy(~np.isnan(panorama.depth)))
    np.testing.assert_array_equal(sample["depth"], np.nan_to_num(panorama.depth))
    mean, std = (np.array(a) for a in (data.statistics.rgb_mean, data.statistics.rgb_std))
    image = sample["image"].permute(1, 2, 0).numpy() * std + mean
    np.testing.assert_allclose(image * 255, panorama.rgb, atol=1e-3)
    assert {k: (v.dtype, tuple(v.shape)) for k, v in sample.items()} == {
        "image": (torch.float32, (3, *SIZE)),
        "label": (torch.int64, SIZE),
        "depth": (torch.float32, SIZE),
        "valid": (torch.bool, SIZE),
    }


@pytest.mark.parametrize("fold", [None, "a", "b"])
def test_statistics_are_those_of_valid_training_pixels_by_area(stored: Path, fold) -> None:
    data = PanoramaDataset(stored, fold=fold)
    views = [Noise(9)[i] for i in data.indices]
    assert 0 < len(views) < 9
    weights = np.broadcast_to(GRID.weights, (len(views), *SIZE))
    rgb = np.stack([v.rgb for v in views]) / 255.0
    for c in range(3):
        mean = np.average(rgb[..., c], weights=weights)
        std = np.average((rgb[..., c] - mean) ** 2, weights=weights) ** 0.5
        assert data.statistics.rgb_mean[c] == pytest.approx(mean, rel=1e-12)
        assert data.statistics.rgb_std[c] == pytest.approx(std, rel=1e-12)
    depth = np.stack([v.depth for v in views]).astype(np.float64)
    used = ~np.isnan(depth) & depth_mask(GRID).numpy()
    mean = np.average(depth[used], weights=weights[used])
    std = np.average((depth[used] - mean) ** 2, weights=weights[used]) ** 0.5
    assert data.statistics.depth_mean == pytest.approx(mean, rel=1e-12)
    assert data.statistics.depth_std == pytest.approx(std, rel=1e-10)
    labels = np.stack([v.label for v in views])
    for c, frequency in enumerate(data.statistics.class_frequencies):
        assert frequency == pytest.approx(weights[labels == c].sum() / weights.sum(), rel=1e-12)


def test_splits_share_out_all_samples(stored: Path) -> None:
    parts = [set(PanoramaDataset(stored, split=s).indices) for s in ("train", "val", "test")]
    assert set.union(*parts) == set(range(9))
    assert sum(map(len, parts)) == 9
    assert min(map(len, parts)) > 0
    counts = np.bincount(random_split(1413))
    assert list(counts) == [1343, 35, 35]
    assert list(random_split(2)) == [0, 0]
    np.testing.assert_array_equal(random_split(100), random_split(100))


def test_folds_hold_out_whole_areas_for_test_and_others_for_validation(stored: Path) -> None:
    for split, area in (("train", "area_1"), ("val", "area_3"), ("test", "area_2")):
        part = PanoramaDataset(stored, split=split, fold="b")
        assert [part.panorama(i).area for i in range(len(part))] == [area] * 3
    for name in ("untested", "unchecked", "untrained"):
        with pytest.raises(ValueError, match=rf"fold='{name}': .* has folds a, b$"):
            PanoramaDataset(stored, fold=name)


def test_a_fold_without_validation_is_not_validated_on_its_test_areas(stored, tmp_path) -> None:
    stored = shutil.copytree(stored, tmp_path / "copy.zarr")
    group = zarr.open_group(stored, mode="r+")
    part = group["fold_b"][:]
    group["fold_b"][:] = np.where(part == 1, 0, part)
    with pytest.raises(ValueError, match=r"fold='b' of .* has no samples of val"):
        PanoramaDataset(stored, split="val", fold="b")


def test_areas_that_validate_do_not_test(tmp_path: Path) -> None:
    folds = {"a": Fold(test=("area_1", "area_2"), val=("area_2",))}
    with pytest.raises(ValueError, match=r"folds\['a'\]: area_2 can't both validate and test"):
        write(tmp_path / "p.zarr", Noise(9), folds=folds)


def test_a_model_keeps_the_statistics_it_was_trained_with(stored: Path) -> None:
    other = PanoramaStatistics((0.0,) * 3, (1.0,) * 3, 0.0, 1.0, (1 / 14,) * 14)
    image = PanoramaDataset(stored, split="all", statistics=other)[2]["image"]
    np.testing.assert_allclose(image.permute(1, 2, 0) * 255, Noise(9)[2].rgb, rtol=1e-6)


def test_workers_read_and_write_the_same(stored: Path, tmp_path: Path) -> None:
    assert write(tmp_path / "p.zarr", Noise(9), workers=2) == list(range(10))
    assert contents(tmp_path / "p.zarr") == contents(stored)
    data = PanoramaDataset(stored, split="all")
    loader = DataLoader(data, batch_size=3, num_workers=2)
    depth = torch.cat([batch["depth"] for batch in loader])
    assert torch.equal(depth[7], data[7]["depth"])


@pytest.mark.parametrize("workers", [0, 2])
def test_bad_samples_are_named_and_skipped_or_raised(tmp_path: Path, workers: int) -> None:
    source = Noise(6, bad=(0, 3))
    with pytest.raises(BadPanorama, match="view 0: truncated: 3 bytes"):
        write(tmp_path / "p.zarr", source, workers=workers)
    write(tmp_path / "p.zarr", source, workers=workers, bad="skip")
    with xr.open_zarr(tmp_path / "p.zarr") as ds:
        assert [s["name"] for s in ds.attrs["skipped"]] == ["view 0", "view 3"]
        assert {s["kind"] for s in ds.attrs["skipped"]} == {"truncated"}
        assert list(ds.name.values) == ["view 1", "view 2", "view 4", "view 5"]
    data = PanoramaDataset(tmp_path / "p.zarr", split="all")
    np.testing.assert_array_equal(data.panorama(2).rgb, Noise(6)[4].rgb)


def test_nothing_usable_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="none of 2 panoramas can be used"):
        write(tmp_path / "p.zarr", Noise(2, bad=(0, 1)), bad="skip")
    assert not (tmp_path / "p.zarr").exists()


@pytest.mark.parametrize("turns", [1, 3, 10])
def test_an_interrupted_run_goes_on(stored: Path, tmp_path: Path, turns: int) -> None:
    path, source = tmp_path / "p.zarr", Noise(9)
    run = write_panoramas(path, source, size=SIZE, config={"seed": 1}, folds=FOLDS)
    reached = list(islice(run, turns))[-1]
    run.close()
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match="is not finished"):
        PanoramaDataset(path)
    # A kill in the middle of a line and of a chunk leaves anything.
    with open(tmp_path / "p.zarr.partial" / "journal.jsonl", "a") as journal:
        journal.write('{"name": "view')
    rest = write(path, source)
    assert (rest[0], rest[-1]) == (reached, 9)
    assert contents(path) == contents(stored)
    assert not (tmp_path / "p.zarr.partial").exists()


def test_another_command_does_not_go_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "p.zarr"
    run = write_panoramas(path, Noise(9), size=SIZE, config={"seed": 1})
    list(islice(run, 2))
    run.close()
    with pytest.raises(ValueError, match=r"config=\{'seed': 1\} instead of \{'seed': 2\}"):
        write(path, Noise(9), config={"seed": 2})
    with pytest.raises(ValueError, match="candidates=9 instead of 8"):
        write(path, Noise(8))
    write(path, Noise(9))
    with pytest.raises(FileExistsError, match="exists: remove it"):
        write(path, Noise(9))


@pytest.mark.parametrize("variable", ["rgb", "label", "depth"])
def test_damage_is_found(copy: Path, variable: str) -> None:
    chunk = sorted(p for p in (copy / variable / "c" / "3").rglob("*") if p.is_file())[0]
    content = chunk.read_bytes()
    torn = bytes([content[60] ^ 1])
    for harm in (content[:60] + torn + content[61:], content[:-9], None):
        chunk.write_bytes(harm) if harm is not None else chunk.unlink()
        with pytest.raises(ValueError, match="damaged at sample 3"):
            PanoramaDataset(copy, split="all")[3]
        PanoramaDataset(copy, split="all")[4]
    (copy / "lat" / "zarr.json").unlink()
    (copy / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match="damaged, or not a Zarr store"):
        PanoramaDataset(copy)


def test_a_store_of_another_kind_is_refused(copy: Path) -> None:
    metadata = json.loads((copy / "zarr.json").read_text())
    metadata["attributes"]["format"] = "spherule shallow water 1"
    (copy / "zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(ValueError, match="not a store of panoramas"):
        PanoramaDataset(copy)


def test_the_old_format_that_can_hold_pickles_is_not_opened(tmp_path: Path) -> None:
    zarr.create_group(tmp_path / "p.zarr", zarr_format=2, attributes={"format": FORMAT})
    with pytest.raises(ValueError, match="not a Zarr store"):
        PanoramaDataset(tmp_path / "p.zarr")


def test_a_full_disk_leaves_nothing_that_looks_whole(monkeypatch, stored, tmp_path) -> None:
    usage = namedtuple("usage", "free")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda path: usage(1000))
        with pytest.raises(OSError, match=r"no room for .*GB are needed"):
            write(tmp_path / "p.zarr", Noise(9))
    assert list(tmp_path.iterdir()) == []

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spherule.data.panorama_store.consolidate", full)
        with pytest.raises(OSError, match="give the same command again"):
            write(tmp_path / "p.zarr", Noise(9))
    assert write(tmp_path / "p.zarr", Noise(9)) == [9]
    assert contents(tmp_path / "p.zarr") == contents(stored)


def test_depth_is_masked_in_the_polar_fifteen_percent() -> None:
    mask = depth_mask(Grid.fejer(128, 256, offset=0.5))
    assert mask.shape == (128, 256)
    rows = mask.all(dim=1)
    assert torch.equal(rows, mask.any(dim=1))
    assert torch.equal(rows, rows.flip(0))
    assert rows.nonzero()[0] == 19
    assert depth_mask(Grid.healpix(4)).shape == (192,)


def test_bad_input_is_named(stored: Path, tmp_path: Path, unchecked) -> None:
    with pytest.raises(ValueError, match="bad='ignore'"):
        write(tmp_path / "p.zarr", Noise(2), bad="ignore")
    with pytest.raises(ValueError, match="source has 0 panoramas"):
        write(tmp_path / "p.zarr", Noise(0))
    with pytest.raises(
        ValueError, match=r"rgb is uint8 \(12, 24, 3\), expected uint8 \(8, 16, 3\)"
    ):
        write(tmp_path / "p.zarr", Noise(2), size=(8, 16))
    with pytest.raises(ValueError, match="split='valid'"):
        PanoramaDataset(stored, split="valid")
    with pytest.raises(IndexError, match="index=9"):
        PanoramaDataset(stored, split="all")[9]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("rgb_std", [0.3, 0.28, 660967.0, 0.29]),
        ("rgb_mean", [0.5, 0.5]),
        ("rgb_std", [0.3, 0.0, 0.3]),
        ("depth_std", -1.0),
        ("depth_std", math.nan),
        ("class_frequencies", [0.5, 0.5]),
        ("class_frequencies", ["a"] * 14),
    ],
)
def test_statistics_of_another_shape_or_sign_are_refused(
    field: str, value: object, unchecked
) -> None:
    known = PanoramaStatistics((0.0,) * 3, (1.0,) * 3, 0.0, 1.0, (1 / 14,) * 14)
    with pytest.raises((ValueError, TypeError), match=field):
        PanoramaStatistics.from_json({**dataclasses.asdict(known), field: value})
