"""The table of docs/autograd.md: what differentiates how, and what refuses."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradgradcheck
from torch.func import grad, jvp, vmap
from torch.utils.checkpoint import checkpoint

from spherule import Grid, Neighborhood, nn, objectives, ops
from spherule.geometry.filters import Stencil
from spherule.ops.global_attention import library

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),  # vmap's, of slow loops
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # torch's own, in forward mode
]

GRID, COARSE = Grid.gauss(6, 12), Grid.octahedral(3)


def randn(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def attention() -> tuple[Callable, tuple[Tensor, ...]]:
    disk = Neighborhood.disk(COARSE, COARSE, 0.9, edge_width=0.3)
    mask = torch.arange(COARSE.size) % 5 != 0

    def both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, lse = ops.neighborhood_attention(q, k, v, disk, key_mask=mask, return_lse=True)
        return torch.cat([out, lse[..., None]], -1)

    return both, tuple(randn(1, 2, COARSE.size, 2) for _ in range(3))


def disco() -> tuple[Callable, tuple[Tensor, ...]]:
    stencil = Stencil.hats(GRID, COARSE)
    return lambda x, w: ops.disco(x, w, stencil), (
        randn(1, 2, *GRID.shape),
        randn(2, 2, stencil.basis),
    )


def resample() -> tuple[Callable, tuple[Tensor, ...]]:
    return lambda u: ops.resample(u, GRID, COARSE), (randn(1, 2, *GRID.shape),)


def resample_layer() -> tuple[Callable, tuple[Tensor, ...]]:
    return nn.Resample(GRID, COARSE).double(), (randn(1, 2, *GRID.shape),)


def mix() -> tuple[Callable, tuple[Tensor, ...]]:
    layer = nn.SpectralMix(2, 2, COARSE, lmax=2).double()
    zonal = nn.ZonalMix(2, 2, COARSE, lmax=2, reach=1).double()
    return lambda x: zonal(layer(x)), (randn(1, 2, *COARSE.shape),)


def transform() -> tuple[Callable, tuple[Tensor, ...]]:
    return lambda u: ops.power_spectrum(ops.sht(u, GRID, 5)), (randn(2, *GRID.shape),)


def sobolev() -> tuple[Callable, tuple[Tensor, ...]]:
    return lambda x, y: objectives.sobolev(x, y, GRID), tuple(randn(1, 2, 6, 12) for _ in range(2))


def whole() -> tuple[Callable, tuple[Tensor, ...]]:
    def both(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out, lse = ops.global_attention(q, k, v, COARSE, return_lse=True)
        return torch.cat([out, lse[..., None]], -1)

    return both, tuple(randn(1, 2, COARSE.size, 2) for _ in range(3))


CASES = [attention, disco, resample, resample_layer, mix, transform, sobolev, whole]
OPERATORS = [attention, disco, resample, resample_layer, mix, sobolev]


@pytest.mark.parametrize("case", CASES)
def test_forward_mode_is_the_slope(case: Callable) -> None:
    f, inputs = case()
    tangents = tuple(torch.randn_like(x) for x in inputs)
    value, slope = jvp(f, inputs, tangents)
    ahead, behind = (
        f(*(x + h * t for x, t in zip(inputs, tangents, strict=True))) for h in (1e-6, -1e-6)
    )
    assert torch.allclose(value, f(*inputs))
    assert (slope - (ahead - behind) / 2e-6).norm() < 1e-7 * slope.norm()


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_gradients_are_slopes(case: Callable) -> None:
    f, inputs = case()
    assert gradgradcheck(
        lambda *x: f(*x).pow(2).sum(), tuple(x.requires_grad_() for x in inputs), fast_mode=True
    )


@pytest.mark.parametrize("case", CASES)
def test_vmap_is_a_loop(case: Callable) -> None:
    f, inputs = case()
    batches = tuple(torch.stack([x, x.flip(-1)]) for x in inputs)
    expected = torch.stack([f(*(x[i] for x in batches)) for i in range(2)])
    assert torch.allclose(vmap(f)(*batches), expected)


@pytest.mark.parametrize("case", OPERATORS)
def test_a_backward_pass_inside_forward_mode_is_refused(case: Callable) -> None:
    f, (x, *rest) = case()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x.requires_grad_(), torch.randn_like(x))
        loss = f(dual, *rest).pow(2).sum()
        if case is attention:  # by the reference, which torch differentiates as it likes
            assert forward_ad.unpack_dual(torch.autograd.grad(loss, x)[0]).tangent is not None
            return
        with pytest.raises(NotImplementedError, match="take reverse mode twice"):
            torch.autograd.grad(loss, x)


@pytest.mark.parametrize("case", OPERATORS)
def test_functional_grad_is_refused_by_torch(case: Callable) -> None:
    f, (x, *rest) = case()
    with pytest.raises(RuntimeError, match="functorch transforms"):
        grad(lambda x: f(x, *rest).sum())(x)


@pytest.mark.parametrize("case", [transform, whole])
def test_functional_grad_is_the_gradient(case: Callable) -> None:
    f, (x, *rest) = case()
    (expected,) = torch.autograd.grad(f(x.requires_grad_(), *rest).sum(), x)
    assert torch.allclose(grad(lambda x: f(x, *rest).sum())(x.detach()), expected)


def test_the_fused_kernel_of_global_attention_refuses_by_itself(monkeypatch) -> None:
    monkeypatch.setattr(library, "_vector_bits", lambda: 0)
    q, k, v = (randn(1, 1, COARSE.size, 4) for _ in range(3))
    with pytest.raises(NotImplementedError, match="forward AD"):
        jvp(lambda q: ops.global_attention(q, k, v, COARSE), (q,), (q,))
    out = ops.global_attention(q.requires_grad_(), k, v, COARSE).pow(2).sum()
    (first,) = torch.autograd.grad(out, q, create_graph=True)
    with pytest.raises(RuntimeError, match="not implemented"):
        torch.autograd.grad(first.pow(2).sum(), q)


LAYERS: dict[str, Callable[[], torch.nn.Module]] = {
    "attention": lambda: nn.SphericalAttention(3, GRID, cutoff=0.9),
    "disco": lambda: nn.DiscoConv(3, 3, GRID),
    "norm": lambda: nn.SphericalInstanceNorm(3, GRID),
    "mlp": lambda: nn.Mlp(3, 5),
    "resample": lambda: nn.Resample(GRID, COARSE),
    "mix": lambda: nn.SpectralMix(3, 3, GRID, lmax=2),
}


@pytest.mark.parametrize("name", LAYERS)
def test_lazy_tensors_are_made_before_kernels_read_them(name: str) -> None:
    layer, x = LAYERS[name](), torch.randn(1, 3, *GRID.shape, requires_grad=True)
    # The second derivative of |y| is a tensor of zeros without memory.
    (slope,) = torch.autograd.grad(layer(x).abs().sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(slope.square().sum(), x, allow_unused=True)
    assert second is None or second.isfinite().all()
    negated = torch._neg_view(x.detach())
    assert negated.is_neg()
    torch.testing.assert_close(layer(negated), layer(-x))
    y = layer(x)
    seed = torch.randn_like(y)
    wanted = torch.autograd.grad(y, x, -seed, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(y, x, torch._neg_view(seed)), wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_many_gradients_at_once_are_those_one_by_one(name: str) -> None:
    layer, x = LAYERS[name]().double(), randn(1, 3, *GRID.shape).requires_grad_()
    y = layer(x)
    seeds = torch.randn(3, *y.shape, dtype=torch.float64)
    (together,) = torch.autograd.grad(y, x, seeds, is_grads_batched=True, retain_graph=True)
    single = [torch.autograd.grad(y, x, seed, retain_graph=True)[0] for seed in seeds]
    torch.testing.assert_close(together, torch.stack(single))


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_gradients_need_not_know_of_hooks_of_saved_tensors(name: str) -> None:
    layer, x = LAYERS[name]().double(), randn(1, 3, *GRID.shape).requires_grad_()

    def penalty(x: Tensor) -> Tensor:
        (slope,) = torch.autograd.grad(layer(x).pow(3).sum(), x, create_graph=True)
        return slope.square().sum()

    (wanted,) = torch.autograd.grad(penalty(x), x)
    with torch.autograd.graph.save_on_cpu():
        (found,) = torch.autograd.grad(penalty(x), x)
    torch.testing.assert_close(found, wanted)
    (again,) = torch.autograd.grad(checkpoint(penalty, x, use_reentrant=False), x)
    torch.testing.assert_close(again, wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_layers_without_values_have_shapes(name: str) -> None:
    layer, x = LAYERS[name](), torch.randn(2, 3, *GRID.shape)
    assert layer.to("meta")(x.to("meta")).shape == LAYERS[name]()(x).shape
