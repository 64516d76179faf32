import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from spherule import Grid, ops
from tests.oracles import SMALL_GRIDS

PAIRS = [
    ("gauss:{0}x{1}", "fejer:37x61@0.5"),
    ("clenshaw_curtis:{0}x{1}", "H13"),
    ("equiangular:{0}x{1}", "O17"),
    ("O{2}", "clenshaw_curtis:31x60"),
    ("H{2}", "lobatto:31x60"),
]


def smooth(grid: Grid) -> torch.Tensor:
    x, y, z = grid.xyz.T
    return torch.tensor((np.exp(x) + y * z**2 + np.sin(2 * z + x)).reshape(grid.shape))


names = st.sampled_from(SMALL_GRIDS[:-1])


@given(source=names, target=names)
def test_constants_stay_constant(source: str, target: str) -> None:
    source, target = Grid.from_name(source), Grid.from_name(target)
    u = torch.full((2, *source.shape), 0.3, dtype=torch.float64)
    expected = torch.full((2, *target.shape), 0.3, dtype=torch.float64)
    torch.testing.assert_close(ops.resample(u, source, target), expected, rtol=0, atol=1e-15)
    assert torch.equal(ops.resample(u, source, target, mode="nearest"), expected)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_bilinear_is_second_order_everywhere(source: str, target: str) -> None:
    fine = Grid.from_name(target)
    errors = []
    for n in (16, 32, 64):
        grid = Grid.from_name(source.format(n, 2 * n, n))
        errors.append((ops.resample(smooth(grid), grid, fine) - smooth(fine)).abs().max().item())
    assert errors[0] / errors[1] > 3
    assert errors[1] / errors[2] > 3
    assert errors[2] < 5e-3


@given(name=names)
def test_same_grid_is_the_identity(name: str) -> None:
    grid = Grid.from_name(name)
    u = torch.randn(3, *grid.shape, dtype=torch.float64)
    torch.testing.assert_close(ops.resample(u, grid, grid), u, rtol=0, atol=1e-15)


@given(source=names, target=names)
def test_nearest_is_the_nearest_on_the_sphere(source: str, target: str) -> None:
    source, target = Grid.from_name(source), Grid.from_name(target)
    labels = torch.arange(source.size).reshape(source.shape)
    chosen = ops.resample(labels, source, target, mode="nearest").flatten().numpy()
    distance = np.linalg.norm(source.xyz[chosen] - target.xyz, axis=-1)
    least, _ = cKDTree(source.xyz).query(target.xyz)
    np.testing.assert_allclose(distance, least, atol=1e-7)


def test_nearest_on_very_uneven_rings() -> None:
    source = Grid.gauss(60, 4)
    target = Grid.healpix(8)
    chosen = ops.resample(
        torch.arange(source.size).reshape(source.shape), source, target, mode="nearest"
    ).numpy()
    distance = np.linalg.norm(source.xyz[chosen] - target.xyz, axis=-1)
    least, _ = cKDTree(source.xyz).query(target.xyz)
    np.testing.assert_allclose(distance, least, atol=1e-7)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_longitude_rolls_commute(mode: str) -> None:
    source, target = Grid.gauss(8, 12), Grid.fejer(10, 24)
    u = torch.randn(source.shape, dtype=torch.float64)
    rolled = ops.resample(u.roll(1, -1), source, target, mode=mode)
    if mode == "bilinear":
        torch.testing.assert_close(rolled, ops.resample(u, source, target).roll(2, -1))
    else:  # halfway points may go either way, but only to one of two neighbors
        same = rolled == ops.resample(u, source, target, mode=mode).roll(2, -1)
        assert same.float().mean() > 0.45


def test_gradients() -> None:
    source, target = Grid.octahedral(2), Grid.gauss(3, 5)
    u = torch.randn(2, *source.shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda u: ops.resample(u, source, target), (u,))
    assert torch.autograd.gradgradcheck(lambda u: ops.resample(u, source, target), (u,))
    assert torch.autograd.gradcheck(lambda u: ops.resample(u, source, target, mode="nearest"), (u,))


def test_op_is_well_registered_and_compiles() -> None:
    from spherule.ops.resample import _average
    from spherule.ops.sparse import sparse_map

    source, target = Grid.octahedral(2), Grid.gauss(3, 5)
    matrix = _average("bilinear", source, target, torch.float64, torch.device("cpu"))
    u = torch.randn(2, source.size, dtype=torch.float64, requires_grad=True)
    torch.library.opcheck(sparse_map.overload, (u, *matrix))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_other_precisions(dtype: torch.dtype) -> None:
    source, target = Grid.gauss(8, 16), Grid.healpix(4)
    u = smooth(source)
    low = ops.resample(u.to(dtype), source, target)
    assert low.dtype == dtype
    error = (low.double() - ops.resample(u, source, target)).abs().max()
    assert error < 8 * torch.finfo(dtype).eps


def test_empty_batch() -> None:
    source, target = Grid.gauss(4, 8), Grid.octahedral(3)
    assert ops.resample(torch.zeros(0, 2, 4, 8), source, target).shape == (0, 2, target.size)


def test_bad_input_is_named(unchecked) -> None:
    source, target = Grid.gauss(4, 8), Grid.octahedral(3)
    with pytest.raises(TypeError, match="nearest"):
        ops.resample(torch.zeros(4, 8, dtype=torch.int64), source, target)
    with pytest.raises(ValueError, match=r"u: expected \(..., 4, 8\)"):
        ops.resample(torch.zeros(8, 4), source, target)
    with pytest.raises(ValueError, match="cubic"):
        ops.resample(torch.zeros(4, 8), source, target, mode="cubic")
