import math

import numpy as np
import pytest
import torch
from scipy.special import sph_harm_y

from spherule import Grid, nn, ops

GRIDS = [Grid.gauss(8, 16), Grid.equiangular(9, 16), Grid.healpix(4), Grid.octahedral(4)]


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_instance_norm_integrates_over_the_sphere(grid: Grid) -> None:
    norm = nn.SphericalInstanceNorm(3, grid)
    x = 5 + 2 * torch.randn(2, 3, *grid.shape)
    y = norm(x)
    area = grid.weights.sum()
    mean = ops.integrate(y, grid) / area
    variance = ops.integrate(y**2, grid) / area
    torch.testing.assert_close(mean, torch.zeros(2, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(variance, torch.ones(2, 3), rtol=1e-4, atol=0)


def test_instance_norm_does_not_over_count_the_poles() -> None:
    """The statistics of a field do not depend on the grid; plain instance norm's do."""
    values = {}
    for kind in ("sphere", "plain"):
        values[kind] = []
        for grid in (Grid.gauss(32, 64), Grid.healpix(32)):
            z = torch.tensor(grid.xyz[:, 2].copy()).float().reshape(1, 1, *grid.shape)
            norm = (
                nn.SphericalInstanceNorm(1, grid) if kind == "sphere" else nn.PlainInstanceNorm(1)
            )
            values[kind].append((norm(z) / z).median().item())
    assert values["sphere"][0] == pytest.approx(math.sqrt(3), rel=1e-3)
    assert values["sphere"][1] == pytest.approx(math.sqrt(3), rel=1e-3)
    assert abs(values["plain"][0] - values["plain"][1]) > 0.2


def test_norms_are_differentiable_and_keep_their_place() -> None:
    grid = Grid.gauss(4, 8)
    for norm in (nn.SphericalInstanceNorm(2, grid), nn.PlainInstanceNorm(2), nn.ChannelNorm(2)):
        norm = norm.double()
        x = torch.randn(2, 2, 4, 8, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(norm, (x,))
        assert sorted(norm.state_dict()) == ["bias", "weight"]


def test_instance_norm_does_not_see_what_is_masked() -> None:
    grid = Grid.gauss(6, 12)
    norm, x = nn.SphericalInstanceNorm(3, grid), torch.randn(2, 3, 6, 12, requires_grad=True)
    mask = torch.rand(2, 6, 12) < 0.7
    seen = mask[:, None].expand_as(x)
    holes = norm(x.masked_fill(~seen, math.nan), mask)[seen]
    torch.testing.assert_close(holes, norm(x.masked_fill(~seen, 9.0), mask)[seen])
    (gradient,) = torch.autograd.grad(holes.square().sum(), x)
    assert gradient.isfinite().all()


def test_channel_norm_normalizes_each_point() -> None:
    y = nn.ChannelNorm(6)(torch.randn(2, 6, 4, 8))
    torch.testing.assert_close(y.mean(1), torch.zeros(2, 4, 8), rtol=0, atol=1e-5)


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_spectral_embedding_counts_the_harmonics(grid: Grid) -> None:
    embedding = nn.SpectralEmbedding(11, grid).embedding
    for k in range(11):
        l = math.isqrt(k)
        m = k - l * (l + 1)
        exact = (-1.0) ** m * sph_harm_y(l, abs(m), grid.point_theta, grid.point_phi)
        exact = exact.real if m == 0 else 2**0.5 * (exact.real if m > 0 else exact.imag)
        np.testing.assert_allclose(embedding[k].flatten(), exact, atol=1e-6)


def test_embeddings_add_to_the_field() -> None:
    grid = Grid.gauss(4, 8)
    x = torch.randn(2, 5, 4, 8)
    for cls in (nn.SpectralEmbedding, nn.LearnedEmbedding, nn.SequenceEmbedding):
        embedding = cls(5, grid)
        torch.testing.assert_close(embedding(x) - x, embedding.embedding.expand(2, -1, -1, -1))
    assert not nn.SpectralEmbedding(5, grid).state_dict()
    sequence = nn.SequenceEmbedding(5, grid).embedding.flatten(1)
    np.testing.assert_allclose(sequence[0], np.sin(np.arange(32)), atol=1e-5)
    np.testing.assert_allclose(sequence[3], np.cos(np.arange(32) * 1e4**-0.4), atol=1e-5)


def test_drop_path_keeps_the_mean_and_drops_whole_samples() -> None:
    drop = nn.DropPath(0.25)
    y = drop(torch.ones(4000, 3))
    assert y.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    assert (y == y[:, :1]).all()
    assert y.mean().item() == pytest.approx(1, abs=0.05)
    x = torch.randn(4, 3)
    assert torch.equal(drop.eval()(x), x)
    with pytest.raises(ValueError, match="rate=1"):
        nn.DropPath(1.0)


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("shape", [(8, 16), (7, 13)])
def test_planar_convolution_halves_and_pads_with_zeros(kernel: int, shape: tuple[int, int]) -> None:
    grid = Grid.fejer(*shape)
    for out in (grid, grid.coarsen()):
        conv = nn.PlanarConv(2, 3, grid, out, kernel=kernel)
        x = torch.ones(1, 2, *shape)
        y = conv(x)
        assert y.shape == (1, 3, *out.shape)
        inner = y[0, :, out.shape[0] // 2, out.shape[1] // 2]
        torch.testing.assert_close(inner, conv.weight.sum((1, 2, 3)))
        assert not torch.allclose(y[0, :, 0, 0], inner)


def test_planar_convolution_refuses_what_has_no_rows(unchecked) -> None:
    with pytest.raises(ValueError, match="rows and columns"):
        nn.PlanarConv(1, 1, Grid.healpix(2))
    with pytest.raises(ValueError, match="half of it"):
        nn.PlanarConv(1, 1, Grid.gauss(8, 16), Grid.gauss(5, 9))


def test_resample_layer_is_the_op() -> None:
    source, target = Grid.octahedral(4), Grid.gauss(6, 12)
    x = torch.randn(2, 3, source.size)
    layer = nn.Resample(source, target)
    torch.testing.assert_close(layer(x), ops.resample(x, source, target))
    assert not layer.state_dict()
    assert layer(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tables_keep_their_precision_in_modules_of_fewer_bits(dtype: torch.dtype) -> None:
    source, target = Grid.octahedral(4), Grid.gauss(6, 12)
    x = torch.randn(2, 3, source.size).to(dtype)
    resample, norm = nn.Resample(source, target), nn.SphericalInstanceNorm(3, source)
    exact = resample(x.float()), norm(x.float())
    for layer, wanted in zip((resample.to(dtype), norm.to(dtype)), exact, strict=True):
        found = layer(x)
        assert found.dtype == dtype
        rounding = torch.finfo(dtype).eps if dtype.itemsize == 2 else 1e-6
        assert (found.float() - wanted).abs().max() < rounding * wanted.abs().max()


def test_planar_upsampling_stops_at_the_borders() -> None:
    coarse, fine = Grid.gauss(4, 8), Grid.gauss(8, 16)
    layer = nn.PlanarResample(coarse, fine)
    impulse = torch.zeros(1, 1, 4, 8)
    impulse[..., 0, 0] = 1
    seen = layer(impulse)[0, 0] > 0
    assert seen[:3, :3].all()
    assert seen.sum() == 9
    across = nn.Resample(coarse, fine)(impulse)[0, 0] > 0
    assert across[0].all()  # over the pole
    assert across[1, -1]  # over the date line


@pytest.mark.parametrize("shape", [(8, 16), (7, 15), (4, 8)])
def test_planar_upsampling_keeps_planes_inside(shape: tuple[int, int]) -> None:
    coarse, fine = Grid.fejer(4, 8), Grid.fejer(*shape)
    ramp = nn.PlanarResample(coarse, fine)(torch.arange(8.0).expand(1, 1, 4, 8))
    scale = 8 / shape[1]
    expected = (torch.arange(shape[1]) + 0.5) * scale - 0.5
    torch.testing.assert_close(ramp, expected.clamp(0, 7).expand_as(ramp))
    with pytest.raises(ValueError, match="rows and columns"):
        nn.PlanarResample(Grid.healpix(2), fine)


def test_plain_instance_norm_takes_a_single_point() -> None:
    norm = nn.PlainInstanceNorm(3)
    y = norm(torch.randn(1, 3, 1, 1))
    torch.testing.assert_close(y, torch.zeros(1, 3, 1, 1), rtol=0, atol=1e-4)
    x = torch.randn(2, 3, 4, 8)
    expected = torch.nn.functional.instance_norm(x)
    torch.testing.assert_close(norm(x), expected)


def test_planar_attention_window_and_global() -> None:
    grid = Grid.gauss(8, 16)
    layer = nn.PlanarAttention(4, grid, window=7, out_bias=True)
    x = torch.randn(1, 4, 8, 16)
    changed = x.clone()
    changed[..., 0, 0] += 10
    seen = (layer(x) - layer(changed)).abs().amax(1)[0] > 1e-6
    assert seen[0, 0]
    assert not seen[:, 10:].any()
    assert not seen[7:].any()
    everywhere = nn.PlanarAttention(4, grid)
    assert ((everywhere(x) - everywhere(changed)).abs().amax(1) > 0).all()
    with pytest.raises(ValueError, match="rows and columns"):
        nn.PlanarAttention(4, Grid.healpix(2), window=7)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "layer",
    [
        nn.Mlp(4, 8),
        nn.ChannelNorm(4),
        nn.PlainInstanceNorm(4),
        nn.DiscoConv(4, 4, GRIDS[0]),
        nn.PlanarConv(4, 4, GRIDS[0]),
        nn.PlanarAttention(4, GRIDS[0], window=3),
        nn.SphericalAttention(4, GRIDS[0], cutoff=0.9),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_fields_of_another_dtype_than_the_weights_are_named(layer, dtype, unchecked) -> None:
    x = torch.randn(1, 4, *GRIDS[0].shape)
    with pytest.raises(TypeError, match=rf"x.*torch.float32.*{dtype}|x.*{dtype}.*torch.float32"):
        layer(x.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(x.bfloat16()).shape == x.shape


def test_what_is_added_has_as_many_samples(unchecked) -> None:
    mix = nn.SpectralMix(3, 3, GRIDS[0], 2)
    x = torch.randn(2, 3, *GRIDS[0].shape)
    with pytest.raises(ValueError, match="added: expected a batch of 2, as x has, got"):
        mix(x, x[:1])
