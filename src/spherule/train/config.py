"""A run as a value: what is learned, by which model, how. It round-trips through JSON."""

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from spherule.models import (
    PlanarSegformerConfig,
    PlanarTransformerConfig,
    SphericalSegformerConfig,
    SphericalTransformerConfig,
    VisionTransformerConfig,
)
from spherule.train.fields import ForecastTask, ShallowWaterTask
from spherule.train.panoramas import DepthTask, SegmentationTask

AnyTask = ShallowWaterTask | SegmentationTask | DepthTask | ForecastTask
AnyModelConfig = (
    SphericalTransformerConfig
    | PlanarTransformerConfig
    | SphericalSegformerConfig
    | PlanarSegformerConfig
    | VisionTransformerConfig
)
OF_THE_TASK = ("grid", "in_channels", "out_channels")
"""Fields of a model that its task decides."""


@dataclass(frozen=True)
class Training:
    """How a model is trained."""

    epochs: int = 50
    """Passes over the data, or over `--samples` of an endless source; each ends in validation."""
    batch: int = 4
    """Samples of an optimiser step, over all processes and all parts of an accumulated step."""
    accumulate: int = 1
    """Parts in which a batch goes through the model, to save memory."""
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "plateau", "cosine"] = "plateau"
    """Plateau: a tenth of the rate after `patience` epochs in which validation is no better."""
    patience: int = 10
    warmup: int = 0
    """Steps in which the learning rate rises from 0."""
    clip: float | None = None
    """The largest norm of the gradient; longer ones are scaled down."""
    ema: float = 0.0
    """Decay of the weights' moving average, such as 0.999; where it is not 0, the average is what
    is validated and kept."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: autocast; weights stay float32."""
    seed: int = 0
    workers: int = 0
    """Processes of each rank that load data."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""
    save_every: int = 0
    """Steps between checkpoints within an epoch; 0: only at its end."""

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)} must be at least 1")
        for name in ("warmup", "workers", "save_every", "seed", "patience", "weight_decay"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name}={getattr(self, name)} must be >= 0")
        if not self.learning_rate > 0:
            raise ValueError(f"learning_rate={self.learning_rate} must be positive")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip={self.clip} must be positive")
        if not 0 <= self.ema < 1:
            raise ValueError(f"ema={self.ema} must be in [0, 1), such as 0.999")
        if self.batch % self.accumulate:
            raise ValueError(
                f"batch={self.batch} must be a multiple of accumulate={self.accumulate}"
            )


@dataclass(frozen=True)
class RunConfig:
    """All of a run. The model's grid and channels are those of the task, filled in when it
    starts.
    """

    task: AnyTask
    model: AnyModelConfig
    training: Training = field(default_factory=Training)
    recipe: str = "custom"
    title: str = "custom"
    """What tables call it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values; task and model are tagged with their class."""
        values = dataclasses.asdict(self)
        for part in ("task", "model"):
            values[part] = {"type": type(getattr(self, part)).__name__, **values[part]}
        plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return plain

    @classmethod
    def from_dict(cls, values: Any) -> "RunConfig":
        """The inverse; unknown and missing names are refused."""
        values = _require_names("run", values, cls)
        return cls(
            task=_tagged("task", values["task"], typing.get_args(AnyTask)),
            model=_tagged("model", values["model"], typing.get_args(AnyModelConfig)),
            training=_plain("training", values.get("training", {}), Training),
            **{k: str(values[k]) for k in ("recipe", "title") if k in values},
        )

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: Path) -> "RunConfig":
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        try:
            values = json.loads(path.read_text())
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is not valid JSON: {error}") from error
        try:
            return cls.from_dict(values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Fields in which two runs differ, as `part.field`, with both values."""
    a, b = old.to_dict(), new.to_dict()
    found = {}
    for part in ("task", "model", "training"):
        for name in a[part].keys() | b[part].keys():
            pair = a[part].get(name), b[part].get(name)
            if pair[0] != pair[1]:
                found[f"{part}.{name}"] = pair
    return found


def _tagged(part: str, values: Any, classes: tuple[type, ...]) -> Any:
    by_name = {c.__name__: c for c in classes}
    if not isinstance(values, dict) or values.get("type") not in by_name:
        kind = values.get("type") if isinstance(values, dict) else values
        raise ValueError(f"{part}: type={kind!r}, expected one of {', '.join(by_name)}")
    rest = {k: v for k, v in values.items() if k != "type"}
    return _plain(part, rest, by_name[values["type"]])


def _plain(part: str, values: Any, cls: Any) -> Any:
    """A dataclass of plain fields; lists stand for tuples, text for paths."""
    hints = typing.get_type_hints(cls)
    values = _require_names(part, values, cls)
    return cls(**{name: _revived(value, hints[name]) for name, value in values.items()})


def _revived(value: Any, hint: Any) -> Any:
    choices = (
        typing.get_args(hint)
        if typing.get_origin(hint) in (typing.Union, types.UnionType)
        else (hint,)
    )
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if isinstance(value, str) and Path in choices else value


def _require_names(part: str, values: Any, cls: type) -> dict[str, Any]:
    fields = dataclasses.fields(cls)
    names = {f.name for f in fields}
    if not isinstance(values, dict):
        raise ValueError(f"{part}: expected an object, got {type(values).__name__}")
    if unknown := sorted(values.keys() - names):
        raise ValueError(
            f"{part} has no {', '.join(unknown)}; {cls.__name__} has {', '.join(sorted(names))}"
        )
    needed = {
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    if missing := sorted(needed - values.keys()):
        raise ValueError(f"{part} lacks {', '.join(missing)}")
    return values
