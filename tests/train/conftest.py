"""A run small enough to be repeated many times."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spherule.models import SphericalTransformerConfig
from spherule.train import RunConfig, ShallowWaterTask, Training, train
from spherule.train.journal import read_journal

TINY = RunConfig(
    task=ShallowWaterTask(grid="gauss:12x24", samples=12, validation_samples=4, step=300.0),
    model=SphericalTransformerConfig(width=8, depth=1, residual=True, drop_path=0.2, dropout=0.1),
    training=Training(epochs=3, batch=4, learning_rate=3e-3, save_every=2),
    recipe="swe/test",
)


def tiny(**training: object) -> RunConfig:
    return replace(TINY, training=replace(TINY.training, **training))


def losses(directory: Path) -> list[tuple[int, float]]:
    """Steps and their losses, to the last bit."""
    return [(r["step"], r["loss"]) for r in read_journal(directory) if "loss" in r]


def validations(directory: Path) -> list[float]:
    return [r["validation"]["loss"]["mean"] for r in read_journal(directory) if "validation" in r]


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    torch.set_num_threads(1)  # before the fixture that does it for tests
    directory = tmp_path_factory.mktemp("finished") / "run"
    return train(tiny(), directory, say=lambda text: None)
