"""Model directories as 0.1.0 wrote them, each with an example of what the model gave; the weights
are the initial ones of seed 0.
"""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spherule import models
from spherule.models import SegformerConfig, TransformerConfig, VisionTransformerConfig

DIRECTORIES = sorted((Path(__file__).parent / "v0_1_0").iterdir())
# Another processor adds up in another order.
CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda d: d.name)
def test_models_of_0_1_0_give_what_they_gave(directory: Path, tmp_path: Path) -> None:
    model = models.from_pretrained(directory).eval()
    example = load_file(directory / "example.safetensors")
    with torch.no_grad():
        torch.testing.assert_close(model(example["x"]), example["y"], **CLOSE)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    assert again.config == model.config
    assert torch.equal(again(example["x"]), model(example["x"]))


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda d: d.name)
def test_initial_weights_are_those_of_0_1_0(directory: Path) -> None:
    old = models.from_pretrained(directory)
    torch.manual_seed(0)
    new = models.build(old.config, old.grid, old.in_channels, old.out_channels)
    for name, weight in old.state_dict().items():
        torch.testing.assert_close(new.state_dict()[name], weight, **CLOSE)


@pytest.mark.parametrize("directory", DIRECTORIES, ids=lambda d: d.name)
def test_the_model_of_an_old_runs_config_is_that_of_its_checkpoints(directory: Path) -> None:
    described = json.loads((directory / "config.json").read_text())
    tagged = {"type": described["model"] + "Config", **described["config"]}
    cls, fields = models.upgrade_config(tagged)
    model = models.from_pretrained(directory)
    assert cls.from_dict(fields).resolved(model.grid) == model.config


def test_options_that_0_1_0_ignored_are_left_out() -> None:
    ignored = {"qk_norm": True, "edge_width": 0.1, "cutoff": 0.5, "radii": 3, "grid": "O8"}
    cls, fields = models.upgrade_config({"type": "PlanarTransformerConfig", **ignored})
    assert cls is TransformerConfig
    config = cls.from_dict(fields)
    assert (config.convolution, config.attention, config.norm) == ("planar", "planar", "layer")
    assert config.upsampling == "spherical"  # as it was then
    cls, fields = models.upgrade_config(
        {"type": "SphericalSegformerConfig", "residual": True, "kernel": 3, "local": False}
    )
    assert cls.from_dict(fields) == SegformerConfig(local=False, skip="identity")
    cls, fields = models.upgrade_config(
        {"type": "VisionTransformerConfig", "grid": "gauss:8x16", "window": 7, "residual": True}
    )
    assert cls.from_dict(fields) == VisionTransformerConfig(skip="identity")


def test_what_has_no_equal_today_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match="local or spherical attention has no equal: train"):
        models.upgrade_config({"type": "VisionTransformerConfig", "grid": "O8", "local": True})
    with pytest.raises(ValueError, match="type='Perceiver', expected one of LinearConfig"):
        models.upgrade_config({"type": "Perceiver"})
