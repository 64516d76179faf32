"""A run as a value: what is learned, by which model, how. It round-trips through JSON."""

import dataclasses
import json
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from spherule import checks
from spherule.files import read_json, write_json
from spherule.models import ModelConfig, upgrade_config
from spherule.train.task import TASKS, TaskConfig
from spherule.train.training_config import TrainingConfig

_OLD_TASKS = {
    "ShallowWaterTask": "shallow_water",
    "ForecastTask": "forecast",
    "SegmentationTask": "segmentation",
    "DepthTask": "depth",
}
"""What version 0.1.0 called them."""


@dataclass(frozen=True)
class RunConfig:
    """All of a run. The model's grid and channels are those of its task."""

    task: TaskConfig
    model: ModelConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)
    recipe: str = "custom"
    title: str = "custom"
    """What tables call it."""

    def __post_init__(self) -> None:
        checks.config(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; task and model are tagged with their names."""
        values = dataclasses.asdict(self)
        values["task"] = {"type": self.task.name, **values["task"]}
        values["model"] = {"type": type(self.model).__name__, **self.model.to_dict()}
        plain: dict[str, Any] = json.loads(json.dumps(values, default=str))
        return plain

    @classmethod
    def from_dict(cls, values: Any) -> "RunConfig":
        """The inverse; unknown and missing names are refused. Version 0.1.0's values are taken
        too.
        """
        values = _require_names("run", values, cls)
        model, fields = upgrade_config(values["model"])
        return cls(
            task=_task(values["task"]),
            model=model.from_dict(fields),
            training=_plain("training", values.get("training", {}), TrainingConfig),
            **{k: str(values[k]) for k in ("recipe", "title") if k in values},
        )

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        write_json(path, self.to_dict())

    @classmethod
    @checks.arguments
    def load(cls, path: Path) -> "RunConfig":
        """Read what `save` wrote."""
        values = read_json(path)
        try:
            return cls.from_dict(values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from error


def differences(old: RunConfig, new: RunConfig) -> dict[str, tuple[Any, Any]]:
    """Fields in which two runs differ, as `part.field`, with both values."""
    a, b = old.to_dict(), new.to_dict()
    changed = {}
    for part in ("task", "model", "training"):
        for name in a[part].keys() | b[part].keys():
            pair = a[part].get(name), b[part].get(name)
            if pair[0] != pair[1]:
                changed[f"{part}.{name}"] = pair
    return changed


def _task(values: Any) -> TaskConfig:
    kind = values.get("type") if isinstance(values, dict) else values
    kind = _OLD_TASKS.get(kind, kind) if isinstance(kind, str) else kind
    if not isinstance(kind, str) or kind not in TASKS:
        raise ValueError(
            f"task: type={kind!r}, expected one of {', '.join(TASKS)}; one from outside the "
            "package is known after --import FILE"
        )
    rest = {name: value for name, value in values.items() if name != "type"}
    config: TaskConfig = _plain("task", rest, TASKS[kind])
    return config


def _plain(part: str, values: Any, cls: Any) -> Any:
    """A dataclass of plain fields; lists stand for tuples, text for paths."""
    hints = typing.get_type_hints(cls)
    values = _require_names(part, values, cls)
    return cls(**{name: _revived(value, hints[name]) for name, value in values.items()})


def _revived(value: Any, hint: Any) -> Any:
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    choices = typing.get_args(hint) if union else (hint,)
    if isinstance(value, list):
        return tuple(value)
    return Path(value) if isinstance(value, str) and Path in choices else value


def _require_names(part: str, values: Any, cls: type) -> dict[str, Any]:
    fields = dataclasses.fields(cls)
    names = {f.name for f in fields}
    if not isinstance(values, dict):
        raise ValueError(f"{part}: expected an object, got {type(values).__name__}")
    if unknown := sorted(values.keys() - names, key=str):
        raise ValueError(
            f"{part} has no {', '.join(map(str, unknown))}; {cls.__name__} has "
            f"{', '.join(sorted(names))}"
        )
    needed = {
        f.name
        for f in fields
        if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    }
    if missing := sorted(needed - values.keys()):
        given = ", ".join(sorted(values)) or "nothing"
        raise ValueError(f"{part} needs {', '.join(missing)}, got {given}")
    return values
