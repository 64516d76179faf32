"""Files with a few bytes changed: every reader takes them, or says in a ValueError what is wrong.

`make fuzz SECONDS=600` goes on drawing for as long, on the processor's clock. What once failed is
kept in corpus/ and tried first, always.
"""

import os
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from spherule import models, tasks  # noqa: F401  (tasks: configs name them)
from spherule.data import (
    CLASSES,
    Panorama,
    PanoramaDataset,
    ShallowWaterConfig,
    StoredShallowWater,
    write_panoramas,
    write_store,
)
from spherule.data.images import read_panorama, read_png
from spherule.train import RunConfig
from spherule.train.checkpoint import Checkpoint, damage, newest_whole

pytestmark = pytest.mark.usefixtures("unchecked", "little_memory")

TESTS = Path(__file__).parents[1]
CORPUS = Path(__file__).parent / "corpus"
CALLS, SECONDS = 150, float(os.environ.get("SECONDS", 0))
TOKENS = [b"null", b"-1", b"1e999", b"NaN", b"[]", b"{}", b'""', b"true", b"9" * 40, b"[" * 2000]
TOKENS += [b"\x00", b"\xff\xff\xff\xff", b'"../x"', b"0", b",", b'"', b"\xed\xa0\x80"]


class Reader(NamedTuple):
    files: Path
    """A directory, in which one file is spoilt."""
    read: Callable[[Path], Any]
    spoilt: tuple[str, ...]


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    """With the smallest files of each kind."""
    from PIL import Image

    made = tmp_path_factory.mktemp("made")
    (made / "png").mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (8, 16, 3), np.uint8)
    Image.fromarray(pixels).save(made / "png" / "image.png")
    config = ShallowWaterConfig(grid="gauss:6x12", lmax=2, lead=600.0, step=600.0)
    list(write_store(made / "store" / "swe.zarr", config, samples=1))
    label, depth = pixels[..., 0] % len(CLASSES), np.ones((8, 16), np.float32)
    views = [Panorama(pixels, label, depth, f"view {i}", f"area_{i}") for i in range(3)]
    list(write_panoramas(made / "rooms" / "rooms.zarr", views, size=(8, 16), config={}))
    run = TESTS / "runs" / "v0_1_0"
    step = "checkpoints/step-00000003"
    return {
        "config": Reader(run, lambda d: RunConfig.load(d / "config.json"), ("config.json",)),
        "model": Reader(
            TESTS / "models" / "v0_1_0" / "vision_transformer",
            models.from_pretrained,
            ("config.json", "model.safetensors"),
        ),
        "checkpoint": Reader(
            run,
            checkpoint,
            tuple(
                f"{step}/{name}" for name in ("state.json", "SHA256SUMS", "training.safetensors")
            ),
        ),
        "png": Reader(
            made / "png", lambda d: read_png(d / "image.png", "x", ("RGB",)), ("image.png",)
        ),
        "panorama": Reader(made / "png", lambda d: read_panorama(d / "image.png"), ("image.png",)),
        "zarr": Reader(
            made / "store",
            lambda d: StoredShallowWater(d / "swe.zarr")[0],
            ("swe.zarr/zarr.json",),
        ),
        "panoramas": Reader(
            made / "rooms",
            lambda d: PanoramaDataset(d / "rooms.zarr", split="all")[0],
            ("rooms.zarr/zarr.json",),
        ),
    }


def checkpoint(directory: Path) -> None:
    one = Checkpoint(directory / "checkpoints" / "step-00000003", 3)
    assert (damage(one) is None) == (newest_whole(directory / "checkpoints")[0] is not None)
    one.state()


@pytest.mark.parametrize(
    "name", ["config", "model", "checkpoint", "png", "panorama", "zarr", "panoramas"]
)
def test_spoilt_files_are_read_or_refused_in_words(
    name: str, readers: dict[str, Reader], tmp_path: Path
) -> None:
    reader, rng, end = readers[name], np.random.default_rng(0), time.process_time() + SECONDS
    work = tmp_path / "files"
    shutil.copytree(reader.files, work)
    reader.read(work)
    kept = sorted(CORPUS.glob(f"{name}-*"))
    number = 0
    while number < CALLS or time.process_time() < end:
        target = work / reader.spoilt[number % len(reader.spoilt)]
        whole = target.read_bytes()
        if number < len(kept):
            target, content = work / reader.spoilt[0], kept[number].read_bytes()
            whole = target.read_bytes()
        else:
            content = spoilt(rng, whole)
        target.write_bytes(content)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(work)
        except (ValueError, FileNotFoundError):
            pass
        except Exception as error:
            raise AssertionError(f"{target.name} = {content[:2000]!r}: {error!r}") from error
        finally:
            target.write_bytes(whole)
        number += 1


def spoilt(rng: np.random.Generator, content: bytes) -> bytes:
    """One to four small changes."""
    for _ in range(int(rng.integers(1, 5))):
        place = int(rng.integers(len(content) + 1)) if content else 0
        length = int(rng.integers(1, 9))
        token = TOKENS[int(rng.integers(len(TOKENS)))]
        new = [
            content[:place] + rng.bytes(1) + content[place + 1 :],
            content[:place] + content[place + length :],
            content[:place] + content[place : place + length] + content[place:],
            content[:place] + token + content[place:],
            content[:place] + token + content[place + length :],
            content[:place],
        ]
        content = new[int(rng.integers(len(new)))]
    return content
