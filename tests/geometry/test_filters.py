import copy
import pickle

import numpy as np
import pytest

from spherule import Grid
from spherule.geometry.filters import Stencil, default_cutoff
from spherule.geometry.ring_pairs import RingPairs
from tests.oracles import SMALL_GRIDS

PAIRS = [
    ("gauss:16x32", "gauss:16x32"),
    ("gauss:16x32", "gauss:8x16"),
    ("gauss:8x16", "gauss:16x32"),
    ("gauss:12x36", "fejer:11x24@0.5"),
    ("gauss:12x25@0.25", "H3"),
    ("clenshaw_curtis:13x24", "clenshaw_curtis:13x24"),
    ("equiangular:12x24", "equiangular:12x24"),
    ("lobatto:13x24", "O6"),
    ("H4", "H2"),
    ("O8", "O8"),
]


def hats_from_vectors(stencil: Stencil) -> np.ndarray:
    """psi (hats, out points, in points) from unit vectors and tangents."""
    theta, phi = stencil.out_grid.point_theta, stencil.out_grid.point_phi
    south = np.stack(
        [np.cos(theta) * np.cos(phi), np.cos(theta) * np.sin(phi), -np.sin(theta)], axis=-1
    )
    east = np.stack([-np.sin(phi), np.cos(phi), 0 * phi], axis=-1)
    x, y = stencil.out_grid.xyz, stencil.in_grid.xyz
    chord = np.linalg.norm(x[:, None] - y, axis=-1)
    distance, azimuth = 2 * np.arcsin(np.minimum(chord / 2, 1)), np.arctan2(east @ y.T, south @ y.T)
    step, sector = stencil.cutoff / (stencil.radii + 1), 2 * np.pi / stencil.angles
    psi = [np.maximum(1 - distance / step, 0)]
    for ring in range(1, stencil.radii + 1):
        radial = np.maximum(1 - np.abs(distance - ring * step) / step, 0)
        for spoke in range(stencil.angles):
            away = np.abs((azimuth - spoke * sector + np.pi) % (2 * np.pi) - np.pi)
            psi.append(radial * (1.0 if stencil.angles == 1 else np.maximum(1 - away / sector, 0)))
    hats = np.stack(psi)
    hats[hats < 1e-8] = 0
    weights = stencil.in_grid.weights.ravel()
    hats *= np.where(weights > 0, weights, 1e-30)  # a pole of weight 0 counts only by itself
    return hats / hats.sum(axis=-1, keepdims=True)


def dense(pairs: RingPairs, basis: int) -> np.ndarray:
    matrix = np.zeros((basis, pairs.target.size, pairs.source.size))
    entries = pairs.entries()
    place = (entries.hat, entries.target, entries.source)
    assert len(set(zip(*(a.tolist() for a in place), strict=True))) == entries.value.size
    matrix[place] = entries.value
    return matrix


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.parametrize(("radii", "angles"), [(2, 4), (2, 1), (1, 3)])
def test_hats_are_those_of_distance_and_azimuth(source, target, radii, angles) -> None:
    grids = Grid.from_name(source), Grid.from_name(target)
    stencil = Stencil.hats(*grids, radii=radii, angles=angles)
    psi = dense(stencil.pairs, stencil.basis)
    np.testing.assert_allclose(psi, hats_from_vectors(stencil), rtol=0, atol=1e-13)
    np.testing.assert_allclose(psi.sum(axis=-1), 1, rtol=0, atol=1e-13)
    # Depthwise kernels rely on it.
    assert np.count_nonzero(psi, axis=0).max() <= 4


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_transpose_is_the_transposed_matrix(source, target) -> None:
    stencil = Stencil.hats(Grid.from_name(source), Grid.from_name(target))
    psi = dense(stencil.pairs, stencil.basis)
    assert np.array_equal(dense(stencil.pairs.transpose, stencil.basis), psi.transpose(0, 2, 1))
    twice = stencil.pairs.transpose.transpose
    for name in ("ring", "period", "pair", "phase", "column", "hat", "value"):
        assert np.array_equal(getattr(twice, name), getattr(stencil.pairs, name))


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "fejer:7x13", "O1", "O16", "H8"])
def test_default_cutoff_is_three_spacings_of_the_coarser_grid(name: str) -> None:
    grid = Grid.from_name(name)
    assert Stencil.hats(grid).cutoff == 3 * grid.spacing
    if not grid.coarsest and not name.startswith("fejer"):
        coarse = grid.coarsen()
        for pair in ((grid, coarse), (coarse, grid)):
            assert Stencil.hats(*pair).cutoff == min(3 * coarse.spacing, np.pi)


@pytest.mark.parametrize(("name", "spacings"), [("gauss:10x90", 4), ("fejer:90x10", 7)])
def test_default_cutoff_grows_until_no_hat_is_empty(name: str, spacings: float) -> None:
    """Where cells are far from square, three spacings do not reach the next ring or meridian."""
    grid = Grid.from_name(name)
    with pytest.raises(ValueError, match="no point"):
        Stencil.hats(grid, cutoff=3 * grid.spacing)
    cutoff = default_cutoff(grid, grid.coarsen(), grid)
    assert 3 < default_cutoff(grid, grid) / grid.spacing < spacings
    for out_grid in (grid, grid.coarsen()):
        psi = dense(Stencil.hats(grid, out_grid, cutoff=cutoff).pairs, 9)
        np.testing.assert_allclose(psi.sum(axis=-1), 1, rtol=0, atol=1e-13)


FEW = ["gauss:1x1", "gauss:1x2", "gauss:2x4", "gauss:3x5", "gauss:1x32", "clenshaw_curtis:2x4"]
FEW += ["equiangular:2x4", "lobatto:3x6", "H1", "O1"]


@pytest.mark.parametrize("source", FEW)
@pytest.mark.parametrize("target", FEW)
def test_hats_average_on_any_few_points(source: str, target: str) -> None:
    stencil = Stencil.hats(Grid.from_name(source), Grid.from_name(target))
    psi = dense(stencil.pairs, 9)
    np.testing.assert_allclose(psi.sum(axis=-1), 1, rtol=0, atol=1e-13)


def test_empty_hats_of_radius_pi_take_the_nearest_points() -> None:
    psi = dense(Stencil.hats(Grid.gauss(1, 2)).pairs, 9)
    # Hats at a third of the way to the antipode are nearest to the point itself, then the antipode.
    here, there = np.eye(2), np.eye(2)[::-1]
    np.testing.assert_allclose(psi, [here] * 5 + [there] * 4, rtol=0, atol=1e-14)
    # North and south of the equator lie the same points of it, east and west different ones.
    ring = dense(Stencil.hats(Grid.gauss(1, 32)).pairs, 9)[:, 0]
    np.testing.assert_allclose(ring[1], ring[3], rtol=0, atol=1e-14)
    np.testing.assert_allclose(ring[2], np.roll(ring[4][::-1], 1), rtol=0, atol=1e-14)
    assert not np.allclose(ring[2], ring[4])
    isotropic = dense(Stencil.hats(Grid.gauss(1, 2), angles=1).pairs, 3)
    np.testing.assert_allclose(isotropic, [here, here, there], rtol=0, atol=1e-14)


def test_rings_that_shift_into_each_other_are_stored_once() -> None:
    regular = Stencil.hats(Grid.gauss(32, 64)).pairs
    assert Stencil.hats(Grid.gauss(32, 64)).period == 64
    assert regular.nonzeros == 64 * regular.value.size
    down = Stencil.hats(Grid.gauss(32, 64), Grid.gauss(16, 32)).pairs
    assert down.nonzeros == 32 * down.value.size
    belt = Stencil.hats(Grid.healpix(8)).pairs
    assert belt.period.max() == 32
    assert Stencil.hats(Grid.octahedral(8)).pairs.period.min() == 4


def test_stencils_are_values_and_shared() -> None:
    grid = Grid.gauss(12, 24)
    stencil = Stencil.hats(grid)
    assert stencil.cutoff == default_cutoff(grid, grid) == 3 * grid.spacing
    assert Stencil.hats(Grid.gauss(12, 24)) is stencil
    assert Stencil.from_name(stencil.name) is stencil
    assert copy.deepcopy(stencil) is stencil
    assert pickle.loads(pickle.dumps(stencil)) is stencil
    assert len(pickle.dumps(stencil)) < 4000
    assert len({stencil, Stencil.hats(grid, radii=1), Stencil.hats(grid, cutoff=0.7)}) == 3


def test_pole_of_weight_zero_counts_only_under_its_own_hat() -> None:
    grid = Grid.equiangular(12, 24)
    psi = dense(Stencil.hats(grid).pairs, 9)
    pole, rest = psi[:, :24, :24], psi[1:, 24:, :24]
    np.testing.assert_allclose(pole[0], 1 / 24, rtol=1e-14)
    assert not pole[1:].any()
    assert not rest.any()


def test_bad_input_is_named(unchecked) -> None:
    grid = Grid.gauss(16, 32)
    with pytest.raises(ValueError, match=r"cutoff=0\.1: no point of Grid\(gauss:16x32"):
        Stencil.hats(grid, cutoff=0.1)
    with pytest.raises(ValueError, match=r"cutoff=0\.1: no point"):
        Stencil.hats(grid, cutoff=0.1)
    with pytest.raises(ValueError, match=r"cutoff=0\.1: no point of Grid\(gauss:1x4"):
        Stencil.hats(Grid.gauss(1, 4), grid, cutoff=0.1)
    with pytest.raises(ValueError, match=r"math.radians\(5\)"):
        Stencil.hats(grid, cutoff=5)
    for cutoff in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="cutoff"):
            Stencil.hats(grid, cutoff=cutoff)
    with pytest.raises(ValueError, match="radii=0"):
        Stencil.hats(grid, radii=0)
    with pytest.raises(ValueError, match="angles=-1"):
        Stencil.hats(grid, angles=-1)
    with pytest.raises(TypeError, match="in_grid: expected a Grid, got str"):
        Stencil.hats("gauss:16x32")
    with pytest.raises(TypeError, match="out_grid: expected a Grid, got tuple"):
        Stencil.hats(grid, (8, 16))
