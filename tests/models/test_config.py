import json
import math
from dataclasses import fields, replace
from itertools import pairwise

import pytest

from spherule import Grid, models
from spherule.models import SegformerConfig, TransformerConfig, VisionTransformerConfig
from tests.models.test_models import MODELS, small

RINGS = Grid.from_rings([0.5, 1.6, 2.4], [4, 6, 4], [0.1, 0.2, 0.3], [0.9, 0.8, 0.9], partial=True)


@pytest.mark.parametrize(
    ("values", "error", "words"),
    [
        ({"norm": "Instance"}, ValueError, "norm='Instance' is not one of 'instance'"),
        ({"attention": "global"}, ValueError, "attention='global' is not one of"),
        ({"convolution": "disco"}, ValueError, "convolution='disco'"),
        ({"position": None}, ValueError, "position=None"),
        ({"skip": "residual"}, ValueError, "skip='residual'"),
        ({"local": 1}, TypeError, "local=1 must be a bool"),
        ({"width": 0}, ValueError, "width=0"),
        ({"width": 8.0}, TypeError, "width=8.0 must be an integer"),
        ({"heads": 0}, ValueError, "heads=0"),
        ({"heads": 3}, ValueError, "width=128 must be a multiple of heads=3"),
        ({"depth": 0}, ValueError, "depth=0"),
        ({"dropout": 1.0}, ValueError, "dropout=1"),
        ({"drop_path": -0.1}, ValueError, "drop_path=-0.1"),
        ({"drop_path": math.nan}, ValueError, "drop_path=nan must be finite"),
        ({"window": 0}, ValueError, "window=0"),
        ({"attention": "planar", "window": 4}, ValueError, "window=4 must be odd"),
        ({"radii": 0}, ValueError, "radii=0"),
        ({"angles": 0}, ValueError, "angles=0"),
        ({"edge_width": -1.0}, ValueError, "edge_width=-1"),
        ({"mlp_ratio": 0.0}, ValueError, "mlp_ratio=0"),
        ({"cutoff": 45.0}, ValueError, "cutoff=45"),
        ({"convolution_cutoff": 0.0}, ValueError, "convolution_cutoff=0"),
    ],
)
def test_values_that_make_no_model_are_refused_by_name(
    unchecked, values, error, words: str
) -> None:
    with pytest.raises(error, match=words):
        TransformerConfig(**values)
    with pytest.raises(error, match=words):
        TransformerConfig.from_dict(values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"widths": ()}, r"widths=\(\)"),
        ({"depths": (1, 2)}, r"depths=\(1, 2\): expected one entry for each"),
        ({"depths": (3, 4, 0, 3)}, r"depths\[2\]=0"),
        ({"heads": (1, 2, 4, 5)}, r"widths\[3\]=128 must be a multiple of heads=5"),
        ({"widths": [16, 32, 64, 128]}, "must be a tuple"),
        ({"cutoffs": (1.0, 1.0, 1.0, 4.0)}, "cutoffs=4"),
        ({"kernel": 0, "convolution": "planar"}, "kernel=0"),
    ],
)
def test_stages_that_make_no_segformer_are_refused_by_name(unchecked, values, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        SegformerConfig(**values)


@pytest.mark.parametrize("config", [TransformerConfig, VisionTransformerConfig])
def test_a_perceptron_has_one_hidden_channel_at_least(config) -> None:
    assert config(width=8, heads=1, mlp_ratio=1 / 8).mlp_ratio == 1 / 8
    with pytest.raises(ValueError, match=r"mlp_ratio=0\.12"):
        config(width=8, heads=1, mlp_ratio=0.12)


@pytest.mark.parametrize("values", [{"patch": 0}, {"heads": 3}, {"depth": 0}, {"mlp_ratio": -1.0}])
def test_patches_that_make_no_vision_transformer_are_refused_by_name(values) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        VisionTransformerConfig(**values)


@pytest.mark.parametrize(
    ("make", "values", "words"),
    [
        (TransformerConfig.planar, {"qk_norm": True}, "qk_norm=True.*attention='planar'"),
        (TransformerConfig.planar, {"edge_width": 0.1}, "edge_width=0.1.*attention='planar'"),
        (TransformerConfig.planar, {"cutoff": 0.5}, "cutoff=0.5.*attention='planar'"),
        (TransformerConfig.planar, {"angles": 1}, "angles=1.*convolution='planar'"),
        (SegformerConfig.planar, {"mixing_cutoffs": (0.5,) * 4}, "mixing_cutoffs.*convolution"),
        (SegformerConfig.spherical, {"kernel": 3}, "kernel=3.*convolution='spherical'"),
        (TransformerConfig, {"local": False, "edge_width": 0.1}, "edge_width=0.1.*local=False"),
        (TransformerConfig, {"local": False, "window": 5}, "window=5.*local=False"),
        (SegformerConfig, {"local": False, "cutoffs": (0.5,) * 4}, "cutoffs.*local=False"),
    ],
)
def test_options_that_would_mean_nothing_are_refused_by_name(make, values, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(**values)


def test_a_vision_transformer_has_no_say_in_its_attention() -> None:
    names = {field.name for field in fields(VisionTransformerConfig)}
    assert not names & {"attention", "local", "window", "convolution", "qk_norm", "edge_width"}


def test_presets_differ_in_what_they_are_named_after() -> None:
    assert TransformerConfig.spherical() == TransformerConfig()
    assert SegformerConfig.spherical(dropout=0.1) == SegformerConfig(dropout=0.1)
    for cls in (TransformerConfig, SegformerConfig):
        planar = cls.planar(dropout=0.1)
        assert (planar.convolution, planar.attention, planar.dropout) == ("planar", "planar", 0.1)
        mixed = cls.planar(convolution="spherical")
        assert mixed == replace(cls.planar(), convolution="spherical")


def test_steps_of_the_ablation_change_what_they_are_named_after() -> None:
    rows = [TransformerConfig.planar(local=False, position="learned")]
    for step in (
        {"position": "spectral"},
        {"convolution": "spherical"},
        {"attention": "spherical"},
    ):
        rows.append(replace(rows[-1], **step))
    assert rows[1] == TransformerConfig.planar(local=False)
    assert replace(rows[-1], norm="instance") == TransformerConfig(local=False)
    built = [models.build(row, "gauss:12x24", 2, 2).config.to_dict() for row in rows]
    changes = [{k for k in a if a[k] != b[k]} for a, b in pairwise(built)]
    assert changes == [
        {"position"},
        {"convolution", "convolution_cutoff", "upsampling"},  # filters bring their radius
        {"attention"},
    ]


@pytest.mark.parametrize("name", MODELS)
def test_configs_are_plain_in_json(name: str) -> None:
    for config in (MODELS[name], small(name).config):
        values = json.loads(json.dumps(config.to_dict()))
        assert type(config).from_dict(values) == config
        tagged = {"type": type(config).__name__, **values}
        assert models.upgrade_config(tagged) == (type(config), values)
    with pytest.raises(ValueError, match="has no color; it has position, norm"):
        type(config).from_dict(values | {"color": "blue"})


def test_rings_of_ones_own_stand_in_the_config_themselves() -> None:
    config = TransformerConfig(latent_grid=RINGS.name)
    values = json.loads(json.dumps(config.to_dict()))
    assert values["latent_grid"]["nphi"] == [4, 6, 4]
    assert TransformerConfig.from_dict(values) == config


def test_what_was_built_is_in_the_models_config() -> None:
    grid = Grid.gauss(12, 24)
    config = small("spherical transformer, local").config
    assert config.latent_grid == "gauss:6x12"
    assert config.cutoff == Grid.gauss(6, 12).cutoff(7)
    assert config.convolution_cutoff is not None
    for name in ("spherical transformer, global", "planar transformer, local"):
        assert small(name).config.cutoff is None
    segformer = small("spherical segformer, local", grid).config
    assert segformer.stage_grids == ("gauss:6x12", "gauss:3x6")
    assert segformer.cutoffs == tuple(g.cutoff(7) for g in (Grid.gauss(6, 12), Grid.gauss(3, 6)))
    planar = small("planar segformer, local", grid).config
    assert planar.merging_cutoffs is planar.mixing_cutoffs is planar.cutoffs is None


def test_the_papers_sizes_are_the_defaults() -> None:
    config = TransformerConfig()
    sizes = (config.width, config.depth, config.heads, config.mlp_ratio, config.qk_norm)
    assert sizes == (128, 4, 1, 2.0, False)
