"""Stanford 2D-3D-Semantics: panoramas of offices, read from the extracted files of the original.

area_1/pano/rgb/camera_<hash>_<room>_frame_equirectangular_domain_rgb.png
area_1/pano/semantic/..._semantic.png    index into semantic_labels.json in the colors
area_1/pano/depth/..._depth.png          1/512 m; 16 bits, or in the colors
semantic_labels.json                     beside the areas, or in assets/
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Integer, UInt8

from spherule import checks
from spherule.data.images import majority, nearest, read_png, shrink, shrink_valid
from spherule.data.panoramas import BadPanorama, Fold, Panorama
from spherule.optional import require
from spherule.rooms.classes import CLASSES, UNKNOWN

FOLDS = {
    "1": Fold(test=("area_5", "area_5a", "area_5b"), val=("area_3",)),
    "2": Fold(test=("area_2", "area_4"), val=("area_3",)),
    "3": Fold(test=("area_1", "area_3", "area_6"), val=("area_4",)),
}
"""The areas that the community's three folds test on (5a and 5b are one building part), and of
those that they train on, the smallest for validation."""
KINDS = ("rgb", "semantic", "depth")
MISSING = 0x0D0D0D
"""The color of pixels without a label."""
NO_DEPTH = 2**16 - 1
UNITS_PER_METRE = 512
_MAX_JSON = 2**24
_AREA = re.compile(r"area_[0-9a-zA-Z]+")
_NAME = re.compile(r"(camera_[0-9a-zA-Z]+_[\w<>-]+)_frame_equirectangular_domain_([a-z]+)\.png")


class _Candidate(NamedTuple):
    area: Path
    camera: str
    strange: bool
    """Whether this is the name of a file that none of the original has."""


class StanfordSource:
    """All panoramas under a root, shrunk to a size; what can't be used raises `BadPanorama`.

    RGB are averages by solid angle, labels the nearest pixel's or the majority's, depth the average
    over pixels that have one. Pixels without a label are `<UNK>`, or with `missing="clutter"` what
    the paper's public code takes them for.
    """

    @checks.arguments
    def __init__(
        self,
        root: Path | str,
        size: tuple[int, int],
        *,
        labels: Literal["nearest", "majority"] = "nearest",
        missing: Literal["unknown", "clutter"] = "unknown",
    ) -> None:
        require("PIL.Image", "reading panoramas")
        self.labels = checks.choice("labels", labels, ("nearest", "majority"))
        self.missing = checks.choice("missing", missing, ("unknown", "clutter"))
        for i, side in enumerate(size):
            checks.integer(f"size[{i}]", side, low=1)
        self.root, self.size = Path(root), size
        self.classes = read_classes(self.root)
        self.candidates = _found(self.root)
        if not self.candidates:
            raise FileNotFoundError(f"{root}: no area_*/pano/rgb/camera_*.png in it")

    @property
    def config(self) -> dict[str, Any]:
        """What a store remembers: the names of the files stand for them."""
        names = "\n".join(f"{area.name}/{camera}" for area, camera, _ in self.candidates)
        digest = hashlib.blake2b(names.encode(), digest_size=8).hexdigest()
        return {
            "source": "Stanford 2D-3D-Semantics",
            "labels": self.labels,
            "missing": self.missing,
            "files": digest,
        }

    def __len__(self) -> int:
        return len(self.candidates)

    def __getitem__(self, index: int) -> Panorama:
        area, camera, strange = self.candidates[index]
        name = f"{area.name}/{camera}"
        if strange:
            raise BadPanorama(name, "strange name", f"expected {_NAME.pattern}")
        files = {kind: _file(area, camera, kind, name) for kind in KINDS}
        rgb = read_png(files["rgb"], name, ("RGB", "RGBA"))[..., :3]
        self._require_size(name, "rgb", rgb, rgb)
        picture = read_png(files["semantic"], name, ("RGB", "RGBA"))
        self._require_size(name, "semantic", picture, rgb)
        missing = UNKNOWN if self.missing == "unknown" else CLASSES.index("clutter")
        label = decode_labels(picture, self.classes, name, missing=missing)
        picture = read_png(files["depth"], name, ("I;16", "I", "RGB", "RGBA"))
        self._require_size(name, "depth", picture, rgb)
        depth = decode_depth(picture)
        small = shrink(rgb, self.size)
        return Panorama(
            np.rint(small).astype(np.uint8),
            nearest(label, self.size)
            if self.labels == "nearest"
            else majority(label, self.size, len(CLASSES)),
            shrink_valid(depth, np.isfinite(depth), self.size).astype(np.float32),
            name,
            area.name,
        )

    def _require_size(self, name: str, kind: str, image: np.ndarray, rgb: np.ndarray) -> None:
        height, width = image.shape[:2]
        if image.shape[:2] != rgb.shape[:2]:
            reason = f"{kind} is {height}x{width}, rgb {rgb.shape[0]}x{rgb.shape[1]}"
        elif width != 2 * height:
            reason = f"{kind} is {height}x{width}, expected twice as wide as high"
        elif height < self.size[0] or width < self.size[1]:
            reason = f"{kind} is {height}x{width}, smaller than {self.size[0]}x{self.size[1]}"
        else:
            return
        raise BadPanorama(name, "wrong size", reason)


def read_classes(root: Path) -> UInt8[np.ndarray, "labels"]:
    """The class of each label in `semantic_labels.json`: its name up to the first underscore."""
    places = [root / "semantic_labels.json", root / "assets" / "semantic_labels.json"]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{places[0]} does not exist, and neither does {places[1]}")
    if path.stat().st_size > _MAX_JSON:
        raise ValueError(f"{path} has {path.stat().st_size} bytes; expected a list of names")
    try:
        names = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise ValueError(f"{path}: expected a list of names")
    prefixes = [name.split("_", 1)[0] for name in names]
    strange = sorted(set(prefixes) - set(CLASSES))
    if strange:
        raise ValueError(f"{path}: {', '.join(strange[:5])}: none of {', '.join(CLASSES)}")
    return np.array([CLASSES.index(prefix) for prefix in prefixes], dtype=np.uint8)


def decode_labels(
    picture: UInt8[np.ndarray, "height width channels"],
    classes: UInt8[np.ndarray, "labels"],
    name: str = "",
    *,
    missing: int = UNKNOWN,
) -> UInt8[np.ndarray, "height width"]:
    """Colors to classes: 65536 R + 256 G + B numbers the labels, or says that there is none."""
    red, green, blue = (picture[..., c].astype(np.int32) for c in range(3))
    number = (red << 16) + (green << 8) + blue
    unlabeled = number == MISSING
    number[unlabeled] = 0
    if number.max(initial=0) >= classes.size:
        raise BadPanorama(name, "unknown label", f"{number.max()} of {classes.size} labels")
    label = classes[number]
    label[unlabeled] = missing
    return label


def decode_depth(
    picture: Integer[np.ndarray, "height width"] | UInt8[np.ndarray, "height width channels"],
) -> Float32[np.ndarray, "height width"]:
    """Meters of a picture with 16 bits or with R + 256 G + 65536 B, in 1/512 m; NaN where 65535
    says that there are none, beyond it, and at 0.
    """
    if picture.ndim == 3:
        red, green, blue = (picture[..., c].astype(np.int32) for c in range(3))
        picture = red + (green << 8) + (blue << 16)
    valid = (picture > 0) & (picture < NO_DEPTH)
    return np.where(valid, picture / np.float32(UNITS_PER_METRE), np.nan).astype(np.float32)


def _found(root: Path) -> list[_Candidate]:
    """Every camera of which there is a file of any kind: what misses partners is named, not
    overlooked.
    """
    if not root.is_dir():
        raise FileNotFoundError(f"{root} is not a directory")
    candidates = set()
    for area in root.glob("area_*"):
        if not _AREA.fullmatch(area.name):
            continue
        for kind in KINDS:
            for path in (area / "pano" / kind).glob("*.png"):
                match = _NAME.fullmatch(path.name)
                if match is not None and match[2] == kind:
                    candidates.add(_Candidate(area, match[1], False))
                elif not path.name.startswith("."):
                    # Names go into the store and onto the terminal: nothing but plain characters.
                    candidates.add(_Candidate(area, f"{kind}/{ascii(path.name)[1:-1]}", True))
    return sorted(candidates)


def _file(area: Path, camera: str, kind: str, name: str) -> Path:
    path = area / "pano" / kind / f"{camera}_frame_equirectangular_domain_{kind}.png"
    if not path.exists():
        raise BadPanorama(name, "missing partner", f"no {kind}/{path.name}")
    if not path.resolve().is_relative_to(area.resolve()):
        raise BadPanorama(name, "outside", f"{kind}/{path.name} leads out of {area.name}")
    return path
