"""Segmentation: which of the classes each direction shows."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from spherule import checks, objectives
from spherule.data.images import nearest
from spherule.data.panoramas import COLORS
from spherule.optional import require
from spherule.tasks.panoramas import (
    EXAMPLES,
    LOOK_AROUND,
    PanoramaConfig,
    PanoramaTask,
    room_globe,
    shown,
)
from spherule.train.figures import Bars, ByLatitude, ImageColumn, Images, RingCurve, Section
from spherule.train.scene import Globe
from spherule.train.task import Log, Trained

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngInfo


@dataclass(frozen=True)
class SegmentationConfig(PanoramaConfig, task="segmentation", title="Segmentation of panoramas"):
    """Which of the classes each direction shows."""

    label_smoothing: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("label_smoothing", self.label_smoothing, low=0, below=1)

    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Log = print,
    ) -> "SegmentationTask":
        return SegmentationTask(self, seed, directory, log)

    def picture(
        self, output: Tensor, size: tuple[int, int], metadata: dict[str, Any], info: "PngInfo"
    ) -> "Image":
        """A picture of classes, whose names are inside."""
        Image = require("PIL.Image", "an image")
        labels = nearest(output.argmax(0).to(torch.uint8).numpy(), size)
        picture = Image.fromarray(labels, mode="P")
        picture.putpalette([value for color in COLORS for value in color])
        info.add_text("classes", json.dumps(metadata["classes"]))
        return picture


class SegmentationTask(PanoramaTask):
    """Cross entropy, and the paper's metrics beside those that others quote."""

    columns: ClassVar[dict[str, str]] = {
        "loss": "loss ↓",
        "iou": "IoU ↑",
        "accuracy": "Acc ↑",
        "pixel_accuracy": "pixel accuracy ↑",
        "macro_iou": "macro IoU ↑",
    }

    def __init__(
        self, config: SegmentationConfig, seed: int, directory: Path | None, log: Log
    ) -> None:
        super().__init__(config, seed, directory, log)
        self.out_channels = len(self.classes)
        self.label_smoothing = config.label_smoothing

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        return objectives.cross_entropy(
            model(batch["image"]).float(),
            batch["label"],
            self.grid,
            label_smoothing=self.label_smoothing,
        )

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        logits = model(batch["image"]).float()
        matrix = self._confusion(logits.argmax(1), batch["label"])
        return {
            "loss": objectives.cross_entropy(logits, batch["label"], self.grid),
            "iou": objectives.iou_micro(matrix),
            "accuracy": objectives.accuracy(matrix),
            "pixel_accuracy": objectives.pixel_accuracy(matrix),
            "macro_iou": objectives.iou_macro(matrix),
        }

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        """Examples, error by latitude, classes."""
        colors = np.array(COLORS, dtype=np.uint8)
        examples: list[ImageColumn] = []
        curves, matrices = [], {}
        rooms: list[Globe] = []
        before = None
        for trained, (batch, output) in zip(models, shown(models), strict=True):
            task, label, found = trained.task, batch["label"], output.argmax(1)
            if task.test_data() != before:
                before = task.test_data()
                examples += [ImageColumn("image", task.photographs(batch)[:EXAMPLES])]
                examples += [ImageColumn("truth", colors[label[:EXAMPLES].numpy()])]
            examples += [ImageColumn(trained.title, colors[found[:EXAMPLES].numpy()])]
            labels = {"truth": label.numpy(), trained.title: found.numpy()}
            rooms += [room_globe(trained.title, task.grid, task.photographs(batch), labels=labels)]
            wrong = task.by_ring((found != label).double())
            curves.append(RingCurve(trained.title, task.grid, wrong))
            matrices[trained.title] = task._confusion(found, label).sum(0)
        present = next(iter(matrices.values())).sum(1).nonzero()[:, 0]
        return [
            Section(
                "Examples",
                "Panoramas that no model has seen, as latitude and longitude.",
                [Images(examples, {}, list(zip(self.classes, COLORS, strict=True)))],
            ),
            Section("Inside", LOOK_AROUND, rooms),
            Section(
                "Error by latitude",
                f"Share of each ring that is labeled wrongly, over {len(label)} test samples.",
                [ByLatitude(["wrong labels"], curves, "share of the ring")],
            ),
            Section(
                "Classes",
                "Intersection over union of each class, by area.",
                [
                    Bars(
                        [self.classes[int(c)] for c in present],
                        {
                            title: objectives.class_iou(matrix)[present].numpy()
                            for title, matrix in matrices.items()
                        },
                        "IoU",
                    )
                ],
            ),
        ]

    def _confusion(self, found: Tensor, label: Tensor) -> Tensor:
        return objectives.confusion(found, label, len(self.classes), self.grid)
