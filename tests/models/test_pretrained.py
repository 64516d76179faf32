import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.torch
import torch

from spherule import Grid, models
from tests.models.test_models import MODELS, small


@pytest.mark.parametrize("name", MODELS)
def test_round_trip(name: str, tmp_path: Path) -> None:
    model = small(name).eval()
    model.save_pretrained(tmp_path / "m")
    again = models.from_pretrained(tmp_path / "m").eval()
    assert type(again) is type(model)
    assert (again.config, again.grid) == (model.config, model.grid)
    x = torch.randn(1, 2, 12, 24)
    assert torch.equal(again(x), model(x))


def test_weights_may_be_read_by_whoever_may_read_their_config(tmp_path: Path) -> None:
    models.Linear(models.LinearConfig(lmax=2), "gauss:4x8", 1, 1).save_pretrained(tmp_path)
    weights, config = (tmp_path / name for name in ("model.safetensors", "config.json"))
    assert weights.stat().st_mode == config.stat().st_mode


def test_only_parameters_are_stored(tmp_path: Path) -> None:
    model = small("spherical segformer, local")
    model.save_pretrained(tmp_path)
    stored = safetensors.torch.load_file(tmp_path / "model.safetensors")
    assert stored.keys() == dict(model.named_parameters()).keys()
    description = json.loads((tmp_path / "config.json").read_text())
    assert description.pop("config") == model.config.to_dict()
    assert description == {
        "model": "Segformer",
        "grid": "gauss:12x24",
        "in_channels": 2,
        "out_channels": 2,
    }


LOAD = """
import sys, torch
from safetensors.torch import load_file
from spherule import models
example = load_file(sys.argv[1] + "/example.safetensors")
assert torch.equal(models.from_pretrained(sys.argv[1])(example["x"]), example["y"])
"""


def test_models_on_rings_of_ones_own_load_in_another_process(tmp_path: Path) -> None:
    grid, latent = (
        Grid.from_rings(g.theta, g.nphi, g.phi0 + 0.1, g.ring_weights)
        for g in (Grid.octahedral(6), Grid.octahedral(3))
    )
    model = small("spherical transformer, local", grid, latent_grid=latent.name)
    model.save_pretrained(tmp_path)
    x = torch.randn(1, 2, *grid.shape)
    safetensors.torch.save_file({"x": x, "y": model(x).detach()}, tmp_path / "example.safetensors")
    threads = {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", LOAD, tmp_path], check=True, env=os.environ | threads)


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
    elif how == "list":
        config.write_text("[]")
    elif how == "not a number":
        tensors[name].view(-1)[0] = torch.nan
        safetensors.torch.save_file(tensors, weights)
    elif how == "integers":
        safetensors.torch.save_file(tensors | {name: tensors[name].long()}, weights)
    else:
        description = json.loads(config.read_text())
        description.update(
            {
                "unknown": {"config": {"color": "blue"}},
                "no model": {"model": "Perceiver"},
                "no grid": {"grid": "cube:6"},
                "half a grid": {"grid": {"theta": [1.0]}},
                "no channels": {"in_channels": "three"},
                "old and damaged": {"config": 3},
            }[how]
        )
        config.write_text(json.dumps(description))


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
        ("list", ValueError, "expected the keys"),
        ("not a number", ValueError, "no finite real numbers"),
        ("integers", ValueError, "no finite real numbers"),
        ("unknown", ValueError, "config.json: config: TransformerConfig has no color"),
        ("no model", ValueError, "describes a 'Perceiver'; known are Linear"),
        ("no grid", ValueError, "config.json: name='cube:6' is not a grid"),
        ("half a grid", ValueError, "expected theta, nphi, phi0, ring_weights, got theta"),
        ("no channels", ValueError, "config.json: in_channels='three'"),
        ("old and damaged", ValueError, "config.json: config: expected a dict, got int"),
    ],
)
def test_each_damage_has_its_own_error(unchecked, tmp_path: Path, how, error, words) -> None:
    model = small("spherical transformer, local")
    model.save_pretrained(tmp_path)
    spoil(tmp_path, how)
    with pytest.raises(error, match=words):
        type(model).from_pretrained(tmp_path)


def test_another_class_is_refused(tmp_path: Path) -> None:
    small("spherical transformer, local").save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="describes a Transformer, not a Segformer: use Trans"):
        models.Segformer.from_pretrained(tmp_path)
