"""Coasts on maps: where the land is, and only where it is asked for."""

import numpy as np
import pytest

from spherule import Grid
from spherule.report.earth import coastlines, graticule, unit
from spherule.report.figures import fitting_colors
from spherule.report.globe.payload import make_payload
from spherule.report.maps import draw_map
from spherule.train.scene import Frames, Globe, Variable

plt = pytest.importorskip("matplotlib.pyplot")


def test_coasts_pass_by_capes_and_not_through_oceans() -> None:
    points = np.concatenate(coastlines())
    assert np.allclose(np.linalg.norm(points, axis=1), 1)

    def nearest(latitude: float, longitude: float) -> float:
        place = unit(np.array(longitude), np.array(latitude))
        return float(np.degrees(np.arccos((points @ place).max())))

    assert nearest(-34.8, 20.0) < 1, "Cape Agulhas"
    assert nearest(-55.6, -67.9) < 1.5, "Cape Horn"
    assert nearest(71.1, 25.7) < 1, "the North Cape"
    assert nearest(-48.9, -123.4) > 20, "the point farthest from land"
    assert len(coastlines()) + len(graticule()) > 100


@pytest.mark.parametrize("projection", ["mollweide", "orthographic"])
def test_lines_of_the_earth_stay_inside_the_map(projection: str) -> None:
    grid = Grid.gauss(8, 16)
    figure, (plain, earth) = plt.subplots(1, 2)
    for ax, wanted in ((plain, False), (earth, True)):
        draw_map(ax, np.zeros(grid.shape), grid, projection=projection, center=(40, 100),
                 pixels=40, earth=wanted)  # fmt: skip
    assert (len(plain.lines), len(earth.lines)) == (1, 3)
    wide = 2 if projection == "mollweide" else 1
    for line in earth.lines[:2]:
        x, y = line.get_data()
        inside = (x / wide) ** 2 + y**2
        assert np.nanmax(inside) < 1 + 1e-6
        # No line crosses the map from side to side.
        assert np.nanmax(np.hypot(np.diff(x), np.diff(y))) < 0.5
    plt.close(figure)


def test_colors_fit_the_variable() -> None:
    assert fitting_colors(np.array([-3.0, 2.0, np.nan])) == (-3.0, 3.0, "RdBu_r")
    assert fitting_colors(np.array([240.0, 300.0])) == (240.0, 300.0, "viridis")
    assert fitting_colors(np.array([-1.8, 33.0]))[2] == "viridis", "degrees Celsius of water"


def test_globes_of_the_earth_carry_its_coasts() -> None:
    grid = Grid.gauss(8, 16)
    u = Variable("u", grid, {"file": np.zeros(grid.shape)})
    assert make_payload(Globe("", [u]))["coast"] is None
    assert len(make_payload(Globe("", [u], earth=True))["coast"]) > 100


def test_long_forecasts_count_days() -> None:
    assert Frames.hours([0, 6, 12]).labels == ("0 h", "6 h", "12 h")
    assert Frames.hours([0, 12, 240]).labels == ("0 d", "0.5 d", "10 d")
