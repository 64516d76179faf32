import healpy
import numpy as np
import pytest
import torch

from spherule.grids import healpix


@pytest.mark.parametrize("nside", [1, 2, 4, 32, 256])
def test_orderings_are_healpys(nside: int) -> None:
    pixels = np.arange(12 * nside**2)
    assert np.array_equal(healpix.nest_to_ring(nside), healpy.nest2ring(nside, pixels))
    assert np.array_equal(healpix.ring_to_nest(nside), healpy.ring2nest(nside, pixels))


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("nside", [2, 8])
def test_pooling_is_the_mean_of_four_children(nside: int, nested: bool) -> None:
    u = torch.randn(3, 12 * nside**2, dtype=torch.float64)
    order = "NEST" if nested else "RING"
    expected = healpy.ud_grade(u.numpy(), nside // 2, order_in=order, order_out=order)
    pooled = healpix.pool(u, nested=nested)
    np.testing.assert_allclose(pooled, np.stack(expected), atol=1e-14)
    back = healpix.unpool(pooled, nested=nested)
    assert back.shape == u.shape
    np.testing.assert_allclose(healpix.pool(back, nested=nested), pooled, atol=1e-14)
    upsampled = healpy.ud_grade(pooled.numpy(), nside, order_in=order, order_out=order)
    np.testing.assert_allclose(back, np.stack(upsampled), atol=1e-14)


def test_pooling_keeps_gradients() -> None:
    u = torch.randn(12 * 4**2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda u: healpix.unpool(healpix.pool(u)), (u,))


def test_bad_input_is_named(unchecked) -> None:
    with pytest.raises(ValueError, match=r"12 nside\^2 points, got 13"):
        healpix.pool(torch.zeros(13))
    with pytest.raises(ValueError, match="nside=1 cannot be halved"):
        healpix.pool(torch.zeros(12))
    with pytest.raises(ValueError, match="nside=3"):
        healpix.nest_to_ring(3)
    with pytest.raises(ValueError, match="nside=3"):
        healpix.unpool(torch.zeros(108))
    with pytest.raises(TypeError, match="int64"):
        healpix.pool(torch.zeros(48, dtype=torch.int64))
