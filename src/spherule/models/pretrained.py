"""Models on disk: weights in safetensors, and what they are the weights of as JSON beside them."""

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import nn

from spherule.grids.serial import grid_from_json, grid_to_json
from spherule.models.upgrade import upgrade_description

if TYPE_CHECKING:
    from spherule.models.base import AnyModel, Model

WEIGHTS, CONFIG = "model.safetensors", "config.json"
_KEYS = ("model", "grid", "in_channels", "out_channels", "config")


def save(model: "Model", directory: Path) -> None:
    """Write both files."""
    directory.mkdir(parents=True, exist_ok=True)
    description = {
        "model": type(model).__name__,
        "grid": grid_to_json(model.grid),
        "in_channels": model.in_channels,
        "out_channels": model.out_channels,
        "config": model.config.to_dict(),
    }
    (directory / CONFIG).write_text(json.dumps(description, indent=2) + "\n")
    tensors = {name: t.contiguous() for name, t in model.state_dict().items()}
    save_file(tensors, directory / WEIGHTS)
    # Whoever may read the one may read the other: safetensors' own files are for their owner alone.
    shutil.copymode(directory / CONFIG, directory / WEIGHTS)


def load(cls: "type[AnyModel]", directory: Path) -> "AnyModel":
    """Build what is described, a model of this class, and give it the weights."""
    from spherule.models.base import MODELS

    path = directory / CONFIG
    description = _read(path)
    name = description["model"]
    known = MODELS.get(name) if isinstance(name, str) else None
    if known is None:
        raise ValueError(f"{path} describes a {name!r}; known are {', '.join(MODELS)}")
    if not issubclass(known, cls):
        raise ValueError(
            f"{path} describes a {name}, not a {cls.__name__}: use {name}.from_pretrained"
        )
    try:
        model = known(
            known.Config.from_dict(description["config"]),
            grid_from_json(description["grid"]),
            description["in_channels"],
            description["out_channels"],
        )
    except (TypeError, ValueError, RuntimeError, MemoryError) as error:  # no room for its sizes
        raise ValueError(f"{path}: {error}") from error
    _load_weights(model, directory / WEIGHTS)
    return model


def _load_weights(model: nn.Module, path: Path) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    try:
        tensors = load_file(path)
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{path} is damaged or not a safetensors file: {error}") from error
    expected = model.state_dict()
    for problem, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("has unexpected", tensors.keys() - expected.keys()),
    ):
        if names:
            raise ValueError(
                f"{path} {problem} tensors for {type(model).__name__}: {', '.join(sorted(names))}"
            )
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"{path}: {name} has shape {tuple(tensor.shape)}, the config asks for "
                f"{tuple(expected[name].shape)}"
            )
        if not tensor.dtype.is_floating_point or not tensor.isfinite().all():
            raise ValueError(f"{path}: {name} has values that are no finite real numbers")
    model.load_state_dict(tensors)


def _read(path: Path) -> dict[str, Any]:
    """What stands in `config.json`, in today's words."""
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: not a model directory")
    try:
        description = json.loads(path.read_text())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(description, dict):
        raise ValueError(f"{path}: expected the keys {', '.join(_KEYS)}")
    description = upgrade_description(description)
    if missing := [key for key in _KEYS if key not in description]:
        raise ValueError(f"{path}: expected the keys {', '.join(_KEYS)}; {missing[0]} is missing")
    return description
