"""The paper's tables: how each row is trained."""

from dataclasses import replace
from typing import Any, Literal

from spherule.models import (
    LinearConfig,
    SegformerConfig,
    TransformerConfig,
)
from spherule.recipes.rows import ROWS, Row, RowConfig, scaled
from spherule.tasks import DepthConfig, ForecastConfig, SegmentationConfig, ShallowWaterTaskConfig
from spherule.train import RunConfig, TrainingConfig


def shallow_water(row: Row, size: str) -> RunConfig:
    """3200 steps in epochs of 256 samples; Transformers predict the change, SegFormers the state.

    At half the resolution (`small`) waves cross as many cells in a lead, and are damped as much.
    """
    model = scaled(row.model, size)
    if isinstance(model, SegformerConfig):
        model = replace(model, drop_path=0.1)
    else:
        model = replace(model, skip="identity")
    task, training = _water(size)
    return RunConfig(task, model, training)


def _water(size: str) -> tuple[ShallowWaterTaskConfig, TrainingConfig]:
    task = ShallowWaterTaskConfig(damping_time=7200.0)
    training = TrainingConfig(epochs=50, batch=4, learning_rate=1e-3, schedule="plateau")
    if size == "small":
        task = replace(task, grid="gauss:64x128", lead=7200.0, step=300.0, damping_time=14400.0)
    elif size == "tiny":
        task = replace(task, grid="gauss:32x64", damping_time=None)
        task = replace(task, samples=128, validation_samples=16, test_samples=16)
        training = replace(training, epochs=20, batch=8, learning_rate=3e-3, schedule="cosine")
    return task, training


def linear_water(size: str, reach: int | None = None) -> RunConfig:
    """Fitted to 64 samples, not trained."""
    task, training = _water(size)
    lmax: int = task.data.resolved()["lmax"]
    return RunConfig(task, LinearConfig(lmax, reach), replace(training, epochs=0))


def zonal_linear_water(size: str) -> RunConfig:
    """Fitted to 504 samples, for each order on its own: near the solver without what is
    quadratic in it.
    """
    return linear_water(size, reach=3)


def spectral_water(size: str, skip: Literal["spectral", "zonal"] = "spectral") -> RunConfig:
    """As many steps as the paper's. The network adds to a linear map, and the output has the data's
    truncation and means.
    """
    task, training = _water(size)
    lmax: int = task.data.resolved()["lmax"]
    model = TransformerConfig(skip=skip, skip_lmax=lmax, bandlimit=lmax, keep_mean=True)
    training = replace(
        training, batch=4, learning_rate=2e-3, schedule="cosine", clip=1.0, ema=0.995
    )
    return RunConfig(task, scaled(model, size), training)


def zonal_water(size: str) -> RunConfig:
    """The same, where the linear map knows that the sphere rotates."""
    return spectral_water(size, skip="zonal")


def stable_water(size: str) -> RunConfig:
    """The same, so that the forecast can follow itself: inputs are of every age to ten days with
    noise on them, and in the last third samples are followed for up to eight leads.
    """
    task, _ = _water(size)
    unroll = (0.4, 0.3, 0.2, 0.1)
    task = replace(task, ages=10.0, noise=0.05, unroll=unroll, unroll_from=2 / 3)
    return replace(spectral_water(size), task=task)


def segmentation(row: Row, size: str) -> RunConfig:
    """200 epochs of AdamW with a cosine."""
    model = _regularized(row.model, size)
    training = TrainingConfig(
        epochs=200,
        batch=8,
        optimizer="adamw",
        learning_rate=0.5e-4,
        weight_decay=0.1,
        schedule="cosine",
    )
    task = SegmentationConfig(size=row.size, augment=False)
    if size != "paper":
        task = replace(task, **_rooms(size))
        training = replace(training, epochs=_EPOCHS[size], learning_rate=1e-3)
    return RunConfig(task, model, training)


def depth(row: Row, size: str) -> RunConfig:
    """100 epochs of AdamW, the rate falling on a plateau."""
    model = _regularized(row.model, size)
    training = TrainingConfig(
        epochs=100,
        batch=8,
        optimizer="adamw",
        learning_rate=1e-3,
        weight_decay=0.01,
        schedule="plateau",
    )
    if not isinstance(model, SegformerConfig):
        model = replace(model, drop_path=0.0)
    task = DepthConfig(augment=False)
    if size != "paper":
        task = replace(task, **_rooms(size))
        training = replace(training, epochs=_EPOCHS[size], schedule="cosine")
    return RunConfig(task, model, training)


def forecast(row: Row, size: str) -> RunConfig:
    """A user's own data, the model predicting the change."""
    model = replace(scaled(row.model, size), skip="identity")
    epochs = {"paper": 50, "small": 25, "tiny": 10}[size]
    training = TrainingConfig(
        epochs=epochs, batch=4, learning_rate=1e-3, schedule="cosine", clip=1.0
    )
    return RunConfig(ForecastConfig(), model, training)


def linear_forecast(size: str) -> RunConfig:
    """Fitted to up to 64 times, not trained."""
    return RunConfig(ForecastConfig(), LinearConfig(), TrainingConfig(epochs=0))


def spectral_forecast(size: str) -> RunConfig:
    """The network adds to what is linear in the change."""
    run = forecast(ROWS["s2-transformer-local"], size)
    return replace(run, model=scaled(TransformerConfig(skip="spectral"), size))


_EPOCHS = {"small": 30, "tiny": 20}


def _rooms(size: str) -> dict[str, Any]:
    """Rooms that are rendered for the run, whole areas held out."""
    return {
        "rooms": {"small": 400, "tiny": 120}[size],
        "size": {"small": "64x128", "tiny": "32x64"}[size],
        "fold": "1",
        "augment": True,
    }


def _regularized(model: RowConfig, size: str) -> RowConfig:
    """Drop path in all models, and in SegFormers dropout, as the paper's text has it."""
    model = scaled(model, size)
    dropout = 0.5 if isinstance(model, SegformerConfig) and size == "paper" else 0.0
    return replace(model, drop_path=0.1, dropout=dropout)
