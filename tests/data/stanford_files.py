"""Files in the layout of Stanford 2D-3D-Semantics, small and made up."""

import json
from pathlib import Path

import numpy as np
from PIL import Image

LABELS = ["<UNK>_0_<UNK>_0_0", "wall_1_office_1_1", "chair_9_conferenceRoom_1_4", "floor_1_WC_1_1"]
CAMERAS = (
    "camera_00d10d86db1e435081a837ced388375f_office_24",
    "camera_0a2acab6ce7b4cbdb431b640645eadfd_conferenceRoom_1",
)


def file_of(root: Path, area: str, camera: str, kind: str) -> Path:
    return root / area / "pano" / kind / f"{camera}_frame_equirectangular_domain_{kind}.png"


def write_camera(root: Path, area: str, camera: str, shape: tuple[int, int], seed: int) -> dict:
    """One panorama's three files; what is in them."""
    rng = np.random.default_rng(seed)
    rgb = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    number = rng.integers(0, len(LABELS), shape)
    number[rng.random(shape) < 0.1] = 0x0D0D0D
    depth = rng.integers(1, 5000, shape).astype(np.uint16)
    depth[rng.random(shape) < 0.2] = 65535
    semantic = np.stack([number >> 16, number >> 8 & 255, number & 255], -1).astype(np.uint8)
    for kind, image in (("rgb", rgb), ("semantic", semantic), ("depth", depth)):
        path = file_of(root, area, camera, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return {"rgb": rgb, "number": number, "depth": depth}


def write_dataset(
    root: Path, shape: tuple[int, int] = (24, 48), areas: tuple[str, ...] = ("area_1", "area_5a")
) -> Path:
    for i, area in enumerate(areas):
        for j, camera in enumerate(CAMERAS):
            write_camera(root, area, camera, shape, seed=10 * i + j)
    (root / "assets").mkdir()
    (root / "assets" / "semantic_labels.json").write_text(json.dumps(LABELS))
    return root
