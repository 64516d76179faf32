"""Transforms whose Legendre functions are made on the fly, beside those by tables and ducc0's."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from spherule import Grid, native, ops
from spherule.geometry.transforms import SCALAR, SHEAR, SLOPE, Basis
from spherule.ops import colatitudes, legendre
from tests.oracles import SMALL_GRIDS, ducc_synthesis, packed, random_coeffs

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, forward mode


@pytest.fixture
def on_the_fly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legendre, "LARGEST_PRODUCT", 0)


def own_rings(theta: list[float], nphi: list[int]) -> Grid:
    weights = np.full(len(nphi), 4 * np.pi / sum(nphi))
    return Grid.from_rings(theta, nphi, np.zeros(len(nphi)), weights)


def both(monkeypatch: pytest.MonkeyPatch, call: Callable[[], torch.Tensor]) -> list[torch.Tensor]:
    results = []
    for largest in (2**40, 0):
        monkeypatch.setattr(legendre, "LARGEST_PRODUCT", largest)
        results.append(call())
    return results


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "gauss:1x2", "gauss:40x80", "O20", "own", "pole"])
@pytest.mark.parametrize("basis", [SCALAR, SLOPE, SHEAR], ids=["scalar", "slope", "shear"])
def test_all_four_maps_are_those_of_the_tables(name: str, basis: Basis, monkeypatch) -> None:
    # Rings of one's own need not mirror each other.
    own = {"own": ([0.0, 0.4, 1.1, 2.0, 2.9], [1, 5, 9, 8, 4]), "pole": ([0.0], [3])}
    grid = own_rings(*own[name]) if name in own else Grid.from_name(name)
    lmax = max(grid.lmax, 3)
    coeffs = random_coeffs(lmax, 3)
    spectra = torch.randn(3, grid.nrings, lmax + 1, dtype=torch.complex128)
    for call in (
        lambda: colatitudes.to_rings(basis, coeffs, grid),
        lambda: colatitudes.to_rings_adjoint(basis, spectra, grid, lmax),
        lambda: colatitudes.to_coeffs(basis, spectra, grid),
        lambda: colatitudes.to_coeffs_adjoint(basis, coeffs, grid),
    ):
        by_table, made = both(monkeypatch, call)
        scale = by_table.abs().max().clamp(min=1)
        torch.testing.assert_close(made, by_table, rtol=0, atol=1e-12 * scale.item())


@pytest.mark.parametrize("name", ["gauss:6x12", "equiangular:6x12", "clenshaw_curtis:7x12", "H2"])
def test_a_rank_may_have_no_orders(name: str, monkeypatch) -> None:
    grid = Grid.from_name(name)
    coeffs = torch.zeros(2, 4, 0, dtype=torch.complex128)
    spectra = torch.zeros(2, grid.nrings, 0, dtype=torch.complex128)
    for call in (
        lambda: colatitudes.to_rings(SCALAR, coeffs, grid, ()),
        lambda: colatitudes.to_rings_adjoint(SCALAR, spectra, grid, 3, ()),
        lambda: colatitudes.to_coeffs(SCALAR, spectra, grid, 3, ()),
        lambda: colatitudes.to_coeffs_adjoint(SCALAR, coeffs, grid, ()),
    ):
        monkeypatch.setattr(legendre, "LARGEST_PRODUCT", 2**40)
        by_table = call()
        monkeypatch.setattr(legendre, "LARGEST_PRODUCT", -1)
        assert call().shape == by_table.shape


@pytest.mark.parametrize("name", ["H64", "O48", "N48", "gauss:96x192", "clenshaw_curtis:97x192"])
def test_rings_that_mirror_each_other_are_pairs_though_their_angles_are_rounded(name: str) -> None:
    grid = Grid.from_name(name)
    rings = legendre.rings_of(grid)
    assert rings.y.size == (grid.nrings + 1) // 2
    together = np.sort(np.concatenate([rings.north, rings.south]))
    assert (together[together >= 0] == np.arange(grid.nrings)).all()


def test_rings_next_to_the_equator_keep_their_digits(on_the_fly) -> None:
    """P_lm of degree 1000 beside the recurrence in long double."""
    lmax, theta = 1000, np.pi / 2 - np.array([1.2, 0.3, 0.01, 1e-3, 3e-4])
    rings = legendre.Rings.of(theta)
    for m in (0, 1, 40, 700):
        x, a = np.cos(theta.astype(np.longdouble)), np.longdouble(0)
        before, p = 0 * x, legendre._start(lmax)[m] * np.sin(theta.astype(np.longdouble)) ** m
        for n in range(m + 1, lmax + 1):
            n2, last = np.longdouble(n) ** 2, a
            a = np.sqrt((n2 - m * m) / (4 * n2 - 1))
            before, p = p, (x * p - last * before) / a
        coeffs = torch.zeros(lmax + 1, 1, dtype=torch.complex128)
        coeffs[lmax] = 1
        made = legendre.to_rings(coeffs, rings, (m,)).real.numpy()[:, 0]
        assert np.abs(made - p).max() < 3e-13


def test_some_orders_are_those_columns_of_all(on_the_fly) -> None:
    orders = (7, 0, 3)
    for grid in (Grid.gauss(10, 20), Grid.clenshaw_curtis(10, 20)):
        coeffs, spectra = random_coeffs(9), torch.randn(10, 10, dtype=torch.complex128)
        some = colatitudes.to_rings(SCALAR, coeffs[:, orders], grid, orders)
        torch.testing.assert_close(some, colatitudes.to_rings(SCALAR, coeffs, grid)[:, orders])
        some = colatitudes.to_coeffs(SCALAR, spectra[:, orders], grid, 9, orders)
        torch.testing.assert_close(some, colatitudes.to_coeffs(SCALAR, spectra, grid)[:, orders])


@pytest.mark.parametrize(("name", "lmax"), [("H64", 191), ("gauss:300x20", 299)])
def test_synthesis_and_its_adjoint_are_duccs(name: str, lmax: int, on_the_fly) -> None:
    """Polar rings where sin(theta)^m is far below the smallest number included."""
    grid = Grid.from_name(name)
    coeffs = random_coeffs(lmax)
    u = ops.isht(coeffs, grid)
    expected = ducc_synthesis(coeffs, grid)[0]
    assert np.abs(u.numpy() - expected).max() <= 1e-12 * np.abs(expected).max()


def test_high_degrees_near_a_pole_are_duccs(on_the_fly) -> None:
    """A few rings, degree 2000: values that pass through 1e-1000 on their way up."""
    theta = [1e-3, 0.01, 0.05, 0.3, 1.0, np.pi / 2, np.pi - 0.3]
    grid = own_rings(theta, [4001] * 7)
    coeffs = random_coeffs(2000) / (1 + torch.arange(2001.0, dtype=torch.float64))[:, None]
    expected = ducc_synthesis(coeffs, grid)[0]
    u = ops.isht(coeffs, grid).numpy().reshape(expected.shape)
    assert np.abs(u - expected).max() <= 1e-11 * np.abs(expected).max()


def test_healpix_analysis_is_healpys(on_the_fly) -> None:
    healpy = pytest.importorskip("healpy")
    grid, lmax = Grid.healpix(32), 64
    u = torch.randn(grid.shape, dtype=torch.float64)
    expected = healpy.map2alm(u.numpy(), lmax=lmax, iter=0)
    np.testing.assert_allclose(packed(ops.sht(u, grid, lmax)), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["gauss:5x10", "clenshaw_curtis:5x7", "H2"])
def test_derivatives_of_all_kinds(name: str, on_the_fly) -> None:
    grid = Grid.from_name(name)
    lmax = min(3, grid.lmax)
    u = torch.randn(2, *grid.shape, dtype=torch.float64, requires_grad=True)
    coeffs = random_coeffs(lmax, 2).requires_grad_()
    for f, x in ((lambda u: ops.sht(u, grid, lmax), u), (lambda c: ops.isht(c, grid), coeffs)):
        assert torch.autograd.gradcheck(f, (x,), check_forward_ad=True)
        assert torch.autograd.gradgradcheck(f, (x,))
        x = x.detach()
        torch.testing.assert_close(torch.func.vmap(f)(torch.stack([x, 2 * x]))[1], 2 * f(x))
    assert torch.autograd.gradcheck(lambda c: ops.gradient(c, grid), (coeffs,))


def test_bits_do_not_depend_on_threads_nor_on_other_fields(on_the_fly) -> None:
    grid = Grid.gauss(40, 80)
    u = torch.randn(11, *grid.shape)
    results = []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        coeffs = legendre.to_coeffs(
            torch.complex(u, -u)[..., :40], legendre.rings_of(grid), tuple(range(40)), 39
        )
        results.append((coeffs, legendre.to_rings(coeffs, legendre.rings_of(grid), (*range(40),))))
    for others in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], others, strict=True))


def test_single_precision_is_close_to_double(on_the_fly) -> None:
    for name in ("gauss:64x128", "clenshaw_curtis:65x128", "H16"):
        grid = Grid.from_name(name)
        u = torch.randn(2, *grid.shape, dtype=torch.float64)
        double, single = ops.sht(u, grid, 40), ops.sht(u.float(), grid, 40)
        assert single.dtype == torch.complex64
        assert (single - double).norm() / double.norm() < 1e-6


def test_tables_are_for_small_ones_and_few_fields() -> None:
    small, large = Grid.gauss(32, 64), Grid.healpix(256)

    def preferred(grid: Grid, lmax: int, *fields: int, device: str = "cpu") -> bool:
        x = torch.empty(*fields, lmax + 1, lmax + 1, dtype=torch.complex64, device=device)
        return legendre.preferred(grid, lmax, x)

    assert not preferred(small, 31)
    assert not preferred(small, 31, 4, 3)
    assert preferred(small, 31, 64, 3)
    assert preferred(Grid.gauss(128, 256), 127)
    assert preferred(large, 512)
    assert not preferred(large, 512, device="meta")


def test_the_library_reads_tables_to_their_ends_and_refuses_what_they_must_not_hold() -> None:
    """Behind each table lies what it must not hold."""
    rings, orders = legendre.rings_of(Grid.gauss(5, 10)), np.arange(4)
    coeffs, out = torch.zeros(4, 4, dtype=torch.complex128), torch.zeros(5, 4).cdouble()

    def synthesis(**tables: np.ndarray) -> None:
        names = ("y", "log2_sin", "north", "south", "order", "start")
        given = dict(zip(names, (*rings[1:], orders, legendre._start(3)), strict=True)) | tables
        longer = [np.append(table, np.array(-9, table.dtype)) for table in given.values()]
        struct = legendre.Legendre(
            1, 3, 5, rings.y.size, 4, *(t.ctypes.data for t in longer),
            native.DTYPES[torch.float64], 1,
        )  # fmt: skip
        native.call("spherule_legendre_synthesis", struct, coeffs.data_ptr(), out.data_ptr())

    synthesis()
    for name, table, low, high in (
        ("north", rings.north, -1, 4),
        ("south", rings.south, -1, 4),
        ("order", orders, 0, 3),
    ):
        for place in (0, -1):
            for wrong in (low - 1, high + 1):
                bad = table.copy()
                bad[place] = wrong
                with pytest.raises(ValueError, match="spherule_legendre_synthesis"):
                    synthesis(**{name: bad})
    for wrong in (-0.1, 1.5, np.nan):
        with pytest.raises(ValueError, match="spherule_legendre_synthesis"):
            synthesis(y=np.append(rings.y[:-1], wrong))
