"""A task of your own, outside the package: which of three spectra a random field was drawn from.

    spherule --import examples/own_task.py train own/spectrum --out runs/own
    spherule --import examples/own_task.py report runs/own

One file is all: a config (its fields are the flags), the task with its data, loss and metrics, and
a recipe.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import Dataset

from spherule import Grid, ops, recipes
from spherule.models import TransformerConfig
from spherule.train import RunConfig, Task, TaskConfig, Trained, TrainingConfig
from spherule.train.batches import first_samples
from spherule.train.figures import Bars, Section

LENGTHS = (0.15, 0.3, 0.6)
"""Correlation lengths in radians: the classes."""


class SpectrumFields(Dataset[tuple[Tensor, int]]):
    """Random fields and their class; sample i of a seed is always the same."""

    def __init__(self, grid: Grid, seed: int) -> None:
        self.grid, self.seed = grid, seed
        self.spectra = [ops.matern_spectrum(grid.lmax, length=length) for length in LENGTHS]

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        kind = index % len(LENGTHS)
        seed = int(np.random.SeedSequence((self.seed, index)).generate_state(1)[0])
        generator = torch.Generator().manual_seed(seed)
        field = ops.random_field(self.spectra[kind], self.grid, (1,), generator=generator)
        return field.float(), kind


@dataclass(frozen=True)
class SpectrumConfig(TaskConfig, task="spectrum", title="Spectra of random fields"):
    """Which of three spectra a random field was drawn from."""

    grid: str = "gauss:16x32"
    """Name of the grid."""
    samples: int = 48
    """Of an epoch."""

    def open(
        self,
        seed: int,
        directory: Path | None = None,
        *,
        metadata: dict[str, Any] | None = None,
        log: Any = print,
    ) -> "SpectrumTask":
        return SpectrumTask(self, seed)


class SpectrumTask(Task):
    """The model's channels, averaged over the sphere, are the logits."""

    endless = True
    in_channels, out_channels = 1, len(LENGTHS)
    columns = {"loss": "loss ↓", "accuracy": "accuracy ↑"}  # noqa: RUF012

    def __init__(self, config: SpectrumConfig, seed: int) -> None:
        self.grid, self.samples = Grid.from_name(config.grid), config.samples
        self.training = SpectrumFields(self.grid, seed)
        self.validation, self.test = (SpectrumFields(self.grid, s) for s in (2**31 - 1, 2**31 - 2))
        self.validation_samples = self.test_samples = 24

    def logits(self, model: nn.Module, fields: Tensor) -> Tensor:
        return ops.integrate(model(fields), self.grid) / (4 * np.pi)

    def loss(self, model: nn.Module, batch: Any) -> Tensor:
        fields, kind = batch
        return F.cross_entropy(self.logits(model, fields), kind, reduction="none")

    def metrics(self, model: nn.Module, batch: Any) -> dict[str, Tensor]:
        fields, kind = batch
        hit = self.logits(model, fields).argmax(1) == kind
        return {"loss": self.loss(model, batch), "accuracy": hit.float()}

    def metadata(self) -> dict[str, Any]:
        return {"grid": self.grid.name, "lengths": list(LENGTHS)}

    def test_data(self) -> dict[str, Any]:
        return {"lengths": list(LENGTHS)}

    def sections(self, models: Sequence[Trained]) -> list[Section]:
        shares = {}
        for trained in models:
            fields, kind = first_samples(trained.task.test, trained.task.test_samples)
            with torch.no_grad():
                hit = self.logits(trained.model.cpu().eval(), fields).argmax(1) == kind
            shares[trained.title] = np.array([hit[kind == k].float().mean() for k in range(3)])
        names = [f"length {length}" for length in LENGTHS]
        text = "Share of the test fields whose spectrum was recognized."
        return [Section("Classes", text, [Bars(names, shares, "share")])]


def spectrum_run(size: str) -> RunConfig:
    """The same at every size."""
    model = TransformerConfig(width=16, depth=1)
    return RunConfig(SpectrumConfig(), model, TrainingConfig(epochs=8, learning_rate=1e-2))


recipes.add(recipes.Recipe("own/spectrum", "Which spectrum?", spectrum_run))
