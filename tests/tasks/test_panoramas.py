"""Segmentation and depth of rendered rooms, from training to a predicted image."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spherule import ops
from spherule.grids.images import image_grid
from spherule.models import SegformerConfig, TransformerConfig
from spherule.report.page import write_report
from spherule.runs import Run, predict, train
from spherule.tasks import DepthConfig, SegmentationConfig
from spherule.tasks.panoramas import _on_grid, room_globe
from spherule.train import RunConfig, TrainingConfig
from tests.tiny import losses, silent, validations

pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
ROOMS = {"rooms": 24, "size": "16x32", "fold": "1"}
TRAINING = TrainingConfig(
    epochs=4, batch=4, optimizer="adamw", learning_rate=5e-3, schedule="cosine"
)
SEGFORMER = SegformerConfig(widths=(8, 16), depths=(1, 1), heads=(1, 2), drop_path=0.1)
CONFIGS = {
    "seg": RunConfig(SegmentationConfig(**ROOMS), SEGFORMER, TRAINING, recipe="seg/test"),
    "depth": RunConfig(
        DepthConfig(**ROOMS), TransformerConfig(width=16, depth=1), TRAINING, "depth/test"
    ),
}


@pytest.fixture(scope="module", params=list(CONFIGS))
def trained(request, tmp_path_factory) -> Path:
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp(request.param) / "run"
    said: list[str] = []
    train(CONFIGS[request.param], directory, log=said.append)
    assert "rendering 24 rooms of 16x32" in said[0]
    return directory


def test_rooms_are_learned(trained: Path) -> None:
    values = [loss for _, loss in losses(trained)]
    assert np.mean(values[-5:]) < 0.93 * np.mean(values[:5])
    assert validations(trained)[-1] < 1.05 * validations(trained)[0]


def test_a_resumed_run_sees_the_same_augmented_samples(trained: Path, tmp_path: Path) -> None:
    config = Run.open(trained).config
    half = replace(config, training=replace(config.training, epochs=2, schedule="constant"))
    whole = replace(half, training=replace(half.training, epochs=3))
    store = {"data": trained / "rooms-24-16x32.zarr"}
    half, whole = (replace(c, task=replace(c.task, **store)) for c in (half, whole))
    train(half, tmp_path / "a", log=silent)
    train(whole, tmp_path / "a", resume=True, log=silent)
    train(whole, tmp_path / "b", log=silent)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_a_page_is_written(trained: Path, tmp_path: Path) -> None:
    write_report(tmp_path / "page.html", [trained])
    page = (tmp_path / "page.html").read_text()
    for words in ("Examples", "Error by latitude", "data:image/webp"):
        assert words in page


@pytest.mark.parametrize("size", [(64, 32), (20, 10), (96, 48)])
def test_a_panorama_image_gives_an_image_of_its_size(trained: Path, tmp_path, size) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "in.jpg")
    run = Run.open(trained)
    predict(run, tmp_path / "in.jpg", tmp_path / "out.png")
    with Image.open(tmp_path / "out.png") as image:
        assert image.size == size
        pixels = np.array(image)
        if run.name.startswith("seg"):
            assert json.loads(image.text["classes"])[-1] == "<UNK>"
            assert pixels.max() < 14
        else:
            assert pixels.dtype == np.uint16
            assert 0.2 < np.median(pixels) / 512 < 10  # meters, in a room


def test_bad_images_are_named(trained: Path, finished: Path, tmp_path: Path) -> None:
    run = Run.open(trained)
    Image.new("RGB", (30, 30)).save(tmp_path / "square.png")
    (tmp_path / "text.png").write_text("hello")
    Image.fromarray(np.linspace(0, 65535, 200).reshape(10, 20).astype(np.uint16)).save(
        tmp_path / "deep.png"
    )
    for name, words in (
        ("square.png", "30x30 is not a whole panorama"),
        ("text.png", "can't be used"),
        ("no.png", "does not exist"),
        ("deep.png", "save it with 8 bits"),
    ):
        with pytest.raises((ValueError, OSError), match=words):
            predict(run, tmp_path / name, tmp_path / "out.png")
    Image.new("RGB", (20, 10)).save(tmp_path / "photo.png")
    before = (tmp_path / "photo.png").read_bytes()
    with pytest.raises(FileExistsError, match="exists: remove it, or choose another name"):
        predict(run, tmp_path / "photo.png", tmp_path / "photo.png")
    assert (tmp_path / "photo.png").read_bytes() == before
    with pytest.raises(ValueError, match=r"ends in \.png"):
        predict(run, tmp_path / "square.png", tmp_path / "out.jpg")
    with pytest.raises(ValueError, match="cannot be read"):
        predict(Run.open(finished), tmp_path / "square.png", tmp_path / "out.png")


def test_without_data_the_commands_that_make_them_are_named() -> None:
    with pytest.raises(ValueError, match=r"spherule data stanford --root.*\n.*spherule data rooms"):
        SegmentationConfig().open(0)


def test_a_single_room_is_rendered_and_none_is_refused(tmp_path: Path) -> None:
    config = SegmentationConfig(rooms=1, size="16x32")
    assert config.store(tmp_path, silent).exists()
    with pytest.raises(ValueError, match="no panoramas"):
        replace(config, rooms=0).store(tmp_path, silent)


def test_small_images_are_enlarged_between_their_pixels() -> None:
    rgb = np.random.default_rng(0).integers(0, 255, (8, 16, 3), dtype=np.uint8)
    own, finer = image_grid(8, 16), image_grid(16, 32)
    found = _on_grid(rgb, finer)
    for channel in range(3):
        field = torch.tensor(rgb[..., channel], dtype=torch.float64)
        assert np.array_equal(found[..., channel], ops.resample(field, own, finer).numpy())


def test_rooms_are_seen_from_inside() -> None:
    grid = image_grid(8, 16)
    rgb = np.zeros((2, 8, 16, 3), np.uint8)
    globe = room_globe("rooms", grid, rgb, depth={"truth": np.ones((2, 8, 16))})
    assert globe.inside
    assert globe.frames.labels == ("room 1", "room 2")
    assert [v.truth for v in globe.variables] == ["truth"]
