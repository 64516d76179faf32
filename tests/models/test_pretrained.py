import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from spherule import models
from tests.models.test_models import MODELS, small


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = small(name).eval()
    model.save_pretrained(tmp_path / "m")
    again = type(model).from_pretrained(tmp_path / "m").eval()
    assert again.config == model.config
    x = torch.randn(1, 2, 12, 24)
    assert torch.equal(again(x), model(x))


def test_only_parameters_are_stored(tmp_path: Path) -> None:
    model = small("spherical segformer, local")
    model.save_pretrained(tmp_path)
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert stored.keys() == dict(model.named_parameters()).keys()
    assert json.loads((tmp_path / "config.json").read_text())["config"]["grid"] == "gauss:12x24"


def spoil(directory: Path, how: str) -> None:
    weights, config = directory / "model.safetensors", directory / "config.json"
    tensors = safetensors.torch.load_file(weights)
    name = sorted(tensors)[0]
    if how == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "not a file of tensors":
        weights.write_bytes(b"hello")
    elif how == "missing":
        del tensors[name]
        safetensors.torch.save_file(tensors, weights)
    elif how == "unexpected":
        safetensors.torch.save_file(tensors | {"more": torch.zeros(1)}, weights)
    elif how == "shape":
        safetensors.torch.save_file(tensors | {name: torch.zeros(1)}, weights)
    elif how == "no weights":
        weights.unlink()
    elif how == "no config":
        config.unlink()
    elif how == "config":
        config.write_text(config.read_text()[:-5])
    elif how == "keys":
        config.write_text("{}")
    elif how == "unknown":
        described = json.loads(config.read_text())
        described["config"]["colour"] = "blue"
        config.write_text(json.dumps(described))


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("truncated", ValueError, "damaged"),
        ("not a file of tensors", ValueError, "damaged"),
        ("missing", ValueError, "lacks tensors"),
        ("unexpected", ValueError, "has unexpected tensors.*more"),
        ("shape", ValueError, "has shape"),
        ("no weights", FileNotFoundError, "model.safetensors"),
        ("no config", FileNotFoundError, "config.json"),
        ("config", ValueError, "not valid JSON"),
        ("keys", ValueError, "expected the keys"),
        ("unknown", ValueError, "has no colour"),
    ],
)
def test_each_damage_has_its_own_error(tmp_path: Path, how: str, error, words: str) -> None:
    model = small("spherical transformer, local")
    model.save_pretrained(tmp_path)
    spoil(tmp_path, how)
    with pytest.raises(error, match=words):
        type(model).from_pretrained(tmp_path)


def test_another_class_is_refused(tmp_path: Path) -> None:
    small("spherical transformer, local").save_pretrained(tmp_path)
    with pytest.raises(
        ValueError, match="describes a SphericalTransformer, not a PlanarTransformer"
    ):
        models.PlanarTransformer.from_pretrained(tmp_path)
