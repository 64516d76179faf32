import math
import warnings

import pytest
import torch

from spherule import Grid
from spherule.nn import SphericalAttention
from spherule.ops.neighborhood_attention import cpu as attention_cpu
from spherule.ops.pointwise import cpu as pointwise_cpu

GRID, OTHER = Grid.gauss(8, 16), Grid.octahedral(4)


def plain(layer: SphericalAttention, x: torch.Tensor) -> torch.Tensor:
    """The layer in the symbols of the paper, for one head, with every pair of points."""
    q, k, v = (layer.qkv.weight @ x.flatten(2)).chunk(3, dim=1)
    distance = torch.tensor(GRID.xyz @ GRID.xyz.T).clamp(-1, 1).arccos()
    a = (q.mT @ k / math.sqrt(q.shape[1])).exp() * torch.tensor(GRID.weights).flatten()
    if layer.cutoff is not None:
        a = a * (distance <= layer.cutoff + 1e-9)
    a = a / a.sum(-1, keepdim=True)
    return (layer.out.weight @ (a @ v.mT).mT).unflatten(-1, GRID.shape)


@pytest.mark.parametrize("cutoff", [None, 0.7])
def test_layer_is_the_papers_equation(cutoff: float | None) -> None:
    layer = SphericalAttention(6, GRID, cutoff=cutoff).double()
    x = torch.randn(2, 6, *GRID.shape, dtype=torch.float64)
    torch.testing.assert_close(layer(x), plain(layer, x))


@pytest.mark.parametrize("cutoff", [None, 0.9])
def test_heads_are_independent(cutoff: float | None) -> None:
    layer = SphericalAttention(6, GRID, heads=3, cutoff=cutoff).double()
    torch.nn.init.eye_(layer.out.weight)
    x = torch.randn(1, 6, *GRID.shape, dtype=torch.float64)
    before = layer(x)
    with torch.no_grad():
        for row in (2, 3):  # the queries of the second head
            layer.qkv.weight[row] += 1
    changed = (layer(x) != before).flatten(2).any(-1)[0]
    assert changed.tolist() == [False, False, True, True, False, False]


@pytest.mark.parametrize("cutoff", [None, 1.0])
@pytest.mark.parametrize("context_channels", [None, 3])
def test_cross_attention_between_grids(cutoff, context_channels) -> None:
    layer = SphericalAttention(
        4,
        GRID,
        query_grid=OTHER,
        heads=2,
        cutoff=cutoff,
        context_channels=context_channels,
        key_channels=6,
        value_channels=10,
        out_channels=5,
        bias=True,
        qk_norm=True,
    )
    x = torch.randn(2, 4, *OTHER.shape)
    context = torch.randn(2, context_channels or 4, *GRID.shape)
    y = layer(x, context)
    assert y.shape == (2, 5, *OTHER.shape)
    y.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in layer.parameters())


def test_self_attention_is_cross_attention_with_itself() -> None:
    layer = SphericalAttention(4, GRID, heads=2, cutoff=0.8, bias=True).double()
    x = torch.randn(2, 4, *GRID.shape, dtype=torch.float64)
    torch.testing.assert_close(layer(x), layer(x, x))


def test_masked_keys_have_no_influence() -> None:
    for cutoff in (None, 1.0):
        layer = SphericalAttention(4, GRID, cutoff=cutoff)
        x = torch.randn(2, 4, *GRID.shape)
        mask = torch.rand(GRID.shape) < 0.7
        context = x.clone()
        context[:, :, ~mask] = torch.nan
        torch.testing.assert_close(layer(x, context, mask), layer(x, x, mask))
        torch.testing.assert_close(layer(x, x, mask.expand(2, -1, -1)), layer(x, x, mask))


def test_geometry_is_not_in_checkpoints() -> None:
    layer = SphericalAttention(4, GRID, cutoff=0.5, qk_norm=True)
    assert sorted(layer.state_dict()) == [
        "k_norm.weight",
        "out.weight",
        "q_norm.weight",
        "qkv.weight",
    ]
    other = SphericalAttention(4, OTHER, cutoff=0.9, qk_norm=True)
    other.load_state_dict(layer.state_dict())


def test_on_another_grid_shares_the_parameters() -> None:
    layer = SphericalAttention(4, GRID, cutoff=0.8, heads=2)
    twin = layer.on(OTHER)
    assert twin.qkv.weight is layer.qkv.weight
    assert layer.grid == GRID
    assert twin(torch.randn(1, 4, *OTHER.shape)).shape == (1, 4, *OTHER.shape)
    assert twin.neighborhood.key_grid == OTHER
    assert layer.on(GRID).neighborhood == layer.neighborhood


def test_same_operator_on_finer_grids_converges() -> None:
    layer = SphericalAttention(3, GRID, cutoff=0.8, edge_width=0.2).double()
    values = []
    for n in (16, 32, 64):
        grid = Grid.clenshaw_curtis(n + 1, 2 * n)
        x = torch.tensor(grid.xyz.T.copy()).unflatten(-1, grid.shape)[None]
        values.append(layer.on(grid)(x)[..., :: n // 16, :: n // 16].detach())
    coarse, fine = ((v - values[-1]).abs().max() for v in values[:2])
    assert fine < coarse / 2


def test_dropout_only_while_training() -> None:
    layer = SphericalAttention(4, GRID, dropout=0.5)
    x = torch.randn(1, 4, *GRID.shape)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


def test_half_precision_under_autocast_trains() -> None:
    for cutoff in (None, 0.8):
        layer = SphericalAttention(8, GRID, heads=2, cutoff=cutoff)
        x = torch.randn(2, 8, *GRID.shape)
        with torch.autocast("cpu", torch.bfloat16):
            y = layer(x)
        assert y.dtype == torch.bfloat16
        y.float().square().mean().backward()
        assert layer.qkv.weight.grad.isfinite().all()
        assert (y.float() - layer(x)).abs().max() < 0.05


@pytest.mark.parametrize("cutoff", [None, 0.8])
def test_compiles_and_exports_whole(cutoff: float | None, unchecked) -> None:
    layer = SphericalAttention(4, GRID, heads=2, cutoff=cutoff)
    x = torch.randn(1, 4, *GRID.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = torch.export.export(layer, (x,)).module()(x)
        compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")(x)
    torch.testing.assert_close(exported, layer(x))
    torch.testing.assert_close(compiled, layer(x))


def test_bad_input_is_named(unchecked) -> None:
    layer = SphericalAttention(4, GRID, cutoff=0.8)
    cross = SphericalAttention(4, GRID, query_grid=OTHER)
    for call, words in [
        (lambda: layer(torch.zeros(1, 5, 8, 16)), r"x: expected \(batch, 4, 8, 16\)"),
        (lambda: layer(torch.zeros(4, 8, 16)), r"got \(4, 8, 16\)"),
        (lambda: layer(torch.zeros(1, 4, 8, 16), torch.zeros(1, 4, 16, 8)), "context: expected"),
        (lambda: cross(torch.zeros(1, 4, *OTHER.shape)), "as context"),
        (
            lambda: SphericalAttention(6, GRID, heads=4),
            "key_channels=6 must be a multiple of heads=4",
        ),
        (lambda: SphericalAttention(6, GRID, cutoff=0.5, dropout=0.1), "never forms the weights"),
        (lambda: SphericalAttention(6, GRID, dropout=1.5), "dropout=1.5"),
        (lambda: SphericalAttention(6, GRID, edge_width=0.1), "edge_width=0.1 needs a cutoff"),
        (lambda: SphericalAttention(6, GRID, cutoff=45.0), r"math.radians\(45"),
    ]:
        with pytest.raises(ValueError, match=words):
            call()


@pytest.mark.parametrize("cross", [False, True])
def test_keys_and_values_that_are_sent_in_one_tensor_are_those_that_stay(cross: bool) -> None:
    class Echo(torch.nn.Module):
        exchanges = True

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x

    layer = SphericalAttention(6, GRID, heads=2, cutoff=0.9)
    x = torch.randn(2, 6, *GRID.shape)
    context = (torch.randn(2, 6, *GRID.shape),) if cross else ()
    alone = layer(x, *context)
    layer.halo = Echo()
    torch.testing.assert_close(layer(x, *context), alone)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_takes_heads_as_projections_leave_them(heads: int, monkeypatch) -> None:
    """Forward and backward, no field is copied on the way: all that passes between the two lies
    head by head and row by row.
    """
    seen: list[torch.Tensor] = []
    for module, name, fields in (
        (attention_cpu, "backward", lambda a: [*a[:3], a[6], a[8], *a[-1]]),
        (pointwise_cpu, "linear_backward", lambda a: [x for x in (a[0], *a[2]) if x.ndim == 4]),
    ):
        real = getattr(module, name)

        def note(*arguments, real=real, fields=fields):
            seen.extend(fields(arguments))
            return real(*arguments)

        monkeypatch.setattr(module, name, note)
    layer = SphericalAttention(8, GRID, heads=heads, cutoff=0.9, key_channels=24, value_channels=16)
    layer(torch.randn(2, 8, *GRID.shape)).sum().backward()
    assert len(seen) == 8 + 1 + 3
    assert all(x.shape[1] == heads and x.is_contiguous() for x in seen)
    if heads == 1:
        assert all(x.is_contiguous() for x in seen)
