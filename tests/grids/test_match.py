import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from spherule import Grid
from spherule.grids import healpix, own_rings
from tests.oracles import REGULAR, SMALL_GRIDS


def axes(grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    return 90 - np.degrees(grid.theta), np.degrees(grid.point_phi[: grid.shape[1]])


@pytest.mark.parametrize("flip", [False, True])
def test_two_rows_are_enough_to_tell_which_is_north(flip: bool) -> None:
    lat, lon = axes(Grid.gauss(2, 4))
    match = Grid.match(lat[::-1] if flip else lat, lon)
    assert (match.grid, match.flip) == (Grid.gauss(2, 4), flip)


@given(
    family=st.sampled_from(REGULAR),
    nlat=st.integers(4, 40),
    nlon=st.integers(4, 40),
    flip=st.booleans(),
    roll=st.integers(0, 39),
    west=st.booleans(),
    half=st.booleans(),
    float32=st.booleans(),
)
def test_axes_are_recognized_whatever_their_order(
    family, nlat, nlon, flip, roll, west, half, float32
) -> None:
    grid = Grid.from_name(f"{family}:{nlat}x{nlon}" + ("@0.5" if half else ""))
    u = np.arange(grid.size, dtype=float).reshape(grid.shape)
    lat, lon = axes(grid)
    lon, theirs = np.roll(lon, -roll), np.roll(u, -roll, axis=1)
    if west:
        lon = (lon + 180 + 1e-9) % 360 - 180
        first = int(np.argmin(lon))
        lon, theirs = np.roll(lon, -first), np.roll(theirs, -first, axis=1)
    if flip:
        lat, theirs = lat[::-1], theirs[::-1]
    if float32:
        lat, lon = lat.astype(np.float32), lon.astype(np.float32)
    match = Grid.match(lat, lon)
    assert match.grid == grid
    assert match.flip == flip
    assert np.array_equal(match.to_grid(theirs), u)
    assert np.array_equal(match.from_grid(u), theirs)
    assert torch.equal(match.to_grid(torch.tensor(theirs.copy())), torch.tensor(u))


@pytest.mark.parametrize("name", [name for name in SMALL_GRIDS if "@0.25" not in name])
def test_points_are_recognized_in_any_order(name: str) -> None:
    grid = Grid.from_name(name)
    order = np.random.default_rng(0).permutation(grid.size)
    lat = (90 - np.degrees(grid.point_theta))[order].astype(np.float32)
    lon = ((np.degrees(grid.point_phi) + 180) % 360 - 180)[order].astype(np.float32)
    match = Grid.match(lat, lon)
    u = np.random.default_rng(1).normal(size=(2, *grid.shape))
    theirs = u.reshape(2, -1)[:, order]
    if name.startswith(("clenshaw", "lobatto", "equiangular")):
        # All points of a pole ring are the same place: their order is free.
        rows = slice(1, grid.nrings - 1)
        assert np.array_equal(match.to_grid(theirs)[:, rows], u[:, rows])
    else:
        assert np.array_equal(match.to_grid(theirs), u)
    assert match.grid == grid
    assert np.array_equal(match.from_grid(match.to_grid(theirs)), theirs)


def test_nested_healpix_is_recognized() -> None:
    grid, order = Grid.healpix(4), healpix.nest_to_ring(4)
    match = Grid.match(90 - np.degrees(grid.point_theta[order]), np.degrees(grid.point_phi[order]))
    assert match.grid == grid
    assert np.array_equal(match.order, healpix.ring_to_nest(4))


def test_era5_and_its_cropped_sibling() -> None:
    lon = np.arange(0, 360, 0.25, dtype=np.float32)
    assert Grid.match(np.linspace(90, -90, 721), lon).grid.name == "clenshaw_curtis:721x1440"
    assert Grid.match(np.linspace(90, -89.75, 720), lon).grid.name == "equiangular:720x1440"
    assert Grid.match(np.arange(-89.875, 90, 0.25), lon).grid.name == "fejer:720x1440"
    lat = np.round(90 - np.degrees(Grid.reduced_gaussian(32).point_theta), 3)  # GRIB's millidegrees
    lon = np.round(np.degrees(Grid.reduced_gaussian(32).point_phi), 3)
    assert Grid.match(lat, lon).grid.name == "N32"


def uneven() -> np.ndarray:
    """Latitudes of a stretched grid, denser at the equator, from pole to pole."""
    x = np.linspace(-1, 1, 31)
    return 90 * x * (0.6 + 0.4 * x**2)


def test_rows_at_latitudes_of_their_own_are_rings_with_areas_between_them() -> None:
    lat, lon = uneven(), np.arange(0, 360, 15.0) - 180
    match = Grid.match(lat, lon)
    assert match.flip
    assert "31 rows at latitudes of their own" in match.note
    assert "the middle between them" in match.note
    assert match.grid.weights.sum() == pytest.approx(4 * np.pi, rel=1e-14)
    z = np.cos(match.grid.theta)[:, None] * np.ones(24)
    assert (match.grid.weights * z**2).sum() == pytest.approx(4 * np.pi / 3, rel=2e-2)
    u = np.arange(31 * 24).reshape(31, 24)
    assert np.array_equal(match.from_grid(match.to_grid(u)), u)
    edges = np.concatenate([[-90], lat[:-1] + 0.3 * np.diff(lat), [90]])
    bounded = Grid.match(lat, lon, bounds=np.stack([edges[:-1], edges[1:]], 1))
    assert "their bounds" in bounded.note
    cap = 2 * np.pi * (1 - np.sin(np.radians(edges[-2]))) / 24
    assert bounded.grid.ring_weights[0] == pytest.approx(cap, rel=1e-12)


def test_rows_that_leave_out_more_than_a_step_at_a_pole_do_not_cover_the_sphere() -> None:
    assert own_rings.cover_the_sphere(np.array([80.0, 40, 0, -40, -80]))
    assert own_rings.cover_the_sphere(np.array([70.0, 50, 0, -50, -70]))
    for south in ([-40.0, -60], [-50.0, -65]):  # the last step counts, not the one before
        rows = np.array([80.0, 40, 0, *south])
        assert not own_rings.cover_the_sphere(rows)
        assert not own_rings.cover_the_sphere(-rows[::-1])


def test_reduced_rings_of_any_family_are_recognized_from_their_points() -> None:
    lat = np.linspace(87.5, -87.5, 36)
    nphi = np.maximum(np.rint(72 * np.cos(np.radians(lat))).astype(int), 4)
    lats = np.repeat(lat, nphi)
    lons = np.concatenate([(np.arange(n) + 0.25) * 360 / n for n in nphi])
    order = np.random.default_rng(0).permutation(lats.size)
    match = Grid.match(lats[order], lons[order])
    assert np.array_equal(match.grid.nphi, nphi)
    assert np.allclose(90 - np.degrees(match.grid.point_theta), match.to_grid(lats[order]))
    assert np.allclose(np.degrees(match.grid.point_phi), match.to_grid(lons[order]))


def test_repair_drops_a_repeated_column_and_takes_rows_without_poles() -> None:
    lat, lon = np.linspace(90, -90, 19), np.linspace(0, 360, 37)
    match = Grid.match(lat, lon, repair=True)
    assert match.grid.name == "clenshaw_curtis:19x36"
    u = np.random.default_rng(0).normal(size=(2, 19, 37))
    u[..., -1] = u[..., 0]
    assert np.array_equal(match.from_grid(match.to_grid(u)), u)
    with pytest.raises(ValueError, match=r"without its poles .*--repair"):
        Grid.match(lat[1:-1], lon[:-1])
    assert Grid.match(lat[1:-1], lon[:-1], repair=True).grid.shape == (17, 36)
    with pytest.raises(ValueError, match="fit no grid"):
        Grid.match(lat[3:-1], lon[:-1], repair=True)


@pytest.mark.parametrize(
    ("lat", "lon", "error", "words"),
    [
        (np.linspace(90, -90, 181), np.linspace(0, 360, 361), ValueError, "repeats the first"),
        (np.linspace(89.75, -90, 720), np.arange(1440) / 4, ValueError, "clenshaw_curtis:721x1440"),
        (np.linspace(60, 20, 50), np.arange(1440) / 4, ValueError, "50 rows"),
        (np.linspace(90, -90, 19), np.arange(0, 90, 5.0), ValueError, "regional"),
        (np.linspace(90, -90, 19), np.arange(360, 0, -10.0), ValueError, "runs west"),
        ([10.0, np.nan], [0.0, 180.0], ValueError, "lat: expected finite numbers, got 1 of 2"),
        ([10.0, 20.0], [0.0, np.inf], ValueError, "lon: expected finite numbers, got 1 of 2"),
        ([100.0, 20.0], [0.0, 180.0], ValueError, "lat"),
        (np.zeros(100), np.zeros(100), ValueError, "no known grid"),
        (np.zeros(12), np.zeros(12), ValueError, "H1"),
        (np.zeros(10), np.zeros(12), ValueError, "lat"),
        ([], [], ValueError, "none"),
        (["a"], [0.0], TypeError, "lat"),
    ],
)
def test_what_fits_no_grid_is_explained(lat, lon, error, words: str, unchecked) -> None:
    with pytest.raises(error, match=words):
        Grid.match(lat, lon)


def test_data_of_another_shape_is_refused(unchecked) -> None:
    match = Grid.match(np.linspace(90, -90, 19), np.arange(0, 360, 10.0))
    with pytest.raises(ValueError, match=r"\(..., 19, 36\)"):
        match.to_grid(np.zeros((36, 19)))
