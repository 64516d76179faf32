import io
import math

import numpy as np
import pytest
import torch
from PIL import Image

from spherule import Grid, ops
from spherule.report.globe import Frames, Globe, Variable, globe_section
from spherule.report.globe.colors import color_maps
from tests.browser.conftest import color_at, middle, readout, settle
from tests.browser.fields import waves

HOURS = 12


def forecast(grid: Grid) -> Globe:
    """A forecast whose error grows, and a field that is missing on one side."""
    truth = waves(grid, HOURS)
    growth = np.arange(HOURS).reshape(-1, *[1] * len(grid.shape)) / HOURS
    model = truth + 1e-3 * growth * waves(grid, HOURS, seed=1)
    holes = 280 + waves(grid, HOURS, seed=2)
    holes[:, (grid.xyz[:, 0] > 0.7).reshape(grid.shape)] = np.nan
    return Globe(
        "A forecast",
        [
            Variable("vorticity", grid, {"model": model, "truth": truth}, "1/s", "truth"),
            Variable("temperature", grid, {"file": holes}, "K"),
        ],
        Frames.hours(np.arange(HOURS)),
    )


def at(field: np.ndarray, grid: Grid, place: dict[str, float]) -> float:
    """The field where the page says that the pointer is."""
    theta, phi = math.radians(90 - place["latitude"]), math.radians(place["longitude"])
    spot = Grid.from_rings([theta], [1], [phi], [4 * math.pi])
    return float(ops.resample(torch.from_numpy(field), grid, spot))


GRIDS = ["gauss:32x64", "clenshaw_curtis:33x64", "fejer:32x64@0.5", "H12", "O24"]


@pytest.mark.parametrize("name", GRIDS)
def test_value_under_the_pointer_is_the_field(show, name: str) -> None:
    grid = Grid.from_name(name)
    globe = forecast(grid)
    page = show(globe)
    sources = globe.variables[0].sources
    error = sources["model"] - sources["truth"]
    page.get_by_label("Source, right globe").select_option(label="error")
    x, y, side = middle(page)
    for turn in ((0, 0), (150, 55), (-70, -110)):
        page.evaluate("turn => document.querySelector('spherule-globe').turn(...turn)", list(turn))
        for dx, dy in ((0.0, 0.0), (0.31, 0.12), (-0.2, 0.36), (-0.07, -0.41), (0.4, 0.2)):
            page.mouse.move(x + dx * side, y + dy * side)
            left, right = readout(page, 0), readout(page, 1)
            assert (left["latitude"], left["longitude"]) == (right["latitude"], right["longitude"])
            assert left["value"] == pytest.approx(
                at(sources["model"][0], grid, left), abs=1e-3 * np.ptp(sources["model"])
            )
            assert right["value"] == pytest.approx(
                at(error[0], grid, right), abs=1e-3 * np.ptp(error)
            )


def test_values_at_grid_points_are_right_to_a_thousandth_of_the_range(show) -> None:
    grid = Grid.octahedral(24)
    globe = forecast(grid)
    page = show(globe)
    model, truth = (globe.variables[0].sources[name] for name in ("model", "truth"))
    for index, field in enumerate((model, truth, model - truth)):
        read = page.evaluate(
            """async ([source, frame]) => {
              const chosen = document.querySelector('spherule-globe').variables[0].sources[source];
              await chosen.load();
              const {start, nphi, theta, phi0} = chosen.rings;
              const values = [];
              for (let r = 1; r < theta.length - 1; r++)
                for (let j = 0; j < nphi[r]; j++)
                  values.push(chosen.sample(frame, theta[r], phi0[r] + 2 * Math.PI * j / nphi[r]));
              return values;
            }""",
            [index, HOURS - 1],
        )
        assert np.abs(np.array(read) - field[-1]).max() <= 1e-4 * np.ptp(field)


@pytest.mark.parametrize("name", GRIDS)
def test_pixels_have_the_color_of_the_value_under_them(show, name: str) -> None:
    """The shader and the script look the same place up."""
    globe = forecast(Grid.from_name(name))
    page = show(globe)
    page.get_by_label("lines").uncheck()
    limit = float(np.abs(globe.variables[0].sources["truth"]).max())
    table = color_maps()["diverging"].astype(int)
    x, y, side = middle(page)
    for dx, dy in ((0.05, 0.03), (0.3, 0.1), (-0.25, 0.3), (-0.1, -0.4), (0.15, -0.44)):
        page.mouse.move(round(x + dx * side) + 0.5, round(y + dy * side) + 0.5)
        value = readout(page)["value"]
        wanted = table[round((value / limit + 1) / 2 * 255)]
        assert np.abs(color_at(page, x + dx * side, y + dy * side) - wanted).max() <= 4


@pytest.mark.parametrize("width", [900, 1140])
def test_the_sphere_has_no_holes(show, width: int) -> None:
    grid = Grid.gauss(16, 32)
    ones = Variable("u", grid, {"file": np.ones(grid.shape)}, limits=(0.0, 1.0))
    page = show(Globe("", [ones]), viewport={"width": width, "height": 760})
    page.get_by_label("lines").uncheck()
    settle(page)
    shot = page.locator(".globe-stage canvas").first.screenshot()
    picture = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)
    y, x = np.indices(picture.shape[:2])
    center = np.array(picture.shape[:2]) / 2
    on_sphere = np.hypot(y - center[0], x - center[1]) < 0.46 * min(picture.shape[:2])
    assert np.ptp(picture[on_sphere], axis=0).max() <= 2


def test_the_globe_follows_the_pointer(show) -> None:
    page = show(forecast(Grid.gauss(32, 64)))
    x, y, side = middle(page)
    page.mouse.move(x, y)
    before = readout(page)
    page.mouse.down()
    page.mouse.move(x + 0.1 * side, y, steps=5)
    page.mouse.up()
    # What was below the pointer is still below it; so the middle is now farther west.
    after = readout(page)
    assert after["latitude"] == pytest.approx(before["latitude"], abs=3)
    assert after["longitude"] == pytest.approx(before["longitude"], abs=3)
    page.mouse.move(x, y)
    west = readout(page)["longitude"]
    assert -20 < west < -8
    page.mouse.down()
    page.mouse.move(x, y + 0.1 * side, steps=5)
    page.mouse.up()
    page.mouse.move(x, y)
    assert readout(page)["latitude"] > before["latitude"] + 8
    assert readout(page, 1) == pytest.approx(readout(page), abs=0.1)


def test_time_plays_and_stops(show) -> None:
    globe = forecast(Grid.gauss(32, 64))
    page = show(globe)
    assert page.locator(".globe-when").inner_text() == "0 h"
    page.get_by_role("button", name="play").click()
    page.wait_for_function("document.querySelector('.globe-when').innerText > '3 h'")
    page.get_by_role("button", name="stop").click()
    settle(page)
    hour = page.locator(".globe-when").inner_text()
    page.wait_for_timeout(400)
    assert page.locator(".globe-when").inner_text() == hour
    frame = int(hour.split()[0])
    place = readout(page)
    field = globe.variables[0].sources["model"][frame]
    assert place["value"] == pytest.approx(at(field, globe.variables[0].grid, place), abs=1e-3)
    assert f", {hour}:" in page.locator(".globe-summary").first.inner_text()


def test_coasts_are_drawn_on_globes_of_the_earth(show) -> None:
    grid = Grid.gauss(16, 32)
    bright = Variable("u", grid, {"file": np.ones(grid.shape)}, limits=(0.0, 1.0))
    dark = {}
    for earth in (False, True):
        page = show(Globe("", [bright], earth=earth))
        picture = Image.open(io.BytesIO(page.locator("canvas").first.screenshot())).convert("L")
        dark[earth] = (np.asarray(picture) < 60).mean()
    assert dark[False] < 0.001
    assert 0.003 < dark[True] < 0.1


def test_missing_values_are_gray_and_said(show) -> None:
    page = show(forecast(Grid.gauss(32, 64)))
    page.get_by_label("Variable, left globe").select_option(label="temperature")
    x, y, _ = middle(page)
    page.mouse.move(x + 5, y + 5)
    assert math.isnan(readout(page)["value"])
    assert "no value" in page.locator(".globe-readout").first.inner_text()
    red, green, blue = color_at(page, x + 12, y + 12)
    assert red == green == blue
    assert 140 < red < 180
    share = 15.0  # of the sphere, beyond x = 0.7
    said = page.locator(".globe-summary").first.inner_text()
    assert float(said.split("; ")[1].split(" %")[0]) == pytest.approx(share, abs=1.5)


def test_a_place_is_missing_where_most_around_it_is(show) -> None:
    grid = Grid.gauss(8, 16)
    u = np.full(grid.shape, 5.0)
    u[3, 4:8] = u[:2] = np.nan
    page = show(Globe("Holes", [Variable("u", grid, {"file": u})]))
    cell = 2 * math.pi / 16
    # On the ring: from a point that is there to one that is not. Then from ring to ring, at a
    # longitude that both have. Last, at the pole that was added above rings without values.
    between = [(grid.theta[3], (3 + part) * cell) for part in (0.3, 0.7)]
    between += [((1 - t) * grid.theta[2] + t * grid.theta[1], 0.0) for t in (0.4, 0.6)]
    read = page.evaluate(
        """places => {
          const [source] = document.querySelector('spherule-globe').variables[0].sources;
          return places.map(([theta, phi]) => String(source.sample(0, theta, phi)));
        }""",
        [list(map(float, place)) for place in [*between, (0.0, 0.0)]],
    )
    assert read == ["5", "NaN", "5", "NaN", "NaN"]


def test_every_control_has_a_key(show) -> None:
    page = show(forecast(Grid.gauss(32, 64)))
    canvas = page.locator(".globe-stage canvas").first
    canvas.focus()

    def press(key: str) -> dict[str, float]:
        page.keyboard.press(key)
        return readout(page)

    assert press("ArrowRight")["longitude"] == pytest.approx(6)
    assert press("ArrowUp")["latitude"] == pytest.approx(36)
    assert press("ArrowLeft")["longitude"] == pytest.approx(0)
    assert press("Shift+ArrowDown")["latitude"] == pytest.approx(35.4)
    assert press("0")["latitude"] == pytest.approx(30)
    press("+")
    assert press("ArrowRight")["longitude"] == pytest.approx(6 / 1.3)
    press(".")
    press(".")
    press(",")
    assert page.locator(".globe-when").inner_text() == "1 h"
    press("Space")
    page.wait_for_function("document.querySelector('.globe-when').innerText > '2 h'")
    press("Space")
    choices = {name: page.get_by_label(f"{name}, left globe") for name in ("Variable", "Source")}
    press("s")
    assert choices["Source"].evaluate("e => e.selectedOptions[0].text") == "truth"
    press("v")
    assert choices["Variable"].evaluate("e => e.selectedOptions[0].text") == "temperature"
    press("2")
    assert page.locator(".globe-pane:visible").count() == 1
    press("g")
    assert not page.get_by_label("lines").is_checked()
    assert canvas.evaluate("e => e === document.activeElement")


def test_the_wheel_zooms_after_a_click_and_scrolls_before(show) -> None:
    page = show(forecast(Grid.gauss(16, 32)), viewport={"width": 1140, "height": 500})
    zoom = "document.querySelector('spherule-globe').camera.zoom"
    x, y, _ = middle(page)
    page.mouse.move(x, y)
    page.mouse.wheel(0, 100)
    page.wait_for_function("window.scrollY > 50")
    assert page.evaluate(zoom) == 1
    x, y, _ = middle(page)
    page.mouse.click(x, max(y, 50))
    scrolled = page.evaluate("window.scrollY")
    page.mouse.wheel(0, -100)
    page.wait_for_function(f"{zoom} > 1.2")
    assert page.evaluate("window.scrollY") == scrolled


def test_two_fingers_zoom(show) -> None:
    page = show(forecast(Grid.gauss(16, 32)), has_touch=True)
    x, y, _ = middle(page)
    session = page.context.new_cdp_session(page)
    for kind, apart in (("Start", 40), ("Move", 60), ("Move", 80), ("End", None)):
        fingers = [] if apart is None else [{"x": x - apart, "y": y}, {"x": x + apart, "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": fingers})
    assert page.evaluate("document.querySelector('spherule-globe').camera.zoom") == pytest.approx(
        2, rel=0.15
    )


def test_reduced_motion_plays_slowly(show) -> None:
    globe = forecast(Grid.gauss(16, 32))
    speeds = [
        show(globe, reduced_motion=motion).get_by_label("Frames a second").input_value()
        for motion in ("no-preference", "reduce")
    ]
    assert speeds == ["8", "1"]


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_needs_no_sideways_scrolling(show, width: int) -> None:
    page = show(forecast(Grid.gauss(16, 32)), viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    _, _, side = middle(page)
    assert side > 0.8 * width
    assert page.locator(".globe-pane:visible").count() == 1
    for name in ("play", "closer", "farther"):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box["height"] >= 30
        assert 0 <= box["x"] <= box["x"] + box["width"] <= width


def test_without_webgl_the_still_picture_stays(show) -> None:
    script = "HTMLCanvasElement.prototype.getContext = () => null"
    page = show(forecast(Grid.gauss(16, 32)), script=script, ready="")
    page.get_by_text("no WebGL2").wait_for()
    assert page.locator("img.globe-still").is_visible()
    assert page.locator("img.globe-still").evaluate("e => e.naturalWidth") == 420
    assert page.locator("canvas").count() == 0
    assert "from −" in page.locator(".globe-summary").inner_text().replace("-", "−")


def test_a_page_holds_several_globes(show, tmp_path) -> None:
    sections = [globe_section(forecast(Grid.gauss(16, 32))) for _ in range(2)]
    path = tmp_path / "report.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{''.join(sections)}")
    page = show(path)
    page.wait_for_function("document.querySelectorAll('spherule-globe[data-ready]').length == 2")
    settle(page)
    assert [readout(page, pane)["latitude"] for pane in range(4)] == pytest.approx([30] * 4)


def test_a_lost_context_comes_back(show) -> None:
    page = show(forecast(Grid.gauss(16, 32)))
    x, y, _ = middle(page)
    before = color_at(page, x, y)
    page.evaluate(
        """async () => {
          const gl = document.querySelector('canvas').getContext('webgl2');
          const lost = gl.getExtension('WEBGL_lose_context');
          lost.loseContext();
          await new Promise(r => setTimeout(r, 100));
          lost.restoreContext();
          await new Promise(r => setTimeout(r, 100));
        }"""
    )
    settle(page)
    assert color_at(page, x, y) == before
