import matplotlib
import numpy as np
import pytest

from spherule import Grid
from spherule.report.maps import draw_map

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture
def ax():
    figure, ax = plt.subplots()
    yield ax
    plt.close(figure)


@pytest.mark.parametrize(("lat", "lon"), [(0, 0), (50, 20), (-80, -130), (90, 0)])
@pytest.mark.parametrize("projection", ["orthographic", "mollweide"])
def test_center_of_the_map_is_where_it_was_asked(
    ax, projection: str, lat: float, lon: float
) -> None:
    grid = Grid.gauss(90, 180)
    a, b = np.radians([lat, lon])
    place = np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)])
    closeness = (grid.xyz @ place).reshape(grid.shape)
    image = np.asarray(
        draw_map(ax, closeness, grid, projection=projection, center=(lat, lon)).get_array()
    )
    rows, columns = image.shape
    assert image[rows // 2, columns // 2] > 0.999
    assert np.nanmax(image) == pytest.approx(closeness.max(), abs=1e-4)


@pytest.mark.parametrize(("lat", "lon"), [(0, 0), (50, 20), (-30, -130)])
def test_north_is_up_and_east_is_right(ax, lat: float, lon: float) -> None:
    grid = Grid.healpix(16)
    a, b = np.radians([lat, lon])
    east = np.array([-np.sin(b), np.cos(b), 0])
    north = np.array([-np.sin(a) * np.cos(b), -np.sin(a) * np.sin(b), np.cos(a)])
    side = np.linspace(-1, 1, 600)
    for direction, axis in ((north, 0), (east, 1)):
        drawn = draw_map(
            ax, grid.xyz @ direction, grid, projection="orthographic", center=(lat, lon)
        )
        image = np.ma.filled(drawn.get_array().astype(float), np.nan)
        expected = side[:, None] if axis == 0 else side[None, :]
        assert np.nanmax(np.abs(image - expected)) < 0.06


def test_mollweide_shows_equal_areas(ax) -> None:
    grid = Grid.gauss(120, 240)
    cap = (grid.xyz[:, 2] > 0.5).astype(float).reshape(grid.shape)
    image = np.ma.filled(draw_map(ax, cap, grid).get_array().astype(float), np.nan)
    assert np.nanmean(image) == pytest.approx(0.25, abs=0.01)


def test_colors_are_drawn_as_they_are_and_nothing_beside_the_sphere(ax) -> None:
    grid = Grid.octahedral(8)
    colors = (grid.xyz + 1) / 2
    drawn = draw_map(ax, colors, grid, projection="orthographic", center=(20, 30), pixels=101)
    image = np.asarray(drawn.get_array())
    a, b = np.radians([20, 30])
    place = np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)])
    np.testing.assert_allclose(image[50, 50, :3], (place + 1) / 2, atol=0.1)
    assert image[50, 50, 3] == 1
    assert image[0, 0, 3] == 0


def test_bad_input_is_named(ax, unchecked) -> None:
    with pytest.raises(ValueError, match=r"u: expected \(4, 8\)"):
        draw_map(ax, np.zeros(32), Grid.gauss(4, 8))
