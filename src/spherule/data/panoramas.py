"""Panoramas with labels and depth: what a sample is, its statistics, and the store read back.

Images lie on `image_grid(nlat, nlon)`: pixels are cells, the grid has their centers.
"""

import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Float32, UInt8
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from spherule import checks
from spherule.data.zarr_store import described, open_store, place_coordinates, require_coordinates
from spherule.grids import Grid
from spherule.rooms.classes import CLASSES

COLORS = (
    *((181, 101, 29), (247, 228, 99), (140, 86, 75), (223, 230, 238), (228, 87, 46)),
    *((155, 143, 194), (77, 106, 138), (201, 139, 219), (169, 196, 140), (214, 39, 118)),
    *((242, 165, 65), (185, 190, 196), (89, 195, 226), (43, 43, 43)),
)
"""Of each class, in pictures."""
FORMAT = "spherule panoramas 1"
RANDOM = "split"
"""The variable of the random split; those of folds are `fold_` and a name."""
SPLITS = ("train", "val", "test")


class Fold(NamedTuple):
    """Areas that are not trained on: those that the result is reported for, and those that choose
    the best checkpoint.
    """

    test: Sequence[str]
    val: Sequence[str]


POLAR_PART = 0.15


@dataclass(frozen=True, eq=False)
class Panorama:
    """One view in all directions, row by row from the zenith down."""

    rgb: UInt8[np.ndarray, "nlat nlon 3"]
    label: UInt8[np.ndarray, "nlat nlon"]
    """Indices into CLASSES."""
    depth: Float32[np.ndarray, "nlat nlon"]
    """Distance from the camera in meters; NaN where there is none."""
    name: str = ""
    area: str = ""
    """The building or part of one: what a split should not tear apart."""

    def __post_init__(self) -> None:
        checks.config(self)
        shapes = [array.shape for array in (self.rgb, self.label, self.depth)]
        if self.label.ndim != 2 or shapes != [(*self.label.shape, 3), *[self.label.shape] * 2]:
            raise ValueError(
                "rgb, label and depth: expected (nlat, nlon, 3), (nlat, nlon) and (nlat, nlon), "
                f"got {shapes}"
            )

    def checksum(self) -> int:
        """CRC-32 of picture, labels and depth."""
        value = 0
        for array in (self.rgb, self.label, self.depth):
            value = zlib.crc32(array.tobytes(), value)
        return value

    def moments(self, grid: Grid) -> NDArray[np.float64]:
        """Means over the sphere that statistics are made of: RGB in [0, 1] and its square; the area
        of the pixels that have a depth (`depth_mask` applied), the depth there and its square; the
        area of each class.
        """
        weights = grid.weights / grid.weights.sum()
        rgb = (self.rgb / 255.0).reshape(-1, 3)
        valid = np.isfinite(self.depth) & depth_mask(grid).numpy()
        depth = np.where(valid, self.depth, 0).astype(np.float64)
        return np.concatenate(
            [
                weights.ravel() @ rgb,
                weights.ravel() @ rgb**2,
                [weights[valid].sum(), (weights * depth).sum(), (weights * depth**2).sum()],
                np.bincount(self.label.ravel(), weights.ravel(), minlength=len(CLASSES)),
            ]
        )


class BadPanorama(ValueError):
    """A sample that can't be used: its name, the kind of damage, and what was found."""

    def __init__(self, name: str, kind: str, reason: str) -> None:
        super().__init__(name, kind, reason)  # all of it in args: it travels between processes
        self.name, self.kind, self.reason = name, kind, reason

    def __str__(self) -> str:
        return f"{self.name}: {self.kind}: {self.reason}"


@dataclass(frozen=True)
class PanoramaStatistics:
    """Over the training part, by area: RGB in [0, 1] (mean and deviation of each channel), depth in
    meters where there is one and the loss looks, and how much of the sphere each class covers.
    """

    rgb_mean: tuple[float, float, float]
    rgb_std: tuple[float, float, float]
    depth_mean: float
    depth_std: float
    class_frequencies: tuple[float, ...]

    def __post_init__(self) -> None:
        checks.config(self)
        if not all(0 < deviation < math.inf for deviation in (*self.rgb_std, self.depth_std)):
            raise ValueError(
                f"rgb_std={self.rgb_std}, depth_std={self.depth_std}: expected positive numbers"
            )
        if len(self.class_frequencies) != len(CLASSES):
            raise ValueError(
                f"class_frequencies: expected one a class, {len(CLASSES)}, got "
                f"{len(self.class_frequencies)}"
            )

    @classmethod
    def of(cls, moments: Float[np.ndarray, "samples moments"]) -> "PanoramaStatistics":
        """Of samples with these `Panorama.moments`, all of the same weight."""
        mean = np.asarray(moments).mean(axis=0)
        rgb, depth = mean[:6].reshape(2, 3), mean[6:9]
        depth = depth[1:] / depth[0] if depth[0] > 0 else np.array([0.0, 1.0])
        red, green, blue = (_deviation(first, second) for first, second in rgb.T)
        return cls(
            tuple(rgb[0].tolist()),
            (red, green, blue),
            float(depth[0]),
            _deviation(*depth),
            tuple(mean[9:].tolist()),
        )

    @classmethod
    @checks.arguments
    def from_json(cls, values: Mapping[str, Any]) -> "PanoramaStatistics":
        """From what `dataclasses.asdict` gave, lists for tuples."""
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return cls(**fields)


@checks.arguments
def depth_mask(grid: Grid) -> Bool[Tensor, "..."]:
    """Where depth is learned and judged, in the grid's shape: all but the 15 % of latitudes at
    either pole.
    """
    away = np.minimum(grid.point_theta, math.pi - grid.point_theta)
    return torch.from_numpy(away > POLAR_PART * math.pi).reshape(grid.shape)


class PanoramaDataset(Dataset[dict[str, Tensor]]):
    """A part of a store: `image` (3, nlat, nlon) standardized by the statistics, `label` (nlat,
    nlon), `depth` (nlat, nlon) in meters, 0 where it is not `valid` (nlat, nlon).

    The split is the random one, or the fold of that name; "all" is every sample. Statistics are
    those of the split's training part, or given: a model wants those it was trained with.
    `augment(panorama, epoch, sample)` makes another panorama of one; `Augmentation` is such.
    Indices then go on past the end: index e n + i of n samples is sample i in epoch e.
    """

    @checks.arguments
    def __init__(
        self,
        path: Path | str,
        *,
        split: Literal["train", "val", "test", "all"] = "train",
        fold: str | None = None,
        statistics: PanoramaStatistics | None = None,
        augment: Callable[[Panorama, int, int], Panorama] | None = None,
    ) -> None:
        self.path, self.split, self.fold, self.augment = Path(path), split, fold, augment
        self._group = open_store(self.path, FORMAT, ("grid", "classes", "statistics", "skipped"))
        with described(self.path):
            self.grid = Grid.from_name(self._group.attrs["grid"])
            self.classes = tuple(self._group.attrs["classes"])
            self.skipped: list[dict[str, str]] = self._group.attrs["skipped"]
            """What the source had and the store has not: name, kind and reason."""
            self._require_whole()
            variable = self._variable()
            self.statistics = statistics or PanoramaStatistics.from_json(
                self._group.attrs["statistics"][variable]
            )
            part, self._checksums = self._group[variable][:], self._group["checksum"][:]
        if split == "all":
            wanted = np.ones(part.shape, dtype=bool)
        elif split in SPLITS:
            wanted = part == SPLITS.index(split)
        else:
            raise ValueError(f"split={split!r}: expected one of {', '.join(SPLITS)}, all")
        if fold is not None and not wanted.any():
            raise ValueError(
                f"fold={fold!r} of {self.path} has no samples of {split}: it was written when "
                "folds had no areas for validation; write it again"
            )
        self.indices = np.flatnonzero(wanted)
        """Which of the store's samples."""

    def __len__(self) -> int:
        return self.indices.size

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        epoch = 0
        if self.augment is not None:
            epoch, index = divmod(index, len(self))
        panorama = self.panorama(index)
        if self.augment is not None:
            panorama = self.augment(panorama, epoch, int(self.indices[index]))
        mean, std = (
            torch.tensor(values, dtype=torch.float32)[:, None, None]
            for values in (self.statistics.rgb_mean, self.statistics.rgb_std)
        )
        image = torch.from_numpy(panorama.rgb).permute(2, 0, 1).float() / 255
        valid = torch.from_numpy(np.isfinite(panorama.depth))
        return {
            "image": ((image - mean) / std).contiguous(),
            "label": torch.from_numpy(panorama.label).long(),
            "depth": torch.from_numpy(panorama.depth).nan_to_num(0.0),
            "valid": valid,
        }

    def panorama(self, index: int) -> Panorama:
        """The sample as it is stored."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={index}: {self.path} has {len(self)} samples of {self.split}")
        row = int(self.indices[index])
        try:
            rgb, label, depth, name, area = (
                self._group[name][row] for name in ("rgb", "label", "depth", "name", "area")
            )
            panorama = Panorama(rgb, label, depth, str(name), str(area))
        except Exception as error:  # whatever a codec says of a torn chunk
            raise ValueError(f"{self.path} is damaged at sample {row}: {error}") from error
        if panorama.checksum() != self._checksums[row]:
            raise ValueError(f"{self.path} is damaged at sample {row}: its checksum is another")
        return panorama

    def _variable(self) -> str:
        variable = RANDOM if self.fold is None else f"fold_{self.fold}"
        known = self._group.attrs["statistics"]
        if variable not in known:
            folds = ", ".join(k.removeprefix("fold_") for k in known if k != RANDOM)
            raise ValueError(
                f"fold={self.fold!r}: {self.path} has {f'folds {folds}' if folds else 'no folds'}"
            )
        return variable

    def _require_whole(self) -> None:
        if "checksum" not in self._group:
            raise ValueError(f"{self.path} is damaged: checksum is not there")
        shape = (*self._group["checksum"].shape, *self.grid.shape)
        for name, wanted in (("rgb", (*shape, 3)), ("label", shape), ("depth", shape)):
            if name not in self._group or self._group[name].shape != wanted:
                raise ValueError(f"{self.path} is damaged: {name} is not there with shape {wanted}")
        require_coordinates(self.path, self._group, place_coordinates(self.grid))


def _deviation(mean: float, square: float) -> float:
    """Never 0, because fields are divided by it."""
    return max(math.sqrt(max(square - mean**2, 0.0)), 1e-6)
