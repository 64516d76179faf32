import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from scipy.special import sph_harm_y, spherical_in
from torch import Tensor

from spherule import Grid, ops
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.global_attention import global_attention, library
from spherule.ops.neighborhood_attention import neighborhood_attention

GRIDS = ["gauss:8x16", "equiangular:8x12", "H3", "O4"]


@pytest.fixture(autouse=True, params=[512, 0], ids=["library", "torch"])
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever vectors this machine has: the library's kernel, and torch's."""
    monkeypatch.setattr(library, "_vector_bits", lambda: request.param)


@pytest.mark.parametrize("kappa", [1.0, 5.0, 10.0])
@pytest.mark.parametrize(("dtype", "limit"), [(torch.float64, 1e-13), (torch.float32, 2e-6)])
def test_bessel_oracle(kappa: float, dtype: torch.dtype, limit: float) -> None:
    """q = k = sqrt(kappa) x is a von Mises-Fisher kernel, whose eigenvalues are i_l(kappa) /
    i_0(kappa).
    """
    grid = Grid.gauss(24, 48)
    x = torch.tensor(math.sqrt(kappa) * grid.xyz, dtype=dtype)[None, None]
    degrees = np.repeat(np.arange(5), 2 * np.arange(5) + 1)
    orders = np.concatenate([np.arange(-l, l + 1) for l in range(5)])
    y = sph_harm_y(
        degrees, np.abs(orders), *(a[:, None] for a in (grid.point_theta, grid.point_phi))
    )
    v = torch.tensor(np.where(orders < 0, y.imag, y.real) * np.where(orders == 0, 1, 2**0.5))[
        None, None
    ]
    exact = v * torch.tensor(spherical_in(degrees, kappa) / spherical_in(0, kappa))
    for out in (
        global_attention(x, x, v.to(dtype), grid, scale=1.0),
        neighborhood_attention(
            x, x, v.to(dtype), Neighborhood.disk(grid, grid, math.pi), scale=1.0
        ),
    ):
        assert (out - exact).abs().max() <= limit


def random_qkv(queries: int, keys: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    return [torch.randn(2, 3, n, 5, dtype=dtype) for n in (queries, keys, keys)]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("key", GRIDS)
def test_disk_of_radius_pi_equals_global_attention(key: str, masked: bool) -> None:
    query, key = Grid.gauss(5, 9), Grid.from_name(key)
    q, k, v = (x.requires_grad_() for x in random_qkv(query.size, key.size))
    mask = torch.rand(2, key.size) > 0.5 if masked else None
    local = neighborhood_attention(
        q, k, v, Neighborhood.disk(query, key, math.pi), key_mask=mask, return_lse=True
    )
    for results in (
        (global_attention(q, k, v, key, key_mask=mask),),
        global_attention(q, k, v, key, key_mask=mask, return_lse=True),
    ):
        for ours, theirs in zip(results, local, strict=False):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)
        weights = [torch.randn_like(x) for x in results]
        grads, expected = (
            torch.autograd.grad(r, (q, k, v), weights, retain_graph=True)
            for r in (results, local[: len(results)])
        )
        for ours, theirs in zip(grads, expected, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("key", GRIDS)
def test_unweighted_is_plain_attention(key: str) -> None:
    key = Grid.from_name(key)
    qkv = [x.requires_grad_() for x in random_qkv(7, key.size)]
    mask = torch.rand(2, key.size) > 0.5
    for given in (None, mask):
        ours = global_attention(*qkv, key, weighted=False, key_mask=given)
        wanted = None if given is None else given[:, None, None]
        plain = torch.nn.functional.scaled_dot_product_attention(*qkv, attn_mask=wanted)
        torch.testing.assert_close(ours, plain, rtol=0, atol=1e-13)
        dy = torch.randn_like(plain)
        for a, b in zip(*(torch.autograd.grad(y, qkv, dy) for y in (ours, plain)), strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    ("batch", "heads", "queries"), [(1, 1, 7), (1, 1, 1), (2, 3, 8), (0, 1, 4)]
)
def test_number_of_threads_changes_nothing(batch, heads, queries, masked) -> None:
    """Queries are shared among threads in slices, the last one filled up."""
    grid = Grid.gauss(4, 8)
    q, k, v = (x[:batch, :heads].requires_grad_() for x in random_qkv(queries, grid.size))
    mask, results = torch.rand(batch, grid.size) > 0.5 if masked else None, []
    dy = torch.randn(batch, heads, queries, 5, dtype=torch.float64)
    for threads in (1, 2, 4, 40):
        torch.set_num_threads(threads)
        out = global_attention(q, k, v, grid, key_mask=mask)
        results.append([out, *torch.autograd.grad(out, (q, k, v), dy)])
    torch.set_num_threads(1)
    for result in results[1:]:
        for a, b in zip(result, results[0], strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-13)


@pytest.mark.parametrize("value_dim", [1, 5, 12])
def test_value_dim_is_free(value_dim: int) -> None:
    grid = Grid.healpix(2)
    q, k, _ = random_qkv(7, grid.size)
    v = torch.randn(2, 3, grid.size, value_dim, dtype=torch.float64)
    out = global_attention(q, k, v, grid)
    weights = ((q @ k.mT) / math.sqrt(5)).softmax(-1)
    torch.testing.assert_close(out, weights @ v)


@pytest.mark.parametrize("return_lse", [False, True])
def test_gradients(return_lse: bool) -> None:
    grid = Grid.equiangular(4, 6)
    qkv = [x[:1, :1].requires_grad_() for x in random_qkv(3, grid.size)]
    mask = torch.rand(grid.size) > 0.3
    torch.autograd.gradcheck(
        lambda *x: global_attention(*x, grid, key_mask=mask, return_lse=return_lse), qkv
    )


def test_masked_keys_have_no_influence_even_as_nan() -> None:
    grid = Grid.gauss(6, 12)
    q, k, v = random_qkv(4, grid.size)
    mask = torch.rand(2, grid.size) > 0.5
    mask[1] = False
    out, lse = global_attention(q, k, v, grid, key_mask=mask, return_lse=True)
    k, v = (x.masked_fill(~mask[:, None, :, None], math.nan) for x in (k, v))
    torch.testing.assert_close(global_attention(q, k, v, grid, key_mask=mask), out)
    assert torch.equal(out[1], torch.zeros_like(out[1]))
    assert torch.all(lse[1] == -math.inf)


def test_dropout_keeps_the_mean() -> None:
    grid = Grid.healpix(2)
    q, k, v = random_qkv(2, grid.size)
    out = global_attention(q, k, v, grid)
    drops = torch.stack([global_attention(q, k, v, grid, dropout_p=0.2) for _ in range(400)])
    assert drops.std(0).min() > 0
    torch.testing.assert_close(drops.mean(0), out, rtol=0, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_round_only_once(dtype: torch.dtype) -> None:
    grid = Grid.gauss(12, 24)
    qkv = random_qkv(9, grid.size, dtype)
    exact = global_attention(*(x.double() for x in qkv), grid)
    out = global_attention(*qkv, grid)
    assert out.dtype == dtype
    assert (out - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()
    with torch.autocast("cpu", dtype):
        cast = global_attention(*(x.float() for x in qkv), grid)
    assert torch.equal(cast, out)


@pytest.mark.usefixtures("unchecked")
def test_compiles_as_one_graph_and_exports() -> None:
    grid = Grid.gauss(4, 8)

    class Module(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            return global_attention(q, k, v, grid)

    qkv = tuple(random_qkv(3, grid.size))
    expected = Module()(*qkv)
    for threads in (1, 2):
        torch.set_num_threads(threads)
        compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(*qkv), expected)
        torch.testing.assert_close(torch.export.export(Module(), qkv).module()(*qkv), expected)
    torch.set_num_threads(1)


def test_rotation_error_is_small_at_49_rings() -> None:
    errors = []
    grid = Grid.gauss(49, 98)
    for seed in range(5):
        rng = torch.Generator().manual_seed(seed)
        coeffs = torch.randn(3, 16, 13, 13, dtype=torch.complex128, generator=rng).tril()
        coeffs[..., 0] = coeffs[..., 0].real.to(coeffs.dtype) * math.sqrt(2)
        coeffs *= math.sqrt(4 * math.pi / 169 / 2)
        R = Rotation.random(random_state=seed).as_matrix()

        def attend(queries: Tensor, c: Tensor) -> Tensor:
            """Attention at any query vectors, keys and values from coefficients."""
            k, v = ops.isht(c[1:], grid).flatten(-2).mT[:, None, None]
            return global_attention(queries[None, None], k, v, grid)[0, 0]

        # Queries are the same points before and after, so that nothing is compared but the sums
        # over keys.
        points = ops.isht(coeffs[0], grid).flatten(-2).mT[::7]
        here, there = attend(points, coeffs), attend(points, ops.rotate(coeffs, R))
        errors.append(float((here - there).norm() / here.norm()))
    assert max(errors) <= 5e-5


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named() -> None:
    grid = Grid.gauss(4, 8)
    q, k, v = random_qkv(3, grid.size)
    with pytest.raises(ValueError, match=r"k has 31 points, but Grid\(gauss:4x8.* has 32"):
        global_attention(q, k[:, :, 1:], v[:, :, 1:], grid)
    with pytest.raises(ValueError, match=r"must agree, got q \(2, 3, 3, 5\), k \(2, 3, 32, 4\)"):
        global_attention(q, k[..., 1:], v, grid)
    with pytest.raises(TypeError, match="key_grid: expected a Grid, got str"):
        global_attention(q, k, v, "gauss:4x8")
