import itertools

import ducc0
import healpy
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spherule import Grid, ops
from spherule.ops import ring_spectra
from spherule.ops.sht import to_orders, to_points
from tests.oracles import REGULAR, SMALL_GRIDS, ducc_synthesis, packed, random_coeffs

EXACT = [
    "gauss:128x256",
    "gauss:128x255@0.5",
    "clenshaw_curtis:129x256",
    "fejer:128x256",
    "equiangular:128x257",
    "lobatto:129x256",
]


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "gauss:128x256", "H32", "O48", "N48"])
def test_synthesis_is_duccs_also_beyond_the_rings_nyquist(name: str) -> None:
    grid = Grid.from_name(name)
    for lmax in (0, 1, grid.lmax, 2 * grid.lmax + 3):
        coeffs = random_coeffs(lmax)
        u = ops.isht(coeffs, grid)
        expected = ducc_synthesis(coeffs, grid)[0]
        assert np.abs(u.numpy() - expected).max() <= 1e-12 * np.abs(expected).max()


def test_rings_go_by_the_real_fft_beyond_their_nyquist_too(monkeypatch) -> None:
    """Half the work of the complex one."""
    u = torch.randn(5, 12, dtype=torch.float64)
    for name in ("fft", "ifft"):
        monkeypatch.setattr(torch.fft, name, None)
    phi = 2 * torch.pi / 12 * torch.arange(12, dtype=torch.float64)
    waves = torch.exp(-1j * torch.arange(30)[:, None] * phi)
    for mmax in (5, 6, 7, 12, 29):
        orders = to_orders(u, Grid.gauss(5, 12), mmax)
        torch.testing.assert_close(orders, (u + 0j) @ waves[: mmax + 1].mT)
        twice = torch.where(torch.arange(mmax + 1) > 0, 2.0, 1.0).double()
        expected = ((orders * twice) @ waves[: mmax + 1].conj()).real
        torch.testing.assert_close(to_points(orders, Grid.gauss(5, 12)), expected)


@pytest.mark.parametrize("name", EXACT)
def test_round_trip_is_exact(name: str) -> None:
    grid = Grid.from_name(name)
    coeffs = random_coeffs(127)
    assert (ops.sht(ops.isht(coeffs, grid), grid, 127) - coeffs).abs().max() <= 1e-12


@given(
    family=st.sampled_from(REGULAR),
    nlat=st.integers(2, 12),
    nlon=st.integers(1, 26),
    offset=st.sampled_from(["", "@0.5", "@0.3"]),
    batch=st.lists(st.integers(0, 2), max_size=2),
)
def test_round_trip_at_every_size(family, nlat, nlon, offset, batch) -> None:
    grid = Grid.from_name(f"{family}:{nlat}x{nlon}{offset}")
    coeffs = random_coeffs(grid.lmax, *batch)
    u = ops.isht(coeffs, grid)
    assert u.shape == (*batch, *grid.shape)
    again = ops.sht(u, grid, grid.lmax)
    assert again.shape == coeffs.shape
    torch.testing.assert_close(again, coeffs, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("geometry", "family"), [("CC", "clenshaw_curtis"), ("F1", "fejer"), ("GL", "gauss")]
)
@pytest.mark.parametrize("nlat", [16, 33])
def test_analysis_of_any_data_is_duccs(geometry: str, family: str, nlat: int) -> None:
    grid = Grid.from_name(f"{family}:{nlat}x{2 * nlat + 3}")
    u = torch.randn(grid.shape, dtype=torch.float64)
    expected = ducc0.sht.analysis_2d(map=u.numpy()[None], spin=0, lmax=grid.lmax, geometry=geometry)
    np.testing.assert_allclose(packed(ops.sht(u, grid, grid.lmax)), expected[0], atol=1e-12)


@pytest.mark.parametrize("name", ["gauss:12x24", "lobatto:13x24", "H4", "H3", "O6", "N32"])
def test_analysis_by_weights_is_the_weighted_adjoint_of_synthesis(name: str) -> None:
    grid = Grid.from_name(name)
    lmax = grid.lmax
    coeffs, u = random_coeffs(lmax), torch.randn(grid.shape, dtype=torch.float64)
    over_points = (u * torch.tensor(grid.weights) * ops.isht(coeffs, grid)).sum()
    both_signs = torch.where(torch.arange(lmax + 1) > 0, 2.0, 1.0)
    over_degrees = (ops.sht(u, grid, lmax).conj() * coeffs * both_signs).sum().real
    assert abs(over_points - over_degrees) <= 1e-12 * abs(over_points).clamp(min=1)


def test_healpix_analysis_is_healpys_with_and_without_iterations() -> None:
    grid, lmax = Grid.healpix(8), 16
    u = torch.randn(grid.shape, dtype=torch.float64)
    for iterations in (0, 3):
        expected = healpy.map2alm(u.numpy(), lmax=lmax, iter=iterations)
        ours = packed(ops.sht(u, grid, lmax, iterations=iterations))
        np.testing.assert_allclose(ours, expected, atol=1e-12)


def test_iterations_shrink_the_error_on_healpix() -> None:
    grid = Grid.healpix(16)
    coeffs = random_coeffs(32)
    u = ops.isht(coeffs, grid)
    errors = [
        ((ops.sht(u, grid, 32, iterations=k) - coeffs).norm() / coeffs.norm()).item()
        for k in range(4)
    ]
    assert errors[0] < 0.02
    for before, after in itertools.pairwise(errors):
        assert after < before / 4


def test_single_precision_is_close_to_double() -> None:
    for name in ("gauss:64x128", "clenshaw_curtis:65x128", "H16"):
        grid = Grid.from_name(name)
        u = torch.randn(3, *grid.shape, dtype=torch.float64)
        double = ops.sht(u, grid, 40)
        single = ops.sht(u.float(), grid, 40)
        assert single.dtype == torch.complex64
        assert (single - double).norm() / double.norm() < 1e-6
        assert ops.isht(single, grid).dtype == torch.float32


def test_imaginary_part_of_order_zero_is_ignored() -> None:
    for name in ("gauss:6x12", "gauss:6x4", "O6"):
        grid = Grid.from_name(name)
        coeffs = random_coeffs(5)
        changed = coeffs.clone()
        changed[:, 0] += 1j
        torch.testing.assert_close(
            ops.isht(changed, grid), ops.isht(coeffs, grid), rtol=0, atol=1e-14
        )


def test_longitude_roll_is_a_phase() -> None:
    grid = Grid.fejer(10, 21)
    u = torch.randn(grid.shape, dtype=torch.float64)
    phase = torch.exp(-2j * torch.pi * 3 / 21 * torch.arange(10, dtype=torch.float64))
    torch.testing.assert_close(ops.sht(u.roll(3, -1), grid, 9), ops.sht(u, grid, 9) * phase)


@pytest.mark.parametrize("name", ["gauss:5x10", "clenshaw_curtis:5x7", "gauss:5x4", "H2", "O2"])
def test_gradients(name: str) -> None:
    grid = Grid.from_name(name)
    u = torch.randn(2, *grid.shape, dtype=torch.float64, requires_grad=True)
    coeffs = random_coeffs(3, 2).requires_grad_()
    assert torch.autograd.gradcheck(lambda u: ops.sht(u, grid, min(3, grid.lmax)), (u,))
    assert torch.autograd.gradcheck(lambda c: ops.isht(c, grid), (coeffs,))


@pytest.mark.parametrize("name", ["H4", "O6", "N32"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rings_folded_by_the_library_are_those_folded_one_by_one(name, dtype, monkeypatch) -> None:
    """Fields that start anywhere in memory, all orders from none to many times around."""
    grid = Grid.from_name(name)
    for mmax in (0, 3, 17, 90):
        u = torch.randn(3, 2, *grid.shape, dtype=dtype)[1:]
        orders = to_orders(u, grid, mmax).conj()[:, 1:]
        made = [(to_orders(u, grid, mmax), to_points(orders, grid))]
        with monkeypatch.context() as patch:
            patch.setattr(ring_spectra, "preferred", lambda *_: False)
            made.append((to_orders(u, grid, mmax), to_points(orders, grid)))
        for ours, expected in zip(*made, strict=True):
            scale = expected.abs().max()
            tolerance = 1e-5 if dtype == torch.float32 else 1e-13
            torch.testing.assert_close(ours, expected, rtol=0, atol=tolerance * scale.item())


def test_data_of_any_strides() -> None:
    grid = Grid.gauss(6, 12)
    u = torch.randn(6, 3, 12, 2, dtype=torch.float64).permute(3, 1, 0, 2)
    torch.testing.assert_close(ops.sht(u, grid, 5), ops.sht(u.contiguous(), grid, 5))


def test_bad_input_is_named(unchecked) -> None:
    grid = Grid.gauss(6, 12)
    u, coeffs = torch.zeros(6, 12), torch.zeros(4, 4, dtype=torch.complex64)
    for call, error, words in [
        (lambda: ops.sht(torch.zeros(6, 13), grid, 5), ValueError, r"u: expected \(..., 6, 12\)"),
        (lambda: ops.sht(torch.zeros(12), grid, 5), ValueError, r"got \(12,\)"),
        (lambda: ops.sht(u.to(torch.int32), grid, 5), TypeError, "int32"),
        (lambda: ops.sht(u.to(torch.complex64), grid, 5), TypeError, "complex64"),
        (lambda: ops.sht(u.bfloat16(), grid, 5), TypeError, "bfloat16"),
        (lambda: ops.sht(u.numpy(), grid, 5), TypeError, "torch tensor, got ndarray"),
        (lambda: ops.sht(u, grid, 6), ValueError, r"lmax=6 must be in \[0, 5\]"),
        (lambda: ops.sht(u, grid, -1), ValueError, "lmax=-1"),
        (lambda: ops.sht(u, grid, 2.0), TypeError, "lmax=2.0"),
        (lambda: ops.sht(u, grid, 2, iterations=-1), ValueError, "iterations=-1"),
        (lambda: ops.isht(coeffs.real, grid), TypeError, "coeffs: expected complex64"),
        (lambda: ops.isht(coeffs[:3], grid), ValueError, r"coeffs: expected \(..., lmax"),
    ]:
        with pytest.raises(error, match=words):
            call()
