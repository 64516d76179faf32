"""A run small enough to be repeated many times."""

from dataclasses import replace
from pathlib import Path

from spherule.models import TransformerConfig
from spherule.runs import RunDirectory
from spherule.tasks import ShallowWaterTaskConfig
from spherule.train import RunConfig, TrainingConfig

TINY = RunConfig(
    task=ShallowWaterTaskConfig(
        grid="gauss:12x24", samples=12, validation_samples=4, test_samples=4, step=300.0
    ),
    model=TransformerConfig(width=8, depth=1, skip="identity", drop_path=0.2, dropout=0.1),
    training=TrainingConfig(epochs=3, batch=4, learning_rate=3e-3, save_every=2),
    recipe="swe/test",
)


def tiny(**training: object) -> RunConfig:
    return replace(TINY, training=replace(TINY.training, **training))


def losses(directory: Path) -> list[tuple[int, float]]:
    """Steps and their losses, to the last bit."""
    return [(r["step"], r["loss"]) for r in RunDirectory(directory).records() if "loss" in r]


def validations(directory: Path) -> list[float]:
    records = RunDirectory(directory).records()
    return [r["validation"]["loss"]["mean"] for r in records if "validation" in r]


def silent(text: str) -> None:
    pass
