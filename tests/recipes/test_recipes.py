import pytest

from spherule import models, recipes
from spherule.recipes.titles import TITLES
from spherule.tasks import SegmentationConfig, ShallowWaterTaskConfig
from spherule.train import RunConfig

PARAMETERS = {  # of the paper's table, at 3 inputs and 1 output
    "r2-transformer": 531_968,
    "s2-transformer": 531_968,
    "r2-transformer-local": 532_480,
    "s2-transformer-local": 531_968,
    "r2-segformer": 688_321,
    "s2-segformer": 606_113,
    "r2-segformer-local": 689_265,
    "s2-segformer-local": 606_113,
}


def test_a_list_without_torch_has_all_recipes_in_their_order() -> None:
    assert list(TITLES.items()) == [(r.name, r.title) for r in recipes.RECIPES.values()]


ALL = [f"{name}:{size}" for name in recipes.RECIPES for size in recipes.SIZES]


def test_every_row_of_the_papers_tables_is_there() -> None:
    columns = {"swe": {"loss", "l1", "l2"}, "seg": {"loss", "iou", "accuracy"},
               "depth": {"loss", "l1", "sobolev"}}  # fmt: skip
    for table, rows in (("swe", 14), ("seg", 10), ("depth", 8)):
        published = [r.published for n, r in recipes.RECIPES.items() if n.startswith(table + "/")]
        known = [p for p in published if p is not None]
        assert len(known) == rows
        assert all(set(p.metrics) == columns[table] for p in known)


@pytest.mark.parametrize("row", PARAMETERS)
def test_rows_have_the_papers_models(row: str) -> None:
    for table in ("swe", "seg", "depth"):
        config = recipes.get(f"{table}/{row}").model
        model = models.build(config, "gauss:128x256", 3, 1)
        assert sum(p.numel() for p in model.parameters()) == PARAMETERS[row]


def test_hyperparameters_are_the_papers() -> None:
    water = recipes.get("swe/s2-transformer-local")
    assert isinstance(water.task, ShallowWaterTaskConfig)
    steps = water.training.epochs * water.task.samples // water.training.batch
    assert (steps, water.training.learning_rate, water.task.grid) == (3200, 1e-3, "gauss:128x256")
    assert (water.training.optimizer, water.training.schedule) == ("adam", "plateau")
    pictures = recipes.get("seg/s2-segformer-local").training
    assert (pictures.epochs, pictures.learning_rate, pictures.weight_decay) == (200, 0.5e-4, 0.1)
    assert (pictures.optimizer, pictures.schedule) == ("adamw", "cosine")
    assert recipes.get("seg/s2-segformer-local").model.drop_path == 0.1
    assert recipes.get("depth/s2-transformer").training.epochs == 100
    large = recipes.get("seg/s2-segformer-local-large")
    assert isinstance(large.task, SegmentationConfig)
    assert large.task.size == "256x512"
    assert large.model.widths == (32, 64, 128, 256)


@pytest.mark.parametrize("name", ALL)
def test_recipes_round_trip_through_json(name: str) -> None:
    config = recipes.get(name)
    assert RunConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize("name", [n for n in ALL if n.startswith("swe") and n.endswith("tiny")])
def test_tiny_models_can_be_built_on_their_grids(name: str) -> None:
    config = recipes.get(name)
    assert isinstance(config.task, ShallowWaterTaskConfig)
    model = models.build(config.model, config.task.grid, 3, 3)
    assert sum(p.numel() for p in model.parameters()) < 200_000


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("swe/s2-transformr-local", "did you mean swe/s2-transformer-local"),
        ("s2-segformer", "seg/s2-segformer"),
        ("swe/s2-transformer:huge", "not one of paper, small, tiny"),
        ("", "spherule list"),
    ],
)
def test_unknown_names_get_the_nearest(name: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recipes.get(name)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"speed": 1}, "run has no speed"),
        ({"task": {"type": "Weather"}}, "type='Weather', expected one of "),
        ({"training": {"epochs": -1}}, "epochs=-1"),
        ({"training": {"rate": 1}}, "training has no rate"),
    ],
)
def test_configs_with_unknown_parts_are_refused_by_name(change: dict, words: str) -> None:
    values = recipes.get("swe/s2-transformer:tiny").to_dict() | change
    with pytest.raises(ValueError, match=words):
        RunConfig.from_dict(values)


ABLATION = ("1-vit", "2-convolution", "3-spectral", "4-s2-convolution", "5-s2-attention", "6-local")
STEPS = (
    {"norm"},  # besides patches, which have a class of their own
    {"position"},
    {"convolution", "norm"},  # by quadrature, as upsampling then is
    {"attention"},
    {"local"},
)


@pytest.mark.parametrize("size", recipes.SIZES)
def test_steps_of_the_ablation_change_what_they_say_and_nothing_else(size: str) -> None:
    rows = [recipes.get(f"swe/ablation-{name}:{size}") for name in ABLATION]
    for before, after, named in zip(rows, rows[1:], STEPS, strict=False):
        a, b = before.model.to_dict(), after.model.to_dict()
        changed = {name for name in a.keys() & b.keys() if a[name] != b[name]}
        # A Transformer's learned positions are the ViT's too.
        assert changed == named
        assert (before.task, before.training) == (after.task, after.training)


def test_the_last_steps_of_the_ablation_are_rows_of_the_table() -> None:
    for step, row in (("5-s2-attention", "s2-transformer"), ("6-local", "s2-transformer-local")):
        assert recipes.get(f"swe/ablation-{step}").model == recipes.get(f"swe/{row}").model
    third = recipes.get("swe/ablation-3-spectral").model
    assert third == recipes.get("swe/r2-transformer").model


def test_choices_where_the_paper_is_open() -> None:
    water = recipes.get("swe/s2-transformer-local")
    assert water.task.damping_time == 7200
    assert water.task.test_samples == 50
    assert water.model.skip == "identity"
    segformer = recipes.get("swe/r2-segformer").model
    assert (segformer.skip, segformer.drop_path) == ("none", 0.1)
    small = recipes.get("swe/s2-transformer-local:small")
    assert small.model == water.model
    assert (small.task.grid, small.task.lead, small.task.step) == ("gauss:64x128", 7200, 300)
    assert small.task.damping_time == 14400
    for row in ("s2-transformer", "r2-segformer"):
        assert not recipes.get(f"seg/{row}").task.augment
        assert not recipes.get(f"depth/{row}").task.augment
    assert recipes.get("depth/s2-transformer").model.drop_path == 0
    assert recipes.get("depth/s2-segformer").model.drop_path == 0.1
    assert recipes.get("swe/r2-transformer").model.norm == "plain_instance"
    assert recipes.get("swe/ablation-1-vit").model.norm == "layer"
