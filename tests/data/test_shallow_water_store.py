import errno
import shutil
from collections import namedtuple
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from torch.utils.data import DataLoader

from spherule import Grid
from spherule.data import ShallowWaterConfig, ShallowWaterDataset, StoredShallowWater, write_store

pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")

CONFIG = ShallowWaterConfig(grid="gauss:16x32", lead=900.0, step=300.0)


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("stores") / "swe.zarr"
    assert list(write_store(path, CONFIG, samples=10, seed=3)) == [0, 4, 8, 10]
    return path


@pytest.fixture
def copy(stored: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stored, tmp_path / "copy.zarr"))


def contents(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def test_xarray_opens_it_with_names_units_coordinates_and_config(stored: Path) -> None:
    with xr.open_zarr(stored) as ds:
        assert dict(ds.sizes) == {"sample": 10, "time": 2, "lat": 16, "lon": 32}
        assert set(ds.data_vars) == {"geopotential", "vorticity", "divergence"}
        assert ds.geopotential.units == "m2 s-2"
        assert ds.vorticity.units == ds.divergence.units == "s-1"
        assert Grid.match(ds.lat.values, ds.lon.values).grid == Grid.gauss(16, 32)
        np.testing.assert_array_equal(ds.time, [0, 900])
        assert {k: ds.attrs[k] for k in CONFIG.resolved()} == CONFIG.resolved()
        assert ds.attrs["seed"] == 3
        assert float(ds.geopotential.mean()) == pytest.approx(98061.6, rel=1e-3)


def test_reduced_grids_have_places_for_each_point(tmp_path: Path) -> None:
    list(write_store(tmp_path / "h.zarr", replace(CONFIG, grid="H4", lmax=4), samples=1))
    with xr.open_zarr(tmp_path / "h.zarr") as ds:
        assert ds.vorticity.dims == ("sample", "time", "point")
        assert set(ds.coords) == {"time", "lat", "lon"}
    assert StoredShallowWater(tmp_path / "h.zarr")[0][0].shape == (3, 192)


def test_training_reads_back_what_would_be_made(stored: Path) -> None:
    made, read = ShallowWaterDataset(CONFIG, seed=3), StoredShallowWater(stored, CONFIG)
    assert len(read) == 10
    assert read.statistics == made.statistics
    for i in range(10):
        for a, b in zip(made[i], read[i], strict=True):
            assert torch.equal(a, b)
    assert torch.equal(read[-1][0], read[9][0])


def test_workers_read_and_write_the_same(stored: Path, tmp_path: Path) -> None:
    list(write_store(tmp_path / "swe.zarr", CONFIG, samples=10, seed=3, workers=2))
    assert contents(tmp_path / "swe.zarr") == contents(stored)
    loader = DataLoader(StoredShallowWater(stored), batch_size=5, num_workers=2)
    inputs = torch.cat([batch[0] for batch in loader])
    assert torch.equal(inputs[7], StoredShallowWater(stored)[7][0])


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_an_interrupted_run_goes_on(stored: Path, tmp_path: Path, turns: int) -> None:
    path = tmp_path / "swe.zarr"
    run = write_store(path, CONFIG, samples=10, seed=3)
    reached = list(islice(run, turns))[-1]
    run.close()
    assert not path.exists()
    with pytest.raises(FileNotFoundError, match="is not finished"):
        StoredShallowWater(path)
    # A kill in the middle of a chunk leaves anything.
    chunk = tmp_path / "swe.zarr.partial" / "vorticity" / "c" / str(reached)
    for torn in chunk.rglob("0"):
        if torn.is_file():
            torn.write_bytes(b"torn")
    rest = list(write_store(path, CONFIG, samples=10, seed=3))
    assert (rest[0], rest[-1]) == (reached, 10)
    assert contents(path) == contents(stored)
    assert not (tmp_path / "swe.zarr.partial").exists()


def test_another_command_does_not_go_on_with_it(tmp_path: Path) -> None:
    path = tmp_path / "swe.zarr"
    run = write_store(path, CONFIG, samples=10, seed=3)
    list(islice(run, 2))
    run.close()
    with pytest.raises(ValueError, match=r"partial was made otherwise: seed=3 instead of 4"):
        list(write_store(path, CONFIG, samples=10, seed=4))
    with pytest.raises(ValueError, match=r"lead=900.0 instead of 600.0"):
        list(write_store(path, replace(CONFIG, lead=600.0), samples=10, seed=3))


def test_an_existing_store_is_left_alone(stored: Path) -> None:
    before = contents(stored)
    with pytest.raises(FileExistsError, match="exists: remove it"):
        list(write_store(stored, CONFIG, samples=10, seed=3))
    assert contents(stored) == before


def test_reading_checks_config_and_grid(stored: Path, copy: Path) -> None:
    with pytest.raises(ValueError, match="grid='gauss:16x32' instead of 'H8'"):
        StoredShallowWater(stored, replace(CONFIG, grid="H8", lmax=5))
    with pytest.raises(ValueError, match="preset='public' instead of 'paper'"):
        StoredShallowWater(stored, replace(CONFIG, preset="paper"))
    latitudes = next(p for p in (copy / "lat").rglob("*") if p.is_file() and p.name == "0")
    latitudes.write_bytes(latitudes.read_bytes()[::-1])
    with pytest.raises(ValueError, match="lat is not that of"):
        StoredShallowWater(copy)


def test_damage_is_found(copy: Path) -> None:
    chunks = sorted(p for p in (copy / "vorticity" / "c").rglob("*") if p.is_file())
    chunks[3].unlink()
    content = chunks[5].read_bytes()
    sample = int(chunks[5].relative_to(copy / "vorticity" / "c").parts[0])
    for place in range(40, len(content), len(content) // 12):
        flipped = bytes([content[place] ^ 1])
        chunks[5].write_bytes(content[:place] + flipped + content[place + 1 :])
        with pytest.raises(ValueError, match=f"damaged at sample {sample}"):
            StoredShallowWater(copy)[sample]
    chunks[6].write_bytes(chunks[6].read_bytes()[:-20])
    data = StoredShallowWater(copy)
    for i, chunk in enumerate(chunks):
        number = int(chunk.relative_to(copy / "vorticity" / "c").parts[0])
        if i in (3, 5, 6):
            with pytest.raises(ValueError, match=f"damaged at sample {number}"):
                data[number]
        else:
            data[number]
    (copy / "zarr.json").write_text("{")
    with pytest.raises(ValueError, match="damaged, or not a Zarr store"):
        StoredShallowWater(copy)
    (copy / "zarr.json").unlink()
    with pytest.raises(ValueError, match="damaged, or not a Zarr store"):
        StoredShallowWater(copy)


@pytest.mark.parametrize(("old", "new"), [("mean", "meant"), ("std", "stdd"), ("seed", 4)])
def test_metadata_that_lack_a_name_are_named(copy: Path, old: str, new: str | int) -> None:
    text = (copy / "zarr.json").read_text()
    changed = f'"{new}":' if isinstance(new, str) else f'"{old}": [{new}], "x":'
    assert f'"{old}":' in text
    (copy / "zarr.json").write_text(text.replace(f'"{old}":', changed))
    with pytest.raises(ValueError, match=r"copy\.zarr is damaged: (Key|Type)Error"):
        StoredShallowWater(copy)


def test_too_small_a_disk_is_refused_before_anything_is_written(monkeypatch, tmp_path) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(1000))
    with pytest.raises(OSError, match=r"no room for .*GB are needed"):
        list(write_store(tmp_path / "swe.zarr", CONFIG, samples=10))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_that_looks_whole(monkeypatch, stored, tmp_path) -> None:
    path = tmp_path / "swe.zarr"
    run = write_store(path, CONFIG, samples=10, seed=3)
    assert [next(run), next(run)] == [0, 4]

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("spherule.data.shallow_water_store._remember", full)
        with pytest.raises(OSError, match="give the same command again"):
            next(run)
    assert not path.exists()
    assert list(write_store(path, CONFIG, samples=10, seed=3)) == [4, 8, 10]
    assert contents(path) == contents(stored)


def test_bad_input_is_named(tmp_path: Path, stored: Path, unchecked) -> None:
    with pytest.raises(ValueError, match="samples=0"):
        list(write_store(tmp_path / "a.zarr", CONFIG, samples=0))
    with pytest.raises(FileNotFoundError, match=r"nothing\.zarr does not exist"):
        StoredShallowWater(tmp_path / "nothing.zarr")
    (tmp_path / "text.zarr").write_text("no")
    with pytest.raises(ValueError, match=r"text\.zarr"):
        StoredShallowWater(tmp_path / "text.zarr")
    with pytest.raises(IndexError, match="index=10"):
        StoredShallowWater(stored)[10]
