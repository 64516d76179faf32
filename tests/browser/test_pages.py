"""Pages of every kind: forecasts, rooms, attention; their pictures for the docs; their speed."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from spherule import Grid, nn
from spherule.data import CLASSES, ShallowWaterConfig, ShallowWaterDataset
from spherule.pde.shallow_water import UNITS, VARIABLES
from spherule.report.globe import Frames, Globe, Variable
from spherule.report.globe.attention import attention_globe
from spherule.rooms import render, room
from spherule.tasks.panoramas import room_globe
from spherule.train.scene import forecast_globe
from tests.browser.conftest import color_at, middle, readout, settle
from tests.browser.fields import waves

LARGEST = 300_000
"""Bytes of a picture in the docs."""


@pytest.fixture
def keep(request, tmp_path: Path) -> Callable[..., None]:
    directory = request.config.getoption("--pictures", default=None) or tmp_path

    def kept(page, name: str) -> None:
        settle(page)
        path = directory / f"{name}.png"
        picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        # With a palette at hand, Pillow dithers: color bars stay smooth in few bytes.
        picture.quantize(palette=picture.quantize(256)).save(path, optimize=True)
        assert path.stat().st_size < LARGEST

    return kept


def test_a_forecast_beside_the_truth(show, keep) -> None:
    leads = 8
    config = ShallowWaterConfig(grid="gauss:64x128")
    dataset = ShallowWaterDataset(config, seed=0, leads=leads)
    states = np.stack([dataset.statistics.denormalize(s, dataset.grid).numpy() for s in dataset[0]])
    hours = np.arange(leads + 1) * config.lead / 3600
    sources = {"persistence": np.broadcast_to(states[0], states.shape), "truth": states}
    title = "Shallow water: doing nothing beside the truth"
    page = show(forecast_globe(title, dataset.grid, VARIABLES, UNITS, Frames.hours(hours), sources))
    for side, source in (("left", "truth"), ("right", "error")):
        page.get_by_label(f"Variable, {side} globe").select_option(label="vorticity")
        page.get_by_label(f"Source, {side} globe").select_option(label=source)
    page.get_by_label("time").fill(str(leads))
    x, y, side = middle(page)
    page.mouse.move(x + 0.1 * side, y - 0.1 * side)
    left, right = readout(page, 0)["value"], readout(page, 1)["value"]
    v = VARIABLES.index("vorticity")
    assert abs(left) <= np.abs(states[-1, v]).max()
    assert abs(right) <= np.abs(states[0, v] - states[-1, v]).max()
    keep(page, "globe")


def test_rooms_are_seen_from_the_inside(show, keep) -> None:
    rooms = [render(room(0, index), "128x256") for index in (18, 14)]
    grid = Grid.fejer(128, 256, offset=0.5)
    labels, depth = np.stack([r.label for r in rooms]), np.stack([r.depth for r in rooms])
    globe = room_globe(
        "Rooms",
        grid,
        np.stack([r.rgb for r in rooms]),
        labels={"truth": labels},
        depth={"truth": depth},
    )
    page = show(globe)
    x, y, side = middle(page)
    for turn in ((0, 0), (100, -30)):
        page.evaluate("turn => document.querySelector('spherule-globe').turn(...turn)", list(turn))
        page.mouse.move(x + 0.2 * side, y + 0.1 * side)
        place = readout(page)
        row = int((90 - place["latitude"]) / 180 * 128)
        column = int(place["longitude"] % 360 / 360 * 256)
        assert place["value"] == labels[0, row, column]
        assert CLASSES[labels[0, row, column]] in page.locator(".globe-readout").first.inner_text()
    # To the right are larger longitudes, as in the flat picture.
    page.mouse.move(x + 0.4 * side, y + 0.1 * side)
    assert 5 < (readout(page)["longitude"] - place["longitude"]) % 360 < 60
    keep(page, "globe_room")
    # All photograph, no labels: the pixel is the photograph's.
    page.get_by_label("over the picture").fill("0")
    settle(page)
    page.mouse.move(x, y)
    place = readout(page)
    row = int((90 - place["latitude"]) / 180 * 128)
    column = int(place["longitude"] % 360 / 360 * 256)
    around = rooms[0].rgb[row - 1 : row + 2, column - 1 : column + 2].reshape(-1, 3).astype(int)
    seen = np.array(color_at(page, x, y))
    assert (seen >= around.min(0) - 3).all()
    assert (seen <= around.max(0) + 3).all()
    page.get_by_label("Variable, left globe").select_option(label="depth")
    page.get_by_role("slider", name="room").fill("1")
    place = readout(page)
    near = depth[1, row - 1 : row + 2, column - 1 : column + 2]
    assert near.min() - 0.01 <= place["value"] <= near.max() + 0.01


def test_a_click_shows_what_the_nearest_query_attends_to(show) -> None:
    grid = Grid.gauss(16, 32)
    model = nn.SphericalAttention(8, grid, heads=2, cutoff=0.6)
    globe = attention_globe("Attention", model, lambda: model(torch.randn(1, 8, *grid.shape)))
    page = show(globe)
    x, y, side = middle(page)
    places = np.array(globe.frames.places)
    for dx, dy in ((0.2, -0.1), (-0.15, 0.2)):
        page.mouse.click(x + dx * side, y + dy * side)
        at = readout(page)
        a, b = np.radians([at["latitude"], at["longitude"]])
        c, d = np.radians(places.T)
        nearness = np.sin(a) * np.sin(c) + np.cos(a) * np.cos(c) * np.cos(b - d)
        frame = int(np.argmax(nearness))
        assert page.locator(".globe-when").inner_text() == globe.frames.labels[frame]
        weights = globe.variables[0].sources["head 1"][frame]
        said = page.locator(".globe-summary").first.inner_text()
        missing = float(said.split("; ")[1].split(" %")[0])
        share = (grid.weights * np.isnan(weights)).sum() / grid.weights.sum()
        assert missing == pytest.approx(100 * share, abs=0.1)
        # The place itself is within its own disk.
        assert at["value"] > 0
    page.locator(".globe-stage canvas").first.focus()
    before = page.locator(".globe-when").inner_text()
    page.keyboard.press("Enter")
    settle(page)
    assert page.locator(".globe-when").inner_text() != before


def test_two_globes_of_128x256_play(show) -> None:
    grid, hours = Grid.gauss(128, 256), 60
    truth = waves(grid, hours, lmax=42)
    fields = {"model": truth[::-1], "truth": truth}
    page = show(
        Globe(
            "Speed", [Variable("vorticity", grid, fields, "", "truth")], Frames.hours(range(hours))
        )
    )
    page.get_by_label("Frames a second").select_option(label="30 a second")
    page.get_by_role("button", name="play").click()
    page.wait_for_timeout(3000)  # in which it finds how many pixels it can draw
    drawn = page.evaluate(
        """async () => {
          const globe = document.querySelector('spherule-globe');
          const [count, start] = [globe.drawn, performance.now()];
          await new Promise(r => setTimeout(r, 3000));
          return (globe.drawn - count) / (performance.now() - start) * 1000;
        }"""
    )
    sharp = page.evaluate("document.querySelector('spherule-globe').sharpness")
    print(f"{drawn:.0f} frames a second, sharpness {sharp:.2f}")  # of this machine, for the curious
    assert drawn > 1
    assert sharp > 0.4
