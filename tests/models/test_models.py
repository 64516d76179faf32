import pickle
import warnings
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from spherule import Grid, models, nn, ops
from spherule.models import SegformerConfig, TransformerConfig, VisionTransformerConfig

MODELS: dict[str, models.ModelConfig] = {
    "spherical transformer, local": TransformerConfig.spherical(),
    "spherical transformer, global": TransformerConfig.spherical(local=False),
    "planar transformer, local": TransformerConfig.planar(),
    "planar transformer, global": TransformerConfig.planar(local=False),
    "vision transformer": VisionTransformerConfig(),
    "spherical segformer, local": SegformerConfig.spherical(),
    "spherical segformer, global": SegformerConfig.spherical(local=False),
    "planar segformer, local": SegformerConfig.planar(),
    "planar segformer, global": SegformerConfig.planar(local=False),
}
SPHERICAL = [name for name in MODELS if name.startswith("spherical")]
PLANAR = [name for name in MODELS if name.startswith("planar")]
TRANSFORMER = {"width": 8, "depth": 2}
SEGFORMER = {"widths": (4, 8), "depths": (1, 2), "heads": (1, 2)}


def small(
    name: str, grid: Grid | str = "gauss:12x24", channels: tuple[int, int] = (2, 2), **changes
) -> models.Model:
    size = SEGFORMER if "segformer" in name else TRANSFORMER
    return models.build(replace(MODELS[name], **(size | changes)), grid, *channels)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("spherical transformer, local", 531_968),
        ("spherical transformer, global", 531_968),
        ("planar transformer, local", 532_480),
        ("planar transformer, global", 531_968),
        ("spherical segformer, local", 606_113),
        ("spherical segformer, global", 606_113),
        ("planar segformer, local", 689_265),
        ("planar segformer, global", 688_321),
    ],
)
def test_parameter_counts_are_the_papers(name: str, count: int) -> None:
    model = models.build(MODELS[name], "gauss:32x64", 3, 1)
    assert sum(p.numel() for p in model.parameters()) == count


@pytest.mark.parametrize("name", MODELS)
def test_no_samples_are_no_predictions(name: str) -> None:
    model = small(name)
    y = model(torch.randn(0, 2, 12, 24))
    assert y.shape == (0, 2, 12, 24)
    y.sum().backward()


def test_vision_transformer_cuts_and_joins_patches_as_torch_does() -> None:
    model = small("vision transformer", channels=(3, 2))
    x, y = torch.randn(2, 3, 12, 24), torch.randn(2, 8, 6, 12)
    assert torch.equal(model._to_patches(x), F.pixel_unshuffle(x, 2).flatten(2))
    assert torch.equal(model._from_patches(y.flatten(2)), F.pixel_shuffle(y, 2))


def test_large_segformer_doubles_the_widths() -> None:
    config = SegformerConfig().large()
    assert config.widths == (32, 64, 128, 256)


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_learns(name: str) -> None:
    model = small(name)
    x = torch.randn(2, 2, 12, 24)
    y = model(x)
    assert y.shape == (2, 2, 12, 24)
    y.square().mean().backward()
    for parameter, p in model.named_parameters():
        assert p.grad is not None, parameter
        assert p.grad.isfinite().all(), parameter
        assert p.grad.abs().max() > 0, parameter


@pytest.mark.parametrize("name", SPHERICAL)
@pytest.mark.parametrize(
    "grid",
    ["equiangular:16x32", "fejer:13x27@0.5", "clenshaw_curtis:17x32", "H8", "O8", "gauss:8x16"],
)
def test_any_grid_and_any_size(name: str, grid: str) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="cutoff=")
        model = small(name, grid)
    x = torch.randn(1, 2, *Grid.from_name(grid).shape)
    assert model(x).shape == x.shape


@pytest.mark.parametrize("name", ["planar transformer, local", "planar segformer, local"])
def test_planar_models_take_odd_sizes(name: str) -> None:
    x = torch.randn(1, 2, 13, 27)
    assert small(name, "fejer:13x27")(x).shape == x.shape


TINY = ["gauss:16x32", "fejer:17x34", "gauss:9x18", "clenshaw_curtis:9x18", "equiangular:16x32"]
TINY += ["lobatto:7x13", "gauss:10x90", "fejer:90x10", "gauss:3x5", "gauss:1x40", "gauss:1x1"]
TINY += ["H1", "H2", "H4", "O1", "O2", "O4"]


@pytest.mark.parametrize(
    ("name", "grid"),
    [(name, grid) for name in SPHERICAL for grid in TINY]
    + [(name, grid) for name in PLANAR for grid in TINY if Grid.from_name(grid).regular],
)
def test_tiny_stages_train(name: str, grid: str) -> None:
    """Four halvings lead these SegFormers down to a few points, where grids stop to get coarser."""
    shape = Grid.from_name(grid).shape
    four = {"widths": (4,) * 4, "depths": (1,) * 4, "heads": (1,) * 4}
    tiny = four if "segformer" in name else {"width": 4, "depth": 1}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="cutoff=")
        model = small(name, grid, (3, 3), **tiny)
        again = models.build(model.config, grid, 3, 3)
    assert again.config == model.config
    x = torch.randn(2, 3, *shape, requires_grad=True)
    y = model(x)
    y.square().mean().backward()
    assert y.isfinite().all()
    assert all(p.grad.isfinite().all() for p in (x, *model.parameters()))


def test_an_identity_skip_adds_the_first_channels_of_the_input() -> None:
    model = small("spherical transformer, local", channels=(3, 2), skip="identity")
    plain = small("spherical transformer, local", channels=(3, 2))
    plain.load_state_dict(model.state_dict())
    x = torch.randn(1, 3, 12, 24)
    torch.testing.assert_close(model(x), x[:, :2] + plain(x))


@pytest.mark.parametrize("name", PLANAR)
def test_planar_models_upsample_on_the_plane_and_normalize_as_their_twins(name: str) -> None:
    model = small(name)
    upsamples = model.upsamples if "segformer" in name else [model.upsample]
    for upsample in upsamples:
        impulse = torch.zeros(1, 1, *upsample.source.shape)
        impulse[..., 0, 0] = 1
        seen = upsample(impulse)[0, 0] > 0
        assert not seen[:, -1].any()
        assert not seen[0].all()
    norms = [m for m in model.modules() if isinstance(m, torch.nn.GroupNorm | torch.nn.LayerNorm)]
    assert {type(norm) for norm in norms} == {nn.PlainInstanceNorm}


def test_mixed_variants_are_configs() -> None:
    for convolution in ("spherical", "planar"):
        for attention in ("spherical", "planar"):
            for position in ("spectral", "learned", "sequence", "none"):
                model = small(
                    "spherical transformer, local",
                    convolution=convolution,
                    attention=attention,
                    position=position,
                )
                assert model(torch.randn(1, 2, 12, 24)).isfinite().all()


@pytest.mark.parametrize("norm", ["instance", "plain_instance", "layer"])
def test_activation_checkpointing_changes_nothing(norm: str) -> None:
    x = torch.randn(2, 2, 12, 24)
    gradients = []
    model = small("spherical segformer, local", norm=norm)
    for checkpoint in (False, True):
        twin = small("spherical segformer, local", norm=norm, checkpoint=checkpoint)
        twin.load_state_dict(model.state_dict())
        twin(x).square().mean().backward()
        gradients.append([p.grad for p in twin.parameters()])
    for a, b in zip(*gradients, strict=True):
        torch.testing.assert_close(a, b)


def test_activations_are_recomputed_in_training_with_checkpoint_only() -> None:
    runs = {}
    for checkpoint in (False, True):
        for training in (False, True):
            model = small("spherical transformer, local", checkpoint=checkpoint).train(training)
            calls = []
            model.blocks[0].register_forward_pre_hook(lambda *_, calls=calls: calls.append(1))
            model(torch.randn(1, 2, 12, 24)).sum().backward()
            runs[checkpoint, training] = len(calls)
    assert runs == {(False, False): 1, (False, True): 1, (True, False): 1, (True, True): 2}


def test_drop_path_grows_to_the_configs_rate() -> None:
    for depth, expected in ((1, [0.5]), (2, [0, 0.5]), (3, [0, 0.25, 0.5])):
        model = small("spherical transformer, local", depth=depth, drop_path=0.5)
        assert [block.drop_path.rate for block in model.blocks] == expected


@pytest.mark.parametrize("name", SPHERICAL)
def test_on_another_grid_it_is_the_same_operator(name: str) -> None:
    """Band-limited input; the outputs on two grids are compared as harmonics."""
    errors, resolved = [], []
    model = small(name, "gauss:64x128", **({"window": 9} if "local" in name else {}))
    spectrum = torch.ones(13, dtype=torch.float64) * 4 * torch.pi / 169
    coeffs = ops.random_coeffs(spectrum, (1, 2), generator=torch.Generator().manual_seed(1))
    for n in (64, 128) if "local" in name else (64,):
        outputs = []
        for grid in (Grid.gauss(n, 2 * n), Grid.clenshaw_curtis(n + 1, 2 * n)):
            twin = model.on(grid)
            assert next(twin.parameters()) is next(model.parameters())
            with torch.no_grad():
                outputs.append(ops.sht(twin(ops.isht(coeffs, grid).float()).double(), grid, 40))
        for lmax, found in ((40, errors), (15, resolved)):
            first, second = (y[..., : lmax + 1, :] for y in outputs)
            found.append(((first - second).norm() / first.norm()).item())
    # Degrees that the SegFormer's last stage, of 16 rings, does not resolve are the kinks of its
    # bilinear upsampling: little, but other kinks on another grid.
    assert errors[0] < (0.05 if "transformer" in name else 0.1)
    assert resolved[0] < 0.05
    assert errors[-1] <= errors[0]
    assert resolved[-1] <= resolved[0]


@pytest.mark.parametrize("name", SPHERICAL)
def test_a_model_made_elsewhere_is_the_same_as_one_moved_there(name: str) -> None:
    """Bit by bit, when it has the radii."""
    model = small(name, "gauss:12x24", skip="identity").eval()
    for grid in ("clenshaw_curtis:17x32", "O8"):
        moved = model.on(grid)
        assert moved.grid == Grid.from_name(grid)
        there = models.build(moved.config, grid, 2, 2).eval()
        there.load_state_dict(model.state_dict())
        x = torch.randn(1, 2, *moved.grid.shape)
        assert torch.equal(moved(x), there(x))
    x = torch.randn(1, 2, 12, 24)
    assert torch.equal(model.on("gauss:12x24")(x), model(x))


def test_a_moved_model_shares_parameters_and_mode_but_nothing_else() -> None:
    model = small("spherical segformer, local").eval()
    moved = model.on("O8")
    assert not moved.training
    assert model.on("O8").train().on("O8").training
    assert model.grid == Grid.gauss(12, 24)
    for (name, a), (other, b) in zip(
        model.named_parameters(), moved.named_parameters(), strict=True
    ):
        assert name == other
        assert a is b
    moved.register_forward_hook(lambda *_: pytest.fail("a hook of the other model ran"))
    moved.train()
    model(torch.randn(1, 2, 12, 24))
    assert not any(module.training for module in model.modules())


def test_a_moved_model_keeps_its_precision() -> None:
    moved = small("spherical transformer, local").double().on("O8")
    assert {b.dtype for b in moved.buffers() if b.is_floating_point()} == {torch.float64}


@pytest.mark.parametrize(
    ("name", "changes", "layer"),
    [
        ("planar transformer, local", {}, "PlanarConv"),
        ("planar segformer, global", {}, "PlanarConv"),
        ("vision transformer", {}, "LearnedEmbedding"),
        ("spherical transformer, local", {"position": "learned"}, "LearnedEmbedding"),
        ("spherical transformer, local", {"position": "sequence"}, "SequenceEmbedding"),
        ("spherical transformer, local", {"attention": "planar"}, "PlanarAttention"),
        ("spherical transformer, local", {"norm": "plain_instance"}, "PlainInstanceNorm"),
    ],
)
def test_what_knows_no_sphere_refuses_other_grids_by_name(name, changes, layer) -> None:
    with pytest.raises(ValueError, match=f"{layer} knows points, not places"):
        small(name, **changes).on("gauss:24x48")


def test_models_on_rings_of_ones_own() -> None:
    """Such grids have no family, so the inner ones are given."""
    rings = [
        Grid.from_rings(g.theta, g.nphi, g.phi0 + 0.1, g.ring_weights)
        for g in map(Grid.octahedral, (8, 4, 2))
    ]
    x = torch.randn(1, 2, *rings[0].shape)
    transformer = small("spherical transformer, local", "O8").on(*rings[:2])
    segformer = small("spherical segformer, local", rings[0], stage_grids=("O4", "O2"))
    assert segformer.on(*rings).config.stage_grids == (rings[1].name, rings[2].name)
    for model in (transformer, segformer, segformer.on(*rings)):
        assert torch.equal(pickle.loads(pickle.dumps(model))(x), model(x))
    with pytest.raises(ValueError, match="has no family"):
        transformer.on(rings[0])
    with pytest.raises(ValueError, match="a grid for each of 2 stages"):
        segformer.on(*rings[:2])


@pytest.mark.parametrize("name", MODELS)
def test_bfloat16_autocast_trains(name: str) -> None:
    model = small(name)
    x = torch.randn(2, 2, 12, 24)
    with torch.autocast("cpu", torch.bfloat16):
        y = model(x)
    y.float().square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert (y.float() - model(x)).abs().max() < 0.2


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name == "spherical transformer, local" else pytest.mark.slow)
        for name in MODELS
    ],
)
def test_compiles_and_exports_whole(name: str, unchecked) -> None:
    torch._dynamo.reset()  # the models share code, which may be compiled only so often
    model = small(name).eval()
    x = torch.randn(1, 2, 12, 24)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(model, (x,)).module()(x)
        compiled = torch.compile(model, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(exported, model(x))
    torch.testing.assert_close(compiled, model(x))


def test_models_and_their_configs_are_listed_once() -> None:
    assert set(models.MODELS) == {"Linear", "Segformer", "Transformer", "VisionTransformer"}
    assert set(models.MODEL_CONFIGS) == {f"{name}Config" for name in models.MODELS}
    for name, cls in models.MODELS.items():
        assert cls.__name__ == name
        assert models.MODEL_CONFIGS[cls.Config.__name__] is cls.Config
        assert getattr(models, name) is cls


def test_bad_input_is_named(unchecked) -> None:
    model = small("spherical transformer, local")
    for call, error, words in [
        (lambda: model(torch.zeros(1, 3, 12, 24)), ValueError, r"expected \(batch, 2, 12, 24\)"),
        (lambda: model(torch.zeros(2, 12, 24)), ValueError, r"got \(2, 12, 24\)"),
        (lambda: model(torch.zeros(1, 2, 12, 24).int()), TypeError, "int32"),
        (
            lambda: models.Transformer(SegformerConfig(), "O8", 1, 1),
            TypeError,
            "Transformer needs a TransformerConfig, got SegformerConfig",
        ),
        (lambda: models.build(models.ModelConfig(), "O8", 1, 1), TypeError, "one of LinearConfig"),
        (lambda: models.build(TransformerConfig(), 12, 1, 1), TypeError, "expected a Grid"),
        (lambda: models.build(TransformerConfig(), "O8", 0, 1), ValueError, "in_channels=0"),
        (lambda: models.build(TransformerConfig(), "O8", 1, 1.5), TypeError, "out_channels=1.5"),
        (
            lambda: small("spherical transformer, local", channels=(1, 2), skip="identity"),
            ValueError,
            "skip='identity' needs an input channel",
        ),
        (lambda: small("vision transformer", "gauss:13x24"), ValueError, "multiples of patch=2"),
        (lambda: small("planar transformer, local", "H4"), ValueError, "rows and columns"),
    ]:
        with pytest.raises(error, match=words):
            call()
