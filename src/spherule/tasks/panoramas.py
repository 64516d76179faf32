"""What segmentation and depth of panoramas share: where the images come from, and how one is
predicted.
"""

import dataclasses
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks, ops
from spherule.data import Augmentation, PanoramaDataset, write_panoramas
from spherule.data.images import read_panorama, shrink
from spherule.data.panoramas import CLASSES, COLORS, PanoramaStatistics
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford import FOLDS
from spherule.distributed import Shards, gathered, scattered
from spherule.files import require_new, write_whole
from spherule.grids import Grid, image_grid
from spherule.models import Model
from spherule.optional import require
from spherule.train import ranks
from spherule.train.batches import Repeated, first_samples, to_device
from spherule.train.scene import Frames, Globe, Image, Variable
from spherule.train.task import Example, Log, Task, TaskConfig, Trained

if TYPE_CHECKING:
    from PIL.Image import Image as Picture
    from PIL.PngImagePlugin import PngInfo

EXAMPLES, SHOWN = 3, 16
"""Panoramas that a report draws, and those that it averages errors over."""
LOOK_AROUND = "The rooms as the camera has them: turn around, and compare what a model sees."


@dataclass(frozen=True)
class PanoramaConfig(TaskConfig):
    """Where panoramas come from: a store, or rooms that are rendered into the run's directory."""

    data: Path | None = None
    """A store that `spherule data stanford` or `spherule data rooms` wrote."""
    fold: str | None = None
    """Split by area, holding one out, instead of at random."""
    rooms: int = 0
    """Without --data: how many procedural rooms to render."""
    size: str = "128x256"
    """Of rendered rooms."""
    tilt: float = 0.0
    """The most that their cameras are tilted, degrees; 180: any rotation at all."""
    augment: bool = True
    """Longitude rolls, mirror images and color jitter in training."""

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.shape("size", self.size)
        checks.integer("rooms", self.rooms, low=0)
        checks.number("tilt", self.tilt, low=0, high=180)

    def store(self, directory: Path | None, log: Log) -> Path:
        """The store, rendered if it must be."""
        if self.data is not None:
            return self.data
        if self.rooms < 1 or directory is None:
            raise ValueError(
                "no panoramas: give --data pano.zarr, made by\n"
                f"  spherule data stanford --root DIR --out pano.zarr --size {self.size}\n"
                f"  spherule data rooms --samples 1621 --size {self.size} --out pano.zarr\n"
                "or --rooms 200 to render rooms for this run"
            )
        tilted = f"-tilt{self.tilt:g}" if self.tilt else ""
        path = directory / f"rooms-{self.rooms}-{self.size}{tilted}.zarr"
        if not path.exists():
            log(f"rendering {self.rooms} rooms of {self.size} into {path}")
            rooms = Rooms(RoomsConfig(size=self.size, tilt=self.tilt), samples=self.rooms)
            made = {"rooms": self.rooms, **dataclasses.asdict(rooms.config)}
            for _ in write_panoramas(
                path, rooms, size=rooms.config.shape, config=made, folds=FOLDS, workers=2
            ):
                pass
        return path

    def predict(
        self,
        model: Model,
        metadata: dict[str, Any],
        source: Any,
        target: Path,
        *,
        steps: int = 1,
        device: torch.device,
        log: Log = print,
    ) -> None:
        """From a PNG or JPEG file to a PNG of the same size."""
        if steps != 1:
            raise ValueError(f"steps={steps}: {self.title.lower()} is no forecast; expected 1")
        if not isinstance(source, str | Path):
            raise TypeError(f"source: expected the path of an image, got a {type(source).__name__}")
        png = require("PIL.PngImagePlugin", "an image")
        if target.suffix.lower() != ".png":
            raise ValueError(f"output={str(target)!r}: expected a name that ends in .png")
        require_new(target)
        rgb = read_panorama(Path(source))
        statistics = PanoramaStatistics.from_json(metadata["statistics"])
        image = torch.tensor(_on_grid(rgb, model.grid) / 255, dtype=torch.float32)
        mean, std = _rgb(statistics)
        inputs = ((image.permute(2, 0, 1) - mean) / std)[None].to(device)
        model = ranks.spread(model.to(device).eval(), ranks.whole_mesh(device))
        with torch.no_grad():
            output = gathered(model(scattered(inputs, model.grid)), model.grid)[0].cpu()
        if not ranks.is_first():
            return
        info = png.PngInfo()
        picture = self.picture(output, (rgb.shape[0], rgb.shape[1]), metadata, info)
        target.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        picture.save(content, format="PNG", pnginfo=info)
        write_whole(target, content.getvalue())

    def picture(
        self, output: Tensor, size: tuple[int, int], metadata: dict[str, Any], info: "PngInfo"
    ) -> "Picture":
        """A model's output (channels, *shape) as an image of a size; `info` goes with it."""
        raise NotImplementedError


class PanoramaTask(Task):
    """Batches are dictionaries of image, label, depth and valid."""

    in_channels = 3

    def __init__(self, config: PanoramaConfig, seed: int, directory: Path | None, log: Log) -> None:
        self.config = config
        path = config.store(directory, log)
        train = PanoramaDataset(
            path,
            split="train",
            fold=config.fold,
            augment=Augmentation(seed=seed) if config.augment else None,
        )
        self.grid, self.statistics, self.classes = train.grid, train.statistics, train.classes
        self.training, self.samples = train if config.augment else Repeated(train), len(train)
        validation, test = (
            PanoramaDataset(path, split=part, fold=config.fold) for part in ("val", "test")
        )
        self.validation, self.validation_samples = validation, len(validation)
        self.test, self.test_samples = test, len(test)
        for part, count in (
            ("training", self.samples),
            ("validation", self.validation_samples),
            ("test", self.test_samples),
        ):
            if count == 0:
                raise ValueError(f"{path}: the {part} part is empty; make more samples")

    def on(self, shards: Shards) -> "PanoramaTask":
        part: PanoramaTask = self._moved(shards)
        return part

    def metadata(self) -> dict[str, Any]:
        return {
            "grid": self.grid.name,
            "classes": list(self.classes),
            "statistics": dataclasses.asdict(self.statistics),
        }

    def test_data(self) -> dict[str, Any]:
        source = (
            {"rooms": self.config.rooms}
            if self.config.data is None
            else {"data": str(self.config.data)}
        )
        return {
            **source,
            "grid": self.grid.name,
            "fold": self.config.fold,
            "statistics": dataclasses.asdict(self.statistics),
        }

    def example(self, model: Model) -> Example:
        batch = first_samples(self.test, 1)
        photograph = Image(self.grid, self.photographs(batch))
        return Example(lambda: model(batch["image"]), image=photograph)

    def photographs(self, batch: Any) -> NDArray[np.uint8]:
        """The images as they were before they were normalized."""
        mean, std = _rgb(self.statistics)
        images = (batch["image"] * std + mean).clamp(0, 1).permute(0, 2, 3, 1).numpy()
        return (images * 255).round().astype(np.uint8)

    def by_ring(self, values: Tensor) -> NDArray[np.float64]:
        """Mean over samples (samples, *shape) and each ring; where there is nothing, NaN: (1,
        rings).
        """
        flat, starts = values.flatten(1).numpy(), self.grid.ringstart
        present = np.add.reduceat(np.isfinite(flat), starts, axis=1).sum(0)
        total = np.add.reduceat(np.nan_to_num(flat), starts, axis=1).sum(0)
        return np.where(present > 0, total / np.maximum(present, 1), np.nan)[None]


@torch.no_grad()
def shown(models: Sequence[Trained]) -> list[tuple[Any, Tensor]]:
    """The first test samples of each model's own task, and what the model makes of them."""
    pairs = []
    for trained in models:
        task = trained.task
        batch = first_samples(task.test, min(SHOWN, task.test_samples))
        output = trained.model.eval()(to_device(batch, trained.device)["image"])
        pairs.append((batch, output.cpu()))
    return pairs


def room_globe(
    title: str,
    grid: Grid,
    rgb: NDArray[np.uint8],
    *,
    labels: Mapping[str, NDArray] | None = None,
    depth: Mapping[str, NDArray] | None = None,
    names: Sequence[str] = (),
) -> Globe:
    """Photographs (samples, nlat, nlon, 3) with what is known of each pixel, by source: `truth` and
    models. Labels are places in `data.CLASSES`, depth is in meters, NaN where there is none.
    """
    classes = tuple(zip(CLASSES, COLORS, strict=True))
    variables = []
    if labels:
        variables.append(Variable("label", grid, labels, classes=classes))
    if depth:
        truth = "truth" if "truth" in depth else None
        variables.append(Variable("depth", grid, depth, "m", truth))
    frames = Frames(tuple(names) or tuple(f"room {i + 1}" for i in range(len(rgb))), "room")
    return Globe(title, variables, frames, image=Image(grid, rgb), inside=True)


def _rgb(statistics: PanoramaStatistics) -> tuple[Tensor, ...]:
    return tuple(torch.tensor(v)[:, None, None] for v in (statistics.rgb_mean, statistics.rgb_std))


def _on_grid(rgb: NDArray[np.uint8], grid: Grid) -> NDArray[np.float64]:
    """Averages over the grid's cells, or between pixels where the image is smaller."""
    rows, columns = grid.shape
    if rgb.shape[0] >= rows and rgb.shape[1] >= columns:
        return shrink(rgb, (rows, columns))
    own = image_grid(*rgb.shape[:2])
    values = torch.tensor(rgb, dtype=torch.float64).permute(2, 0, 1)
    return ops.resample(values, own, grid).permute(1, 2, 0).numpy()
