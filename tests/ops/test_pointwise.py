"""Maps over channels: the library beside the plain formulation, which also stands in for it."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from spherule.ops import norm, pointwise, served
from spherule.ops.pointwise import reference

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own

SHAPES = [(1, 1, 1, 1, 1), (2, 3, 5, 7, 2), (3, 130, 6, 20, 12), (2, 257, 17, 9, 33)]
"""Batch, points, channels in, hidden and out: no multiples of blocks, of tiles, of vectors."""


def inputs(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    batch, points, channels, hidden, out = shape
    sizes = {"x": (batch, channels, points), "first": (hidden, channels), "bias": (hidden,)}
    sizes |= {"second": (out, hidden)}
    return {n: torch.randn(s, dtype=dtype, requires_grad=True) for n, s in sizes.items()}


def gradients(y: Tensor, given: dict[str, Tensor], dy: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(y, [*given.values()], dy)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which functions of the library were called."""
    seen: list[str] = []
    real = pointwise.cpu.native.call

    def note(name: str, *arguments: object) -> None:
        seen.append(name)
        real(name, *arguments)

    monkeypatch.setattr(pointwise.cpu.native, "call", note)
    return seen


@pytest.mark.parametrize("shape", SHAPES)
def test_perceptron_is_the_plain_one_in_value_and_gradients(shape, calls) -> None:
    given = inputs(shape)
    y, plain = pointwise.mlp(**given), reference.mlp(**given)
    torch.testing.assert_close(y, plain, rtol=1e-13, atol=1e-13)
    dy = torch.randn_like(y)
    for ours, theirs in zip(gradients(y, given, dy), gradients(plain, given, dy), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert calls == ["spherule_mlp", "spherule_mlp_backward"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("layout", ["channels", "rows"])
def test_split_product_is_the_plain_one_in_value_and_gradients(
    shape, biased, layout, calls
) -> None:
    given = inputs(shape)
    if layout == "rows":
        given["x"] = given["x"].detach().mT.contiguous().mT.requires_grad_()
    given = {"x": given["x"], "weight": given["first"], "bias": given["bias"]}
    given = given if biased else {k: v for k, v in given.items() if k != "bias"}
    bias = given.get("bias")
    hidden = shape[3]
    widths = [hidden - 2 * (hidden // 3), hidden // 3, hidden // 3] if hidden > 2 else [hidden]
    parts = pointwise.split_linear(given["x"], given["weight"], bias, widths)
    assert [part.shape[1] for part in parts] == widths
    plain = reference.linear(given["x"], given["weight"], bias)
    y = torch.cat(parts, dim=1)
    torch.testing.assert_close(y, plain, rtol=1e-13, atol=1e-13)
    dy = torch.randn_like(y)
    dy = dy.mT.contiguous().mT if layout == "rows" else dy
    for ours, theirs in zip(gradients(y, given, dy), gradients(plain, given, dy), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert calls == ["spherule_linear", "spherule_linear_backward"]


@pytest.mark.parametrize("heads", [1, 2, 5])
@pytest.mark.parametrize("dims", [(1, 3), (7, 1), (16, 8), (33, 20)])
@pytest.mark.parametrize("points", [1, 130])
def test_products_by_heads_are_the_plain_ones(heads, dims, points, calls) -> None:
    """From heads of one size to fields of two, of memory that attention takes as it is."""
    shapes = [(2, heads, points, 3), (heads * (dims[0] + 2 * dims[1]), heads * 3)]
    shapes.append((shapes[1][0],))
    given = {
        name: torch.randn(shape, dtype=torch.float64, requires_grad=True)
        for name, shape in zip(("x", "weight", "bias"), shapes, strict=True)
    }
    widths = [heads * dim for dim in (*dims, dims[1])]
    parts = pointwise.split_linear(**given, widths=widths, heads=heads)
    plain = reference.linear(given["x"].mT.reshape(2, -1, points), given["weight"], given["bias"])
    for part, field in zip(parts, plain.split(widths, dim=1), strict=True):
        assert part.shape == (2, heads, points, field.shape[1] // heads)
        assert part.is_contiguous()
        torch.testing.assert_close(part.mT.reshape(field.shape), field, rtol=1e-13, atol=1e-13)
    dy = torch.randn_like(plain)
    dys = [
        d.reshape(part.mT.shape).mT.clone(memory_format=torch.contiguous_format)
        for d, part in zip(dy.split(widths, dim=1), parts, strict=True)
    ]
    found = torch.autograd.grad(parts, [*given.values()], dys)
    assert found[0].is_contiguous()
    for ours, theirs in zip(found, gradients(plain, given, dy), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)
    assert calls == ["spherule_linear", "spherule_linear_backward"]
    torch.testing.assert_close(pointwise.linear(**given), plain, rtol=1e-13, atol=1e-13)


def test_heads_differentiate_twice_and_go_by_the_reference() -> None:
    x, weight = (torch.randn(s, dtype=torch.float64) for s in ((1, 2, 3, 2), (6, 4)))

    def product(x: Tensor, weight: Tensor) -> list[Tensor]:
        return pointwise.split_linear(x, weight, None, [4, 2], 2)

    inputs = (x.requires_grad_(), weight.requires_grad_())
    assert gradgradcheck(lambda *given: tuple(product(*given)), inputs, fast_mode=True)
    mapped = torch.func.vmap(lambda w: product(x, w)[0])(weight[None])
    torch.testing.assert_close(mapped[0], product(x, weight)[0])


def test_only_the_gradients_that_are_wanted_are_made(calls) -> None:
    given = inputs(SHAPES[2])
    x, weight = given["x"], given["first"]
    dx, dweight = (
        torch.autograd.grad(pointwise.linear(*pair).square().sum(), one)[0]
        for pair, one in (((x, weight.detach()), x), ((x.detach(), weight), weight))
    )
    plain = reference.linear(x, weight, None).square().sum()
    torch.testing.assert_close((dx, dweight), torch.autograd.grad(plain, (x, weight)))
    assert calls.count("spherule_linear_backward") == 2


def test_fields_of_any_strides_and_expanded_gradients() -> None:
    given = inputs((4, 50, 6, 8, 5))
    plain = {name: t.detach() for name, t in given.items()}
    wide = torch.randn(4, 10, 50, dtype=torch.float64)
    for x in (wide[:, 2:8], wide.flip(0)[::2, ::2][:, :5].mT.contiguous().mT, wide[:1, :6]):
        first = plain["first"][:, : x.shape[1]]
        expected = reference.mlp(x, first, plain["bias"], plain["second"])
        y = pointwise.mlp(x, first, plain["bias"], plain["second"])
        torch.testing.assert_close(y, expected)
    pointwise.mlp(**given).sum().backward()
    (expected,) = torch.autograd.grad(reference.mlp(**given).sum(), given["x"])
    torch.testing.assert_close(given["x"].grad, expected)


def test_gelu_is_exact_to_rounding_over_its_whole_range() -> None:
    """Through maps that change nothing: first and second are 1."""
    for dtype, accuracy in ((torch.float64, 3e-16), (torch.float32, 2e-7)):
        one, zero = torch.ones(1, 1, dtype=dtype), torch.zeros(1, dtype=dtype)
        x = torch.linspace(-12, 12, 40001, dtype=dtype).reshape(1, 1, -1).requires_grad_()
        exact = x.detach().double().requires_grad_()
        y, expected = pointwise.mlp(x, one, zero, one), torch.nn.functional.gelu(exact)
        assert ((y - expected).abs() <= accuracy * (1 + exact.abs())).all()
        (slope,), (expected,) = (
            torch.autograd.grad(v.sum(), u) for v, u in ((y, x), (expected, exact))
        )
        assert ((slope - expected).abs() <= 4 * accuracy).all()
        assert pointwise.mlp(x.detach() * torch.nan, one, zero, one).isnan().all()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_bits_do_not_depend_on_threads(threads: int) -> None:
    given = inputs((3, 2000, 20, 40, 24), torch.float32)
    results = []
    for count in (1, threads):
        torch.set_num_threads(count)
        y = pointwise.mlp(**given)
        (z,) = pointwise.split_linear(y, given["second"].detach().mT, given["bias"], [40])
        results.append((z, *gradients(z, given, torch.ones_like(z))))
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)


def test_the_perceptron_keeps_nothing_but_its_input() -> None:
    given, kept = inputs((2, 64, 8, 32, 8)), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t):
        pointwise.mlp(**given)
    assert {t.data_ptr() for t in kept} <= {t.data_ptr() for t in given.values()}


def test_first_and_second_derivatives_are_slopes() -> None:
    given = tuple(inputs((2, 3, 2, 3, 2)).values())
    assert gradcheck(pointwise.mlp, given)
    assert gradgradcheck(pointwise.mlp, given, fast_mode=True)
    assert gradgradcheck(lambda x, w, b: pointwise.linear(x, w, b), given[:3], fast_mode=True)


def test_forward_mode_and_functional_transforms_go_by_the_reference(calls) -> None:
    given = inputs(SHAPES[1])
    detached = {name: t.detach() for name, t in given.items()}
    x, rest = detached["x"], [*detached.values()][1:]

    def f(x: Tensor) -> Tensor:
        return pointwise.mlp(x, *rest)

    tangent = torch.randn_like(x)
    _, slope = torch.func.jvp(f, (x,), (tangent,))
    ahead, behind = f(x + 1e-6 * tangent), f(x - 1e-6 * tangent)
    torch.testing.assert_close(slope, (ahead - behind) / 2e-6, rtol=1e-7, atol=1e-8)
    torch.testing.assert_close(torch.func.vmap(f)(torch.stack([x, 2 * x]))[1], f(2 * x))
    grad = torch.func.grad(lambda x: f(x).sum())(x)
    torch.testing.assert_close(grad, torch.autograd.grad(f(given["x"]).sum(), given["x"])[0])
    y = f(given["x"]).sum()
    with forward_ad.dual_level():  # a backward pass inside forward mode
        (dx,) = torch.autograd.grad(y, given["x"])
    torch.testing.assert_close(dx, grad)


@pytest.mark.parametrize(
    "case",
    [lambda x, w, b, s: pointwise.mlp(x, w, b, s), lambda x, w, b, s: pointwise.linear(x, w, b)],
)
def test_compiled_programs_call_the_library_and_exported_ones_do_not(
    case: Callable, unchecked: None
) -> None:
    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in inputs((2, 40, 6, 9, 4)).items():
                setattr(self, name, torch.nn.Parameter(value.detach()))

        def forward(self, x: Tensor) -> Tensor:
            return case(x, self.first, self.bias, self.second)

    module = Module()
    x = module.x.detach()
    graphs = []

    def backend(graph, _):
        graphs.append(graph.code)
        return graph

    compiled = torch.compile(module, backend=backend, fullgraph=True)
    torch.testing.assert_close(compiled(x), module(x))
    exported = torch.export.export(module, (x,))
    if hasattr(torch.compiler, "is_exporting"):  # else both go by the reference
        assert "spherule" in graphs[0]
        assert "spherule" not in exported.graph_module.code
    torch.testing.assert_close(exported.module()(x), module(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("has", [False, True])
def test_sixteen_bits_are_torchs_own_where_the_cpu_has_their_products(
    has: bool, dtype: torch.dtype, calls, monkeypatch
) -> None:
    monkeypatch.setattr(served, "_has_products", lambda bfloat16: has)
    monkeypatch.setattr(served, "_has_short_products", lambda: False)
    given = {name: t.detach().to(dtype) for name, t in inputs(SHAPES[2]).items()}
    wide = {name: t.detach().float().requires_grad_() for name, t in given.items()}
    wanted = reference.mlp(**{name: t.detach() for name, t in wide.items()})
    with torch.autocast("cpu", dtype):
        under = pointwise.mlp(**wide)
    for found in (pointwise.mlp(**given), under):
        assert found.dtype == dtype
        assert (found.float() - wanted).norm() < 0.02 * wanted.norm()
    first, second = pointwise.split_linear(given["x"], given["first"], given["bias"], [12, 8])
    assert first.dtype == second.dtype == dtype
    assert bool(calls) is not has
    under.float().sum().backward()
    assert all(t.grad.dtype == torch.float32 for t in wide.values())


@pytest.mark.parametrize("shape", [*SHAPES, (3, 300, 40, 80, 36)])
def test_products_of_bfloat16_round_inputs_and_outputs_only(shape, calls, monkeypatch) -> None:
    """Whatever this CPU has: where there are no such products, the library emulates them."""
    monkeypatch.setattr(served, "_has_short_products", lambda: True)
    given = inputs(shape, torch.float32)
    short = {name: t.detach().bfloat16().double().requires_grad_() for name, t in given.items()}
    hidden = shape[3]
    widths = [hidden - hidden // 3, hidden // 3] if hidden > 2 else [hidden]
    for rows in (False, True):
        x = given["x"].mT.contiguous().mT if rows else given["x"]
        with torch.autocast("cpu", torch.bfloat16):
            y = pointwise.mlp(x, given["first"], given["bias"], given["second"])
            parts = pointwise.split_linear(x, given["first"], given["bias"], widths)
        assert {t.dtype for t in (y, *parts)} == {torch.bfloat16}
        exact = reference.mlp(**short)
        field = reference.linear(short["x"], short["first"], short["bias"])
        for found, wanted in ((y, exact), (torch.cat(parts, dim=1), field)):
            assert (found - wanted).norm() <= 0.01 * wanted.norm()
            dy = torch.randn_like(wanted).bfloat16()
            ours, theirs = (
                torch.autograd.grad(v, [*g.values()], seed, retain_graph=True, allow_unused=True)
                for v, g, seed in ((found, given, dy), (wanted, short, dy.double()))
            )
            for a, b in zip(ours, theirs, strict=True):
                assert (a is None) == (b is None)
                if a is not None and b is not None:
                    assert a.dtype == torch.float32
                    assert (a - b).norm() <= 0.02 * b.norm()
    assert len(calls) == 8


def test_compilers_are_told_the_right_shapes() -> None:
    def told(op: object, *arguments: object) -> None:
        torch.library.opcheck(op.overload, arguments, test_utils=("test_schema", "test_faketensor"))

    plain = {name: t.detach() for name, t in inputs((2, 7, 3, 5, 4)).items()}
    x, first, bias = plain["x"], plain["first"], plain["bias"]
    dy = torch.randn(2, 5, 7).to(x)
    short = x.bfloat16()
    told(pointwise._linear, short, first, bias, [2, 3], False)
    told(pointwise._linear_backward, short, first, [dy.bfloat16()], [True, True, True])
    told(pointwise._mlp_backward, short, *[*plain.values()][1:], torch.randn(2, 4, 7).bfloat16())
    for field, rows in ((x, False), (x, True), (x.mT.contiguous().mT, False)):
        told(pointwise._linear, field, first, bias, [2, 3], rows)
        told(pointwise._linear_backward, field, first, [dy], [True, False, True])
    told(pointwise._mlp, *plain.values())
    told(pointwise._mlp_backward, *plain.values(), torch.randn(2, 4, 7).to(x))
    weights, channel = torch.rand(7).to(x), torch.randn(2, 3).to(x)
    told(norm._moments, x, weights)
    single = [t.float() for t in (weights, channel, channel[0])]
    told(norm._instance_norm, short, single[0], single[2], single[2], 1e-5)
    told(norm._standardize_backward, short, single[1], single[1], short)
    told(norm._moments_backward, x, weights, channel, channel, channel)
    told(norm._standardize, x, channel, channel, channel)
    told(norm._standardize_backward, x, channel, channel, x)
    told(norm._instance_norm, x, weights, channel[0], channel[0], 1e-5)
    told(norm._instance_norm_backward, x, weights, channel[0], channel, channel, x)
