import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import sph_harm_y
from torch import Tensor

from spherule import Grid, native, ops
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.neighborhood_attention import attend, neighborhood_attention, reference

GRIDS = [
    "gauss:5x10",
    "gauss:4x13@0.25",
    "clenshaw_curtis:5x8",
    "equiangular:5x7",
    "fejer:5x3",
    "lobatto:4x24",
    "H1",
    "H2",
    "O2",
]


@pytest.fixture(autouse=True)
def _poison() -> None:
    """Memory that a kernel forgets to fill is NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@dataclass(frozen=True)
class Case:
    query: str
    key: str
    cutoff: float
    """Between the least that leaves no disk empty, 0, and the whole sphere, 1."""
    edge: float
    weighted: bool
    window: tuple[int, int] | None
    batch: int
    heads: int
    dim: int
    value_dim: int
    dtype: torch.dtype
    mask: str
    channels_first: bool
    seed: int

    @cached_property
    def neighborhood(self) -> Neighborhood:
        if self.window is not None:
            return Neighborhood.window(self.window, (7, 5))
        query, key = Grid.from_name(self.query), Grid.from_name(self.key)
        least = 2.5 * max(key.spacing, float(np.diff(key.theta, append=np.pi).max()))
        cutoff = min(least + self.cutoff * (math.pi - least), math.pi)
        edge = self.edge * min(cutoff, 0.8)
        return Neighborhood.disk(query, key, cutoff, edge_width=edge, weighted=self.weighted)

    def inputs(self) -> tuple[list[Tensor], Tensor | None]:
        rng = torch.Generator().manual_seed(self.seed)
        nb = self.neighborhood
        sizes = [(nb.queries, self.dim), (nb.keys, self.dim), (nb.keys, self.value_dim)]
        tensors = []
        for points, dim in [*sizes, (nb.queries, self.value_dim)]:
            x = torch.randn(self.batch, self.heads, dim, points, generator=rng).to(self.dtype)
            x = x.transpose(-1, -2)
            tensors.append(x if self.channels_first else x.contiguous())
        shape = {"none": None, "points": (nb.keys,), "batches": (self.batch, nb.keys)}[self.mask]
        mask = None if shape is None else torch.rand(shape, generator=rng) > 0.6
        return tensors, mask


DIMS = st.sampled_from([1, 3, 7, 8, 16, 40])
CASES = st.builds(
    Case,
    query=st.sampled_from(GRIDS),
    key=st.sampled_from(GRIDS),
    cutoff=st.floats(0, 1),
    edge=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    weighted=st.booleans(),
    window=st.sampled_from([None] * 9 + [(9, 4), (3, 1), (8, 16)]),
    batch=st.integers(1, 2),
    heads=st.sampled_from([1, 1, 2, 3, 9]),
    dim=DIMS,
    value_dim=DIMS,
    dtype=st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.float16]),
    mask=st.sampled_from(["none", "points", "batches"]),
    channels_first=st.booleans(),
    seed=st.integers(0, 1000),
)


def results(attention, inputs: list[Tensor], neighborhood: Neighborhood, mask: Tensor | None):
    """out, lse and the gradients of q, k, v, with lse = 0 where there are no keys."""
    *qkv, grad = inputs
    leaves = [x.detach().requires_grad_() for x in qkv]
    out, lse = attention(*leaves, neighborhood, leaves[0].shape[-1] ** -0.5, mask)
    lse = torch.where(lse > -torch.inf, lse, 0)
    weights = torch.linspace(-1, 1, lse.shape[-1], dtype=lse.dtype)
    grads = torch.autograd.grad(
        (out * grad).double().sum() + (lse * weights).double().sum(), leaves
    )
    return {"out": out, "lse": lse, **dict(zip(("dq", "dk", "dv"), grads, strict=True))}


def kernel(q, k, v, neighborhood, scale, mask):
    return neighborhood_attention(
        q, k, v, neighborhood, scale=scale, key_mask=mask, return_lse=True
    )


def test_native_library_is_there() -> None:
    """Without it the tests below would compare the reference with itself."""
    assert native.load()[0] is not None, native.load()[1]


@settings(max_examples=300)
@given(case=CASES)
def test_kernel_matches_reference_in_value_and_gradients(case: Case) -> None:
    inputs, mask = case.inputs()
    exact = results(
        reference.neighborhood_attention, [x.double() for x in inputs], case.neighborhood, mask
    )
    ours = results(kernel, inputs, case.neighborhood, mask)
    plain = results(reference.neighborhood_attention, inputs, case.neighborhood, mask)
    for name, value in exact.items():
        size = value.abs().max().item()
        error, allowed = ((x[name].double() - value).abs().max().item() for x in (ours, plain))
        assert ours[name].dtype == plain[name].dtype
        if case.dtype == torch.float64:
            limit = 1e-12 * max(size, 1e-3)
        else:
            limit = 1.5 * allowed + 4 * torch.finfo(ours[name].dtype).eps * max(size, 1e-3)
            limit *= 2 if name.startswith("d") else 1
        assert error <= limit, f"{name}: error {error:.2e} above {limit:.2e}"


def random_qkv(neighborhood: Neighborhood, *, heads: int = 2, dim: int = 5, dtype=torch.float64):
    points = (neighborhood.queries, neighborhood.keys, neighborhood.keys)
    return [torch.randn(2, heads, n, dim, dtype=dtype) for n in points]


SMALL = Neighborhood.disk(Grid.octahedral(3), Grid.gauss(4, 7), 1.4, edge_width=0.4)
TINY = Neighborhood.disk(Grid.healpix(1), Grid.gauss(3, 5), 1.4, edge_width=0.4)
SELF = Neighborhood.disk(Grid.gauss(8, 16), Grid.gauss(8, 16), 0.9)


@pytest.mark.parametrize("neighborhood", [TINY, Neighborhood.window((4, 3), (3, 3))])
def test_gradients_of_out_and_lse(neighborhood: Neighborhood) -> None:
    qkv = [x[:1].requires_grad_() for x in random_qkv(neighborhood, heads=1, dim=2)]
    mask = torch.rand(neighborhood.keys) > 0.3
    torch.autograd.gradcheck(
        lambda *x: neighborhood_attention(*x, neighborhood, key_mask=mask, return_lse=True), qkv
    )


@pytest.mark.parametrize("last", ["channels", "points", "heads"])
def test_operator_is_registered_as_torch_expects(last: str) -> None:
    qkv = random_qkv(SMALL)
    swapped = {"channels": None, "points": (-1, -2), "heads": (1, 2)}[last]
    if swapped is not None:
        qkv = [x.transpose(*swapped).contiguous().transpose(*swapped) for x in qkv]
    qkv = [x.requires_grad_() for x in qkv]
    for mask in (None, torch.rand(2, SMALL.keys) > 0.3):
        torch.library.opcheck(attend.overload, (*qkv, mask, SMALL.name, 0.5))


@pytest.mark.usefixtures("unchecked")
def test_compiles_as_one_graph_and_exports() -> None:
    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return neighborhood_attention(q, k, v, SMALL)

    qkv = random_qkv(SMALL)
    expected = Module()(*qkv)
    leaves = [x.clone().requires_grad_() for x in qkv]
    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")(*leaves)
    torch.testing.assert_close(compiled, expected)
    assert all(g.isfinite().all() for g in torch.autograd.grad(compiled.sum(), leaves))
    exported = torch.export.export(Module(), tuple(qkv))
    torch.testing.assert_close(exported.module()(*qkv), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_in_its_dtype(dtype: torch.dtype) -> None:
    qkv = random_qkv(SMALL, dtype=torch.float32)
    with torch.autocast("cpu", dtype):
        out = neighborhood_attention(*qkv, SMALL)
        double = neighborhood_attention(*(x.double() for x in qkv), SMALL)
    assert out.dtype == dtype
    assert torch.equal(out, neighborhood_attention(*(x.to(dtype) for x in qkv), SMALL))
    assert double.dtype == torch.float64


def test_strides_do_not_matter() -> None:
    qkv = random_qkv(SELF, dim=6)
    plain = neighborhood_attention(*qkv, SELF)
    views = {
        "channels first": [x.mT.contiguous().mT for x in qkv],
        "heads inside": [x.transpose(1, 2).contiguous().transpose(1, 2) for x in qkv],
        "every other": [torch.stack([x, x], dim=-1).flatten(-2)[..., ::2] for x in qkv],
        "reversed batch": [x.flip(0).contiguous().flip(0) for x in qkv],
    }
    for name, view in views.items():
        assert torch.equal(neighborhood_attention(*view, SELF), plain), name
    one = [x[:1, :1] for x in qkv]
    expanded = neighborhood_attention(*(x.expand(3, 2, -1, -1) for x in one), SELF)
    assert torch.equal(expanded, neighborhood_attention(*one, SELF).expand(3, 2, -1, -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_number_of_threads_gives_the_same_bits(dtype: torch.dtype) -> None:
    grid = Grid.octahedral(12)
    neighborhood = Neighborhood.disk(grid, grid, 0.5, edge_width=0.1)
    inputs = [*random_qkv(neighborhood, dtype=dtype), torch.randn(2, 2, grid.size, 5, dtype=dtype)]
    threads = torch.get_num_threads()
    found = []
    for n in (1, 2, 3, 2):
        torch.set_num_threads(n)
        found.append(results(kernel, inputs, neighborhood, None))
    torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(value, other[name]) for name, value in found[0].items())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1e4, -1e4])
def test_large_logits_stay_finite(dtype: torch.dtype, size: float) -> None:
    q, k, v = random_qkv(SELF, dim=1, dtype=dtype)
    q, k = torch.full_like(q, size), 1 + k.sign() / 100
    found = results(kernel, [q, k, v, torch.ones_like(q)], SELF, None)
    assert all(x.isfinite().all() for x in found.values())
    expected = results(
        reference.neighborhood_attention,
        [x.double() for x in (q, k, v, torch.ones_like(q))],
        SELF,
        None,
    )
    torch.testing.assert_close(found["out"].double(), expected["out"], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("heads", [1, 2])
def test_rows_that_are_used_in_place_stay_as_they_are(heads: int) -> None:
    """Whole vectors, channels last: nothing is copied, and weights are large enough that the
    backward pass divides by their sum.
    """
    qkv = [x.requires_grad_() for x in random_qkv(SELF, heads=heads, dim=16)]
    dout = torch.randn(2, heads, SELF.queries, 16, dtype=torch.float64)
    before = [x.detach().clone() for x in (*qkv, dout)]
    out = neighborhood_attention(*qkv, SELF, scale=200.0)
    grads = torch.autograd.grad(out, qkv, dout)
    assert all(torch.equal(x, y) for x, y in zip((*qkv, dout), before, strict=True))
    assert all(g.is_contiguous() for g in (out, *grads))
    turned = [x.detach().mT.contiguous().mT.requires_grad_() for x in qkv]
    again = neighborhood_attention(*turned, SELF, scale=200.0)
    assert torch.equal(again, out)
    torch.testing.assert_close(torch.autograd.grad(again, turned, dout), grads)


def test_equal_logits_give_the_weighted_mean() -> None:
    q, k, v = random_qkv(SELF, dtype=torch.float32)
    out = neighborhood_attention(q, torch.zeros_like(k), v, SELF)
    i = 37
    w = torch.tensor(SELF.weights(i))
    mean = (w[:, None] * v[:, :, SELF.indices(i)].double()).sum(2) / w.sum()
    torch.testing.assert_close(out[:, :, i].double(), mean, rtol=0, atol=1e-6)


@pytest.mark.parametrize("where", ["k", "v"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    "neighborhood",
    [
        SELF,
        SMALL,
        Neighborhood.disk(Grid.healpix(4), Grid.octahedral(5), 0.7),
        Neighborhood.window((8, 9), (5, 5)),
    ],
    ids=lambda n: n.name,
)
def test_nan_reaches_only_the_queries_whose_disk_holds_it(
    neighborhood: Neighborhood, value: float, where: str
) -> None:
    for key in (0, neighborhood.keys // 2, neighborhood.keys - 1):
        q, k, v = random_qkv(neighborhood, dtype=torch.float32)
        (k if where == "k" else v)[0, 0, key] = value
        found = results(kernel, [q, k, v, torch.ones_like(q)], neighborhood, None)
        touched = torch.zeros(neighborhood.queries, dtype=torch.bool)
        touched[neighborhood.transpose.indices(key)] = True
        assert found["out"][0, 0][~touched].isfinite().all()
        assert found["dq"][0, 0][~touched].isfinite().all()
        assert found["out"][0, 1].isfinite().all()
        if where == "v" or math.isnan(value):
            positive = torch.tensor(neighborhood.transpose.weights(key)) > 0
            held = torch.tensor(neighborhood.transpose.indices(key))[positive]
            assert not found["out"][0, 0, held].isfinite().all(dim=-1).any()


def test_masked_keys_have_no_influence_even_as_nan() -> None:
    q, k, v = random_qkv(SELF)
    mask = torch.rand(2, SELF.keys) > 0.5
    clean = results(kernel, [q, k, v, torch.ones_like(q)], SELF, mask)
    k, v = (x.masked_fill(~mask[:, None, :, None], math.nan) for x in (k, v))
    dirty = results(kernel, [q, k, v, torch.ones_like(q)], SELF, mask)
    assert all(torch.equal(clean[name], dirty[name]) for name in clean)
    assert (clean["dk"].abs().sum((1, 3)) > 0).eq(mask).all()


def test_query_without_keys_gets_zeros() -> None:
    q, k, v = random_qkv(SELF)
    mask = torch.ones(SELF.keys, dtype=torch.bool)
    mask[SELF.indices(5)] = False
    out, lse = neighborhood_attention(q, k, v, SELF, key_mask=mask, return_lse=True)
    assert torch.equal(out[:, :, 5], torch.zeros_like(out[:, :, 5]))
    assert torch.all(lse[:, :, 5] == -math.inf)
    assert lse[:, :, SELF.queries - 1].isfinite().all()


def test_pole_of_weight_zero_contributes_nothing() -> None:
    grid = Grid.equiangular(8, 12)
    neighborhood = Neighborhood.disk(grid, grid, 0.9)
    q, k, v = random_qkv(neighborhood)
    clean = neighborhood_attention(q, k, v, neighborhood)
    k[:, :, :12], v[:, :, :12] = math.nan, math.nan
    assert torch.equal(neighborhood_attention(q, k, v, neighborhood), clean)


def test_results_of_parts_merge_by_their_lse() -> None:
    q, k, v = random_qkv(SELF)
    mask = torch.rand(SELF.keys) > 0.5
    whole, total = neighborhood_attention(q, k, v, SELF, return_lse=True)
    parts = [
        neighborhood_attention(q, k, v, SELF, key_mask=m, return_lse=True) for m in (mask, ~mask)
    ]
    merged = sum(out * (lse - total).exp()[..., None] for out, lse in parts)
    torch.testing.assert_close(merged, whole)


def test_a_constant_added_to_all_logits_changes_nothing() -> None:
    q, k, v = random_qkv(SELF)
    shifted = (
        torch.cat([q, torch.ones_like(q[..., :1])], -1),
        torch.cat([k, torch.full_like(k[..., :1], 7.0)], -1),
    )
    out = neighborhood_attention(*shifted, v, SELF, scale=0.5)
    torch.testing.assert_close(out, neighborhood_attention(q, k, v, SELF, scale=0.5))


@pytest.mark.parametrize("edge_width", [0.0, 0.2])
def test_longitude_roll_and_flip_commute_with_attention(edge_width: float) -> None:
    grid = Grid.gauss(9, 20)
    neighborhood = Neighborhood.disk(grid, grid, 0.6, edge_width=edge_width)
    qkv = random_qkv(neighborhood)
    field = neighborhood_attention(*qkv, neighborhood).unflatten(2, grid.shape)
    for move in (lambda x: x.roll(7, dims=3), lambda x: x.flip(2), lambda x: x.flip(3)):
        moved = (move(x.unflatten(2, grid.shape)).flatten(2, 3) for x in qkv)
        out = neighborhood_attention(*moved, neighborhood).unflatten(2, grid.shape)
        torch.testing.assert_close(out, move(field))


def legendre(l: int, x: float) -> float:
    return float(np.polynomial.legendre.Legendre.basis(l)(x))


def harmonics(grid: Grid, l: int) -> Tensor:
    """All real harmonics of a degree, (points, 2 l + 1): together they prefer no direction."""
    values = sph_harm_y(l, np.arange(l + 1)[:, None], grid.point_theta, grid.point_phi)
    return torch.tensor(
        np.concatenate([values[:1].real, *(2**0.5 * x[1:] for x in (values.real, values.imag))]).T
    )


def cap_error(grid: Grid, cutoff: float, l: int, edge_width: float = 0.0) -> float:
    """Relative rms error of averages over disks; exactly, they are multiples of the harmonic."""
    neighborhood = Neighborhood.disk(grid, grid, cutoff, edge_width=edge_width)
    v = harmonics(grid, l)
    zero = torch.zeros(1, 1, grid.size, 1, dtype=torch.float64)
    out = neighborhood_attention(zero, zero, v[None, None], neighborhood)[0, 0]
    c = math.cos(cutoff)
    exact = v * (legendre(l - 1, c) - legendre(l + 1, c)) / ((2 * l + 1) * (1 - c))
    return float((out - exact).square().mean().sqrt() / exact.square().mean().sqrt())


@pytest.mark.parametrize("family", ["gauss", "healpix", "octahedral"])
def test_averages_over_caps_converge_to_their_closed_form(family: str) -> None:
    make = {
        "gauss": lambda n: Grid.gauss(n, 2 * n),
        "healpix": lambda n: Grid.healpix(n // 2),
        "octahedral": lambda n: Grid.octahedral(n // 2),
    }[family]
    errors = [np.mean([cap_error(make(n), c, 3) for c in (0.4, 0.5, 0.6)]) for n in (16, 32, 64)]
    assert errors[2] < 0.5 * errors[1] < 0.3 * errors[0]
    assert errors[2] < 0.01


@pytest.mark.parametrize(("cutoff", "l"), [(0.3, 1), (0.3, 4), (math.pi / 4, 8)])
def test_soft_edges_average_caps_three_times_better(cutoff: float, l: int) -> None:
    grid = Grid.gauss(64, 128)
    assert 3 * cap_error(grid, cutoff, l, grid.spacing) < cap_error(grid, cutoff, l)


def rotation_error(n: int, cutoff: float, edge: bool, seed: int = 0) -> float:
    from scipy.spatial.transform import Rotation

    grid, rng = Grid.gauss(n, 2 * n), torch.Generator().manual_seed(seed)
    neighborhood = Neighborhood.disk(grid, grid, cutoff, edge_width=grid.spacing if edge else 0.0)
    coeffs = torch.randn(3, 16, 13, 13, dtype=torch.complex128, generator=rng).tril()
    coeffs[..., 0] = coeffs[..., 0].real.to(coeffs.dtype) * math.sqrt(2)
    coeffs *= math.sqrt(4 * math.pi / 169 / 2)
    R = Rotation.random(random_state=seed).as_matrix()

    def attend(c: Tensor) -> Tensor:
        q, k, v = ops.isht(c, grid).flatten(-2).mT[:, None, None]
        return neighborhood_attention(q, k, v, neighborhood)[0, 0].mT.unflatten(-1, grid.shape)

    # Compared as coefficients: the output of attention is not of degree 12, but its low degrees
    # rotate alike.
    there = ops.rotate(ops.sht(attend(coeffs), grid, grid.lmax), R)
    here = ops.sht(attend(ops.rotate(coeffs, R)), grid, grid.lmax)
    low = (..., slice(0, 13), slice(0, 13))
    return float(
        (there[low] - here[low]).abs().square().sum().sqrt() / here[low].abs().square().sum().sqrt()
    )


def test_rotation_error_falls_with_resolution_and_with_soft_edges() -> None:
    coarse, fine = (
        max(rotation_error(n, math.pi / 4, False, s) for s in range(3)) for n in (25, 49)
    )
    soft = max(rotation_error(49, math.pi / 4, True, s) for s in range(3))
    assert soft < fine < coarse
    assert fine < 0.05


def test_works_without_the_native_library(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [*random_qkv(SMALL), torch.randn(2, 2, SMALL.queries, 5, dtype=torch.float64)]
    mask = torch.rand(2, SMALL.keys) > 0.3
    with_library = results(kernel, inputs, SMALL, mask)
    monkeypatch.setattr(native, "load", lambda: (None, "absent"))
    without = results(kernel, inputs, SMALL, mask)
    for name, value in with_library.items():
        torch.testing.assert_close(without[name], value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_empty_batch(dtype: torch.dtype) -> None:
    qkv = [x[:0].to(dtype).requires_grad_() for x in random_qkv(SMALL)]
    out, lse = neighborhood_attention(*qkv, SMALL, return_lse=True)
    assert out.shape == (0, 2, SMALL.queries, 5)
    assert lse.shape == (0, 2, SMALL.queries)
    assert all(g.numel() == 0 for g in torch.autograd.grad(out.sum(), qkv))


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named() -> None:
    q, k, v = random_qkv(SELF)
    with pytest.raises(
        ValueError, match=r"q has 127 points, but Neighborhood\(disk .* expects 128"
    ):
        neighborhood_attention(q[:, :, 1:], k, v, SELF)
    with pytest.raises(
        ValueError, match=r"k has 127 points, but Neighborhood\(disk .* expects 128"
    ):
        neighborhood_attention(q, k[:, :, 1:], v[:, :, 1:], SELF)
    with pytest.raises(ValueError, match=r"k \(2, 2, 128, 4\)"):
        neighborhood_attention(q, k[..., 1:], v, SELF)
    with pytest.raises(ValueError, match=r"expected \(batch, heads, points, dim\)"):
        neighborhood_attention(q[0], k, v, SELF)
    with pytest.raises(TypeError, match=r"torch.float64, torch.float32"):
        neighborhood_attention(q, k.float(), v, SELF)
    with pytest.raises(ValueError, match=r"one device, got cpu, cpu, meta"):
        neighborhood_attention(q, k, v.to("meta"), SELF)
    with pytest.raises(TypeError, match="key_mask: expected a bool tensor"):
        neighborhood_attention(q, k, v, SELF, key_mask=torch.ones(128))
    with pytest.raises(ValueError, match=r"key_mask: expected \(128,\) or \(2, 128\)"):
        neighborhood_attention(q, k, v, SELF, key_mask=torch.ones(3, 128, dtype=torch.bool))
    with pytest.raises(ValueError, match="expected the neighborhood itself, not its transpose"):
        neighborhood_attention(q, k, v, SELF.transpose)
    with pytest.raises(TypeError, match="neighborhood: expected a Neighborhood, got Grid"):
        neighborhood_attention(q, k, v, Grid.gauss(8, 16))
