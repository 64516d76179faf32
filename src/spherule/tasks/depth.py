"""Depth: how far away what is seen is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from spherule import checks, objectives
from spherule.data import depth_mask
from spherule.data.images import nearest
from spherule.data.panoramas import PanoramaStatistics
from spherule.data.stanford import NO_DEPTH, UNITS_PER_METRE
from spherule.distributed import Shards, summed
from spherule.optional import require
from spherule.tasks.panoramas import (
    EXAMPLES,
    LOOK_AROUND,
    PanoramaConfig,
    PanoramaTask,
    room_globe,
    shown,
)
from spherule.train.figures import ByLatitude, ColorScale, ImageColumn, Images, RingCurve, Section
from spherule.train.scene import Globe
from spherule.train.task import Log, Trained

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.PngImagePlugin import PngInfo


@dataclass(frozen=True)
class DepthConfig(PanoramaConfig, task="depth", title="Depth of panoramas"):
    """How far away what is seen is."""

    sobolev_weight: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("sobolev_weight", self.sobolev_weight, low=0)

    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Log = print,
    ) -> "DepthTask":
        return DepthTask(self, seed, directory, log)

    def picture(
        self, output: Tensor, size: tuple[int, int], metadata: dict[str, Any], info: "PngInfo"
    ) -> "Image":
        """16 bits in steps of 1/512 m."""
        Image = require("PIL.Image", "an image")
        statistics = PanoramaStatistics.from_json(metadata["statistics"])
        meters = (output[0] * statistics.depth_std + statistics.depth_mean).clamp_min(0)
        units = (meters * UNITS_PER_METRE).round().clamp_max(NO_DEPTH - 1)
        info.add_text("unit", f"1/{UNITS_PER_METRE} m")
        return Image.fromarray(nearest(units.numpy().astype(np.uint16), size))


class DepthTask(PanoramaTask):
    """Depth in deviations from the mean, where it is known and away from the poles."""

    out_channels = 1
    columns: ClassVar[dict[str, str]] = {
        "loss": "loss ↓",
        "l1": "L₁ error ↓",
        "sobolev": "W¹·¹ error ↓",
    }

    def __init__(self, config: DepthConfig, seed: int, directory: Path | None, log: Log) -> None:
        super().__init__(config, seed, directory, log)
        self.sobolev_weight, self._mask = config.sobolev_weight, depth_mask(self.grid)

    def on(self, shards: Shards) -> "DepthTask":
        part: DepthTask = self._moved(shards)
        part._mask = shards.scatter(self._mask)
        return part

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

    def valid(self, batch: Any) -> Tensor:
        known = self.target(batch)[1].flatten(1).sum(1)
        return summed(known, self.grid) > 0

    def target(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Standardized depth (batch, 1, *shape), and where it counts."""
        depth = (batch["depth"] - self.statistics.depth_mean) / self.statistics.depth_std
        return depth[:, None], batch["valid"] & self._mask.to(depth.device)

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        """Examples, error by latitude."""
        columns: list[ImageColumn] = []
        errors: list[ImageColumn] = []
        curves = []
        deepest, worst = 0.0, 0.0
        rooms: list[Globe] = []
        before = None
        for trained, (batch, output) in zip(models, shown(models), strict=True):
            task = trained.task
            truth = batch["depth"].masked_fill(~batch["valid"], torch.nan)
            meters = output[:, 0] * task.statistics.depth_std + task.statistics.depth_mean
            error = (meters - truth).masked_fill(~task.target(batch)[1], torch.nan)
            deepest = max(deepest, float(np.nanquantile(truth.numpy(), 0.99)))
            worst = max(worst, float(np.nanquantile(error.abs().numpy(), 0.99)))
            if task.test_data() != before:
                before = task.test_data()
                columns += [ImageColumn("image", task.photographs(batch)[:EXAMPLES])]
                columns += [ImageColumn("truth (m)", truth[:EXAMPLES].numpy(), "depth")]
            title = trained.title
            depths = {"truth": truth.numpy(), title: meters.numpy()}
            rooms += [room_globe(title, task.grid, task.photographs(batch), depth=depths)]
            columns += [ImageColumn(f"{title} (m)", meters[:EXAMPLES].numpy(), "depth")]
            errors += [ImageColumn(f"error of\n{title} (m)", error[:EXAMPLES].numpy(), "error")]
            curves.append(RingCurve(title, task.grid, task.by_ring(error.abs().double())))
        scales = {
            "depth": ColorScale(0, deepest, "viridis_r", "depth (m)"),
            "error": ColorScale(-(worst or 1), worst or 1, "PuOr_r", "error (m)"),
        }
        return [
            Section(
                "Examples",
                "Panoramas that no model has seen. Where there is no depth, or the poles are left "
                "out, errors are blank.",
                [Images(columns + errors, scales)],
            ),
            Section("Inside", LOOK_AROUND, rooms),
            Section(
                "Error by latitude",
                f"Mean absolute error along each ring, over {len(truth)} test samples.",
                [ByLatitude(["depth"], curves, "error (m)")],
            ),
        ]
