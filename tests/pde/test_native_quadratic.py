import pytest
import torch
from torch.autograd import forward_ad

from spherule import Grid, native
from spherule.pde import ShallowWater
from spherule.pde.initial_states import random_states
from spherule.pde.native_quadratic import preferred
from spherule.pde.transform import pack, quadratic_grid

pytestmark = pytest.mark.skipif(native.load()[0] is None, reason="no native library")

TOLERANCE = {torch.float64: 3e-14, torch.float32: 3e-6}


def solver(lmax: int, dtype: torch.dtype = torch.float64) -> ShallowWater:
    return ShallowWater(Grid.gauss(lmax + 1, 2 * lmax + 2), lmax=lmax, dtype=dtype, tilt=0.3)


def spectra(lmax: int, states: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return pack(random_states(lmax, states).to(dtype.to_complex()))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("states", [1, 2, 5])
@pytest.mark.parametrize("lmax", [1, 2, 3, 4, 13, 42, 64])
def test_the_library_agrees_with_products_of_torch(lmax: int, states: int, dtype) -> None:
    equations, y = solver(lmax, dtype).equations, spectra(lmax, states, dtype)
    y[0, 0, 0, :, 0] = 0  # the mean stays out of the transforms
    expected, result = equations._quadratic(y), equations._native(y)
    scale = expected.square().mean((0, 1, 3, 4), keepdim=True).sqrt()
    assert ((result - expected) / scale).abs().max() < TOLERANCE[dtype] * (lmax + 1)


@pytest.mark.parametrize("states", [1, 7])
def test_bits_do_not_depend_on_threads_or_on_other_states(states: int) -> None:
    equations, y = solver(21, torch.float32).equations, spectra(21, states, torch.float32)
    before, results = torch.get_num_threads(), []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        results.append(equations._native(y))
    torch.set_num_threads(before)
    alone = torch.cat([equations._native(y[:, :, :, i : i + 1]) for i in range(states)], dim=3)
    for result in (*results[1:], alone):
        assert torch.equal(result, results[0])


def test_a_state_of_nan_stays_alone() -> None:
    equations, y = solver(8).equations, spectra(8, 4)
    expected = equations._native(y)
    y[3, 0, 1, 2] = torch.nan
    result = equations._native(y)
    assert result[:, :, :, 2].isnan().any()
    others = [0, 1, 3]
    assert torch.equal(result[:, :, :, others], expected[:, :, :, others])


def test_gradients_and_forward_mode_go_by_torch() -> None:
    y = spectra(6, 1)
    assert preferred(y)
    wanted = y.clone().requires_grad_()
    assert not preferred(wanted)
    with torch.no_grad():
        assert preferred(wanted)
    equations, mean = solver(6).equations, torch.full((1, 1), 1e5, dtype=torch.float64)
    direction = torch.randn_like(y)
    with forward_ad.dual_level():
        dual = equations.tendency(forward_ad.make_dual(y, direction), mean)
        value, tangent = forward_ad.unpack_dual(dual)
    assert torch.allclose(value, equations.tendency(y, mean), rtol=1e-12, atol=0)
    step = 1e-4
    ahead, behind = (equations.tendency(y + s * direction, mean) for s in (step, -step))
    difference = (ahead - behind) / (2 * step)  # exact: the terms are quadratic
    assert (difference - tangent).norm() < 1e-6 * tangent.norm()


def test_gradients_are_to_be_had_after_inference() -> None:
    equations, y = solver(4).equations, spectra(4, 1)
    with torch.inference_mode():
        equations._quadratic(y)
    wanted = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(equations._quadratic(wanted).sum(), wanted)
    assert slope.isfinite().all()


@pytest.mark.parametrize("lmax", range(1, 9))
def test_rings_come_in_pairs_and_longitudes_in_fours(lmax: int) -> None:
    nlat, nlon = quadratic_grid(lmax).shape
    assert (nlat % 2, nlon % 4) == (0, 0)
    assert nlat - (3 * lmax + 2) // 2 in range(2)
    assert nlon - (3 * lmax + 1) in range(4)
