"""Models on disk: weights in safetensors, the config as JSON beside them."""

import json
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import nn

WEIGHTS, CONFIG = "model.safetensors", "config.json"


def save(model: nn.Module, config: dict[str, Any], directory: Path) -> None:
    """Write both files."""
    directory.mkdir(parents=True, exist_ok=True)
    save_file({name: t.contiguous() for name, t in model.state_dict().items()}, directory / WEIGHTS)
    text = json.dumps({"model": type(model).__name__, "config": config}, indent=2)
    (directory / CONFIG).write_text(text + "\n")


def load(cls: Any, directory: Path) -> Any:
    """Build the model of the config, of this class and no other, and give it the weights."""
    described = read_config(directory / CONFIG)
    if described["model"] != cls.__name__:
        raise ValueError(
            f"{directory / CONFIG} describes a {described['model']}, not a {cls.__name__}: "
            f"use {described['model']}.from_pretrained"
        )
    model = cls.from_dict(described["config"])
    weights = directory / WEIGHTS
    if not weights.exists():
        raise FileNotFoundError(f"{weights} does not exist")
    try:
        tensors = load_file(weights)
    except (safetensors.SafetensorError, OSError) as error:
        raise ValueError(f"{weights} is damaged or not a safetensors file: {error}") from error
    expected = model.state_dict()
    for problem, names in (
        ("lacks", expected.keys() - tensors.keys()),
        ("has unexpected", tensors.keys() - expected.keys()),
    ):
        if names:
            raise ValueError(
                f"{weights} {problem} tensors for {cls.__name__}: {', '.join(sorted(names))}"
            )
    for name, tensor in tensors.items():
        if tensor.shape != expected[name].shape:
            raise ValueError(
                f"{weights}: {name} has shape {tuple(tensor.shape)}, the config asks for "
                f"{tuple(expected[name].shape)}"
            )
    model.load_state_dict(tensors)
    return model


def read_config(path: Path) -> dict[str, Any]:
    """The class and the config that stand in `config.json`."""
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist: not a model directory")
    try:
        described = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(described, dict) or {"model", "config"} - described.keys():
        raise ValueError(f"{path}: expected the keys model and config")
    return described
