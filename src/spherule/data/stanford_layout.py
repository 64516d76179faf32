"""Rooms as files in the layout of Stanford 2D3DS, so that what reads the one reads the other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from spherule.data import stanford
from spherule.data.panoramas import Panorama
from spherule.data.rooms import Rooms, area_of, room_of
from spherule.data.zarr_store import partial_of
from spherule.optional import require
from spherule.rooms.classes import CLASSES, UNKNOWN

LABELS = "semantic_labels.json"
UNLABELLED = "<UNK>_0_<UNK>_0_0"


class _Item(NamedTuple):
    panorama: Panorama
    names: list[str]
    """Of the things in the room."""
    thing: NDArray[np.int64]
    """Index into names at each pixel, -1 without a label."""


def write_stanford_layout(path: Path | str, rooms: Rooms, *, workers: int = 0) -> Iterator[int]:
    """Write `area_*/pano/{rgb,semantic,depth}/*.png` and `semantic_labels.json`; yields how many
    rooms are done. The directory takes its name when it is whole.
    """
    path = Path(path)
    if workers < 0:
        raise ValueError(f"workers={workers} must be >= 0")
    if path.exists():
        raise FileExistsError(f"{path} exists: remove it, or choose another name")
    require("PIL.Image", "writing images")
    partial = partial_of(path)
    labels = [UNLABELLED]
    items = DataLoader(_Items(rooms), batch_size=None, num_workers=workers, collate_fn=_same)
    for done, item in enumerate(items, start=1):
        reserved = stanford.MISSING[1]
        if len(labels) <= reserved < len(labels) + len(item.names):
            # Readers take this number for a pixel without a label, so nothing real may have it.
            labels += [UNLABELLED] * (reserved + 1 - len(labels))
        _write(partial, item, first=len(labels))
        labels += item.names
        yield done
    (partial / LABELS).write_text(json.dumps(labels), encoding="utf-8")
    partial.rename(path)


class _Items(Dataset[_Item]):
    def __init__(self, rooms: Rooms) -> None:
        self.rooms = rooms

    def __len__(self) -> int:
        return len(self.rooms)

    def __getitem__(self, index: int) -> _Item:
        scene, view = self.rooms.view(index)
        surfaces = scene.surfaces
        keys = surfaces.label.astype(np.int64) << 32 | surfaces.instance
        keys[surfaces.label == UNKNOWN] = -1
        things, place = np.unique(keys[keys >= 0], return_inverse=True)
        number = np.full(keys.size, -1)
        number[keys >= 0] = place
        where = f"{room_of(index, scene)}_{area_of(index).removeprefix('area_')}"
        names = [f"{CLASSES[key >> 32]}_{key & 0xFFFFFFFF}_{where}" for key in things.tolist()]
        name = self.rooms.name(index, scene)
        panorama = Panorama(view.rgb, view.label, view.depth, name, area_of(index))
        return _Item(panorama, names, number[view.surface])


def _write(root: Path, item: _Item, *, first: int) -> None:
    Image = require("PIL.Image", "writing images")
    panorama = item.panorama
    index = np.where(item.thing < 0, stanford.MISSING[0], item.thing + first)
    semantic = np.stack([index >> shift & 255 for shift in (16, 8, 0)], axis=-1).astype(np.uint8)
    known = np.isfinite(panorama.depth)
    steps = np.rint(
        np.where(known, panorama.depth, 0).astype(np.float64) * stanford.UNITS_PER_METRE
    )
    depth = np.where(known, np.minimum(steps, stanford.NO_DEPTH - 1), stanford.NO_DEPTH)
    for kind, pixels in (
        ("rgb", panorama.rgb),
        ("semantic", semantic),
        ("depth", depth.astype(np.uint16)),
    ):
        folder = root / panorama.area / "pano" / kind
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{panorama.name}_frame_equirectangular_domain_{kind}.png"
        Image.fromarray(pixels).save(file, compress_level=3)


def _same(item: Any) -> Any:
    return item
