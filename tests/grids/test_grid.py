import copy
import json
import pickle
import re
import subprocess
import sys

import healpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spherule import Grid
from spherule.grids.serial import grid_from_json, grid_to_json
from tests.oracles import REGULAR, SMALL_GRIDS


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "F16", "O96", "N320", "H64"])
def test_weights_are_areas_that_sum_to_the_sphere(name: str) -> None:
    grid = Grid.from_name(name)
    area = 4 * np.pi
    if name.startswith("equiangular"):
        n = grid.nrings
        area *= np.pi / (2 * n) / np.tan(np.pi / (2 * n))
        assert np.all(grid.ring_weights[1:] > 0)
        assert grid.ring_weights[0] == 0
    else:
        assert np.all(grid.ring_weights > 0)
    assert abs(grid.weights.sum() / area - 1) <= 1e-14


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_arrays_describe_one_point_set(name: str) -> None:
    grid = Grid.from_name(name)
    assert grid.size == grid.nphi.sum() == grid.weights.size == np.prod(grid.shape)
    assert grid.weights.shape == grid.shape
    assert grid.xyz.shape == (grid.size, 3)
    np.testing.assert_allclose(np.linalg.norm(grid.xyz, axis=-1), 1, atol=1e-15)
    np.testing.assert_allclose(grid.xyz[grid.ringstart, 2], np.cos(grid.theta), atol=1e-15)
    first = np.stack([np.cos(grid.phi0), np.sin(grid.phi0)], -1) * np.sin(grid.theta)[:, None]
    np.testing.assert_allclose(grid.xyz[grid.ringstart, :2], first, atol=1e-15)
    for array in (
        grid.theta,
        grid.nphi,
        grid.phi0,
        grid.ring_weights,
        grid.ringstart,
        grid.weights,
    ):
        assert not array.flags.writeable


@pytest.mark.parametrize("nside", [1, 2, 3, 7, 16, 64])
def test_healpix_points_are_healpys(nside: int) -> None:
    grid = Grid.healpix(nside)
    theta, phi = healpy.pix2ang(nside, np.arange(12 * nside**2))
    np.testing.assert_allclose(grid.point_theta, theta, atol=2e-15)
    np.testing.assert_allclose(grid.point_phi, phi, atol=4e-15)


def test_reduced_grids_have_ecmwfs_points() -> None:
    assert Grid.octahedral(1280).size == 6599680  # as ECMWF states for O1280
    assert Grid.reduced_gaussian(320).size == 542080
    assert Grid.reduced_gaussian(80).size == 35718
    assert list(Grid.octahedral(4).nphi) == [20, 24, 28, 32, 32, 28, 24, 20]
    for n in (32, 48, 64, 80, 96, 128, 160, 200, 256, 320, 400, 512, 640, 1024):
        nphi = Grid.from_name(f"N{n}").nphi
        assert nphi.size == 2 * n
        assert nphi.max() == 4 * n
        assert np.array_equal(nphi, nphi[::-1])


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_name_round_trips(name: str) -> None:
    grid = Grid.from_name(name)
    assert grid.name == name
    assert name in repr(grid)
    assert Grid.from_name(grid.name) == grid


@given(st.floats(0, 1, exclude_max=True))
def test_names_know_offsets_to_the_last_bit(offset: float) -> None:
    grid = Grid.gauss(2, 3, offset=offset)
    assert Grid.from_name(grid.name) == grid


def test_full_gaussian_is_gauss() -> None:
    assert Grid.from_name("F90") == Grid.gauss(180, 360)


@pytest.mark.parametrize("name", SMALL_GRIDS)
def test_grid_is_a_value(name: str) -> None:
    grid, again = Grid.from_name(name), Grid.from_name(name)
    assert grid is not again
    assert grid == again
    assert hash(grid) == hash(again)
    assert len({grid, again, Grid.gauss(5, 9)}) == 2
    rings = Grid.from_rings(grid.theta, grid.nphi, grid.phi0, grid.ring_weights)
    assert rings == grid
    assert rings.shape == grid.shape
    assert Grid.from_name(rings.name) == rings
    for other in (pickle.loads(pickle.dumps(grid)), copy.deepcopy(grid)):
        assert other == grid
        assert other.name == grid.name
        assert not other.theta.flags.writeable
    with pytest.raises(AttributeError):
        grid.theta = grid.theta


def test_pickled_grid_is_equal_in_another_process() -> None:
    code = (
        "import pickle, sys; from spherule import Grid; g = pickle.loads(sys.stdin.buffer.read());"
        "assert g in {Grid.octahedral(4)}"
    )
    grid = Grid.octahedral(4)
    hash(grid)
    subprocess.run([sys.executable, "-c", code], input=pickle.dumps(grid), check=True)


def test_different_rules_on_the_same_shape_differ() -> None:
    assert len({Grid.from_name(f"{family}:8x16") for family in REGULAR}) == 5
    assert Grid.gauss(8, 16) != Grid.gauss(8, 16, offset=0.5)
    assert Grid.gauss(8, 16) != "gauss:8x16"


@pytest.mark.parametrize(
    ("fine", "coarse"),
    [
        ("gauss:64x128", "gauss:32x64"),
        ("gauss:45x90", "gauss:23x45"),
        ("clenshaw_curtis:721x1440", "clenshaw_curtis:361x720"),
        ("equiangular:64x128", "equiangular:32x64"),
        ("fejer:64x128@0.5", "fejer:32x64@0.5"),
        ("lobatto:9x16", "lobatto:5x8"),
        ("H64", "H32"),
        ("O96", "O48"),
        ("N320", "O160"),
        ("F90", "gauss:90x180"),
    ],
)
def test_coarsen_halves_within_the_family(fine: str, coarse: str) -> None:
    assert Grid.from_name(fine).coarsen() == Grid.from_name(coarse)


@pytest.mark.parametrize("name", ["gauss:1x1", "lobatto:2x4", "clenshaw_curtis:2x3", "H1", "O1"])
def test_some_grid_is_the_coarsest(name: str) -> None:
    assert Grid.from_name(name).coarsest
    assert not Grid.gauss(1, 2).coarsest
    assert not Grid.healpix(2).coarsest


def test_spacing_and_cutoff() -> None:
    assert Grid.gauss(64, 128).spacing == pytest.approx(np.pi / 64, rel=1e-15)
    assert Grid.healpix(16).spacing == pytest.approx(np.sqrt(np.pi / 3) / 16, rel=1e-15)
    grid = Grid.gauss(64, 128)
    assert grid.cutoff(7) == pytest.approx(7 * np.pi / (np.sqrt(np.pi) * 64), rel=1e-15)
    assert Grid.gauss(2, 4).cutoff(7) == np.pi


@pytest.mark.parametrize(
    ("name", "lmax"),
    [
        ("gauss:64x128", 63),
        ("gauss:64x64", 31),
        ("clenshaw_curtis:65x130", 63),
        ("fejer:64x129", 63),
        ("lobatto:65x130", 63),
        ("H16", 62),
        ("O32", 63),
    ],
)
def test_lmax_is_what_the_rings_can_tell_apart(name: str, lmax: int) -> None:
    assert Grid.from_name(name).lmax == lmax


def test_some_rings_may_weigh_nothing() -> None:
    grid = Grid.from_rings([0.0, 1.0], [4, 4], [0, 0], [0.0, np.pi])
    assert grid.weight_range == (0.0, np.pi)
    assert Grid.gauss(4, 8, offset=0.999).phi0[0] < 2 * np.pi / 8


def test_weights_that_are_not_the_spheres_areas_are_refused_unless_the_rings_are_a_part() -> None:
    grid = Grid.gauss(8, 16)
    for factor in (1 / (4 * np.pi), 16.0, 0.97):  # a mean, whole rings, a ring that is missing
        rings = (grid.theta, grid.nphi, grid.phi0, grid.ring_weights * factor)
        with pytest.raises(ValueError, match=r"ring_weights: .* sum to .* partial=True"):
            Grid.from_rings(*rings)
        part = Grid.from_rings(*rings, partial=True)
        assert pickle.loads(pickle.dumps(part)) == part
        assert grid_from_json(json.loads(json.dumps(grid_to_json(part)))) == part
        rows = part.part(2, 5)
        back = grid_from_json(json.loads(json.dumps(grid_to_json(rows))))
        assert back == rows
        assert back.shape == rows.shape == (3, 16)
        assert back.whole == part


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Grid.gauss(-3, 8), ValueError, "nlat=-3"),
        (lambda: Grid.gauss(4.0, 8), TypeError, "nlat=4.0"),
        (lambda: Grid.gauss(4, "8"), TypeError, "nlon='8'"),
        (lambda: Grid.clenshaw_curtis(1, 8), ValueError, "nlat=1 must be >= 2"),
        (lambda: Grid.gauss(4, 8, offset=1.5), ValueError, "offset=1.5"),
        (lambda: Grid.gauss(4, 8, offset=1.0), ValueError, "offset=1.0 must be in [0, 1)"),
        (lambda: Grid.gauss(4, 8, offset=-1e-9), ValueError, "offset=-1e-09"),
        (lambda: Grid.healpix(0), ValueError, "nside=0"),
        (lambda: Grid.octahedral(2.5), TypeError, "n=2.5"),
        (lambda: Grid.reduced_gaussian(33), ValueError, "N32, N48"),
        (lambda: Grid.from_name("gaus:4x8"), ValueError, "gaus:4x8"),
        (lambda: Grid.from_name("gauss:4"), ValueError, "gauss:64x128"),
        (lambda: Grid.from_rings([0.5, np.nan], [4, 4], [0, 0], [1, 1]), ValueError, "theta"),
        (lambda: Grid.from_rings([0.5, 0.4], [4, 4], [0, 0], [1, 1]), ValueError, "theta"),
        (lambda: Grid.from_rings([0.5, 4.0], [4, 4], [0, 0], [1, 1]), ValueError, "theta"),
        (lambda: Grid.from_rings([0.5, 1.0], [4, 0], [0, 0], [1, 1]), ValueError, "nphi"),
        (lambda: Grid.from_rings([0.5, 1.0], [4.0, 1], [0, 0], [1, 1]), TypeError, "nphi"),
        (lambda: Grid.from_rings([0.5, 1.0], [4, 4], [0, 0, 0], [1, 1]), ValueError, "phi0"),
        (
            lambda: Grid.from_rings([0.5, 1.0], [4, 4], [0, 0], [1, -1]),
            ValueError,
            "must be >= 0, and some > 0",
        ),
        (
            lambda: Grid.from_rings([0.5, 1.0], [4, 4], [0, 0], [0, 0]),
            ValueError,
            "must be >= 0, and some > 0",
        ),
        (lambda: Grid.from_rings([0.5j], [4], [0], [1]), TypeError, "theta"),
        (lambda: Grid.from_rings([], [], [], []), (ValueError, TypeError), "expected"),
        (lambda: Grid.gauss(4, 8).cutoff(-1), ValueError, "window=-1"),
        (lambda: Grid.healpix(1).coarsen(), ValueError, "coarsest"),
        (lambda: Grid.lobatto(2, 4).coarsen(), ValueError, "coarsest"),
        (lambda: Grid.from_rings([1.0], [4], [0], [np.pi]).coarsen(), ValueError, "family"),
    ],
)
def test_bad_input_is_named(make, error, words: str, unchecked) -> None:
    with pytest.raises(error, match=re.escape(words)):
        make()


@pytest.mark.parametrize("weights", [[2.0, -1.0], [0.0, 0.0]])
def test_weights_below_zero_and_none_above_are_refused(weights: list[float]) -> None:
    with pytest.raises(ValueError, match=r"ring_weights must be >= 0, and some > 0"):
        Grid.from_rings([1.0, 2.0], [4, 4], [0, 0], weights, partial=True)
