"""What a panorama shows, and how far away it is: segmentation and depth."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor, nn

from spherule import objectives
from spherule.data import Augmentation, PanoramaDataset, depth_mask, write_panoramas
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford import FOLDS
from spherule.train.problem import Problem, Repeated, Say


@dataclass(frozen=True)
class PanoramaTask:
    """Where panoramas come from: a store, or rooms that are rendered into the run's directory."""

    data: Path | None = None
    """A store that `spherule data stanford` or `spherule data rooms` wrote."""
    fold: str | None = None
    """Split by area, holding one out, instead of at random."""
    rooms: int = 0
    """Without --data: how many procedural rooms to render."""
    size: str = "128x256"
    """Of rendered rooms."""
    augment: bool = True
    """Longitude rolls, mirror images and colour jitter in training."""

    def store(self, directory: Path | None, say: Say) -> Path:
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
        path = directory / f"rooms-{self.rooms}-{self.size}.zarr"
        if not path.exists():
            say(f"rendering {self.rooms} rooms of {self.size} into {path}")
            rooms = Rooms(RoomsConfig(size=self.size), samples=self.rooms)
            made = {"rooms": self.rooms, **dataclasses.asdict(rooms.config)}
            for _ in write_panoramas(
                path, rooms, size=rooms.config.shape, config=made, folds=FOLDS, workers=2
            ):
                pass
        return path


class PanoramaProblem(Problem):
    """Batches are dictionaries of image, label, depth and valid."""

    in_channels = 3

    def __init__(
        self, task: PanoramaTask, seed: int, directory: Path | None, say: Say = print
    ) -> None:
        path = task.store(directory, say)
        train = PanoramaDataset(
            path,
            split="train",
            fold=task.fold,
            augment=Augmentation(seed=seed) if task.augment else None,
        )
        self.grid, self.statistics, self.classes = train.grid, train.statistics, train.classes
        self.training, self.samples = train if task.augment else Repeated(train), len(train)
        validation, test = (
            PanoramaDataset(path, split=part, fold=task.fold) for part in ("val", "test")
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

    def describe(self) -> dict[str, Any]:
        return {
            "grid": self.grid.name,
            "classes": list(self.classes),
            "statistics": dataclasses.asdict(self.statistics),
        }


@dataclass(frozen=True)
class SegmentationTask(PanoramaTask):
    """Which of the classes each direction shows."""

    label_smoothing: float = 0.0

    def open(
        self, seed: int, directory: Path | None = None, say: Say = print
    ) -> "SegmentationProblem":
        return SegmentationProblem(self, seed, directory, say)


class SegmentationProblem(PanoramaProblem):
    """Cross entropy, and the paper's metrics beside those that others quote."""

    columns: ClassVar[dict[str, str]] = {
        "loss": "loss ↓",
        "iou": "IoU ↑",
        "accuracy": "Acc ↑",
        "pixel_accuracy": "pixel accuracy ↑",
        "macro_iou": "macro IoU ↑",
    }

    def __init__(
        self, task: SegmentationTask, seed: int, directory: Path | None, say: Say = print
    ) -> None:
        super().__init__(task, seed, directory, say)
        self.out_channels = len(self.classes)
        self.label_smoothing = task.label_smoothing

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return objectives.cross_entropy(
            model(batch["image"]).float(),
            batch["label"],
            self.grid,
            label_smoothing=self.label_smoothing,
        )

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        logits = model(batch["image"]).float()
        matrix = objectives.confusion(logits, batch["label"], len(self.classes), self.grid)
        return {
            "loss": objectives.cross_entropy(logits, batch["label"], self.grid),
            "iou": objectives.iou_micro(matrix),
            "accuracy": objectives.accuracy(matrix),
            "pixel_accuracy": objectives.pixel_accuracy(matrix),
            "macro_iou": objectives.iou_macro(matrix),
        }


@dataclass(frozen=True)
class DepthTask(PanoramaTask):
    """How far away what is seen is."""

    sobolev_weight: float = 0.1

    def open(self, seed: int, directory: Path | None = None, say: Say = print) -> "DepthProblem":
        return DepthProblem(self, seed, directory, say)


class DepthProblem(PanoramaProblem):
    """Depth in deviations from the mean, where it is known and away from the poles."""

    out_channels = 1
    columns: ClassVar[dict[str, str]] = {
        "loss": "loss ↓",
        "l1": "L₁ error ↓",
        "sobolev": "W¹·¹ error ↓",
    }

    def __init__(
        self, task: DepthTask, seed: int, directory: Path | None, say: Say = print
    ) -> None:
        super().__init__(task, seed, directory, say)
        self.sobolev_weight, self._mask = task.sobolev_weight, depth_mask(self.grid)

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        target, mask = self.target(batch)
        return objectives.depth_loss(
            model(batch["image"]).float(),
            target,
            self.grid,
            mask=mask,
            sobolev_weight=self.sobolev_weight,
        )

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        target, mask = self.target(batch)
        prediction = model(batch["image"]).float()
        l1 = objectives.l1(prediction, target, self.grid, mask=mask)
        sobolev = objectives.sobolev(prediction, target, self.grid, mask=mask)
        return {"loss": l1 + self.sobolev_weight * sobolev, "l1": l1, "sobolev": sobolev}

    def counted(self, batch: Any) -> Tensor:
        return self.target(batch)[1].flatten(1).any(1)

    def target(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Standardised depth (batch, 1, *shape), and where it counts."""
        depth = (batch["depth"] - self.statistics.depth_mean) / self.statistics.depth_std
        return depth[:, None], batch["valid"] & self._mask.to(depth.device)
