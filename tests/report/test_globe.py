import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Picture

from spherule import Grid, nn, ops
from spherule.report.globe import (
    Frames,
    Globe,
    Image,
    Variable,
    encode,
    globe_section,
    payload,
    write_globe,
)
from spherule.report.globe.attention import attention_globe
from spherule.report.globe.colors import color_maps
from tests.browser.fields import waves

GRIDS = ["gauss:8x16", "clenshaw_curtis:9x16", "equiangular:8x12", "H4", "O8"]


def embedded(markup: str) -> dict:
    data = re.search(r'<script type="application/json">(.*?)</script>', markup, re.DOTALL)
    return json.loads(data[1])


def decoded(page: dict, variable: int, source: str) -> np.ndarray:
    """(frames, points of the closed rings) of a source, as the page adds it up."""
    v = page["variables"][variable]
    row = page["grids"][v["grid"]]["row"]
    total = 0.0
    for place in next(s["of"] for s in v["sources"] if s["name"] == source):
        f = v["fields"][place]
        codes = encode.unpack(base64.b64decode(f["data"]), f["frames"], row)
        values = f["offset"] + f["scale"] * codes.astype(np.float64)
        total = total + np.where(codes == encode.MISSING, np.nan, values)
    return total


@given(seed=st.integers(0, 2**32 - 1), frames=st.integers(1, 4), row=st.sampled_from([0, 1, 5, 16]))
def test_packing_loses_nothing(seed: int, frames: int, row: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 65536, (frames, 50)).astype(np.uint16)
    assert np.array_equal(encode.unpack(encode.pack(codes, row), frames, row), codes)


@pytest.mark.parametrize("name", GRIDS)
def test_pages_hold_the_fields(name: str) -> None:
    grid = Grid.from_name(name)
    truth = waves(grid, 3, lmax=4)
    model = truth + 1e-4 * waves(grid, 3, lmax=4, seed=1)
    truth[1].flat[7] = np.nan
    page = embedded(
        globe_section(
            Globe(
                "", [Variable("u", grid, {"m": model, "t": truth}, "", "t")], Frames.hours(range(3))
            )
        )
    )
    rings = page["grids"][0]
    north = rings["theta"][0] == 0.0 and grid.theta[0] > 0
    inner = slice(int(north), int(north) + grid.size)
    error = model - truth
    for source, field in (("m", model + 0 * truth), ("t", truth), ("error", error)):
        found = decoded(page, 0, source)[:, inner].reshape(field.shape)
        assert np.array_equal(np.isnan(found), np.isnan(field))
        assert np.nanmax(np.abs(found - field)) <= 1e-4 * (np.nanmax(field) - np.nanmin(field))


@pytest.mark.parametrize("name", GRIDS)
def test_rings_reach_from_pole_to_pole(name: str) -> None:
    grid = Grid.from_name(name)
    rings = encode.rings(grid)
    assert (rings["theta"][0], rings["theta"][-1]) == pytest.approx((0, np.pi))
    u = grid.xyz[:, 2][None] + 0.3 * grid.xyz[:, 0][None]
    closed = encode.close(u, grid)
    assert closed.shape[1] == sum(rings["nphi"])
    added = np.flatnonzero(np.array(rings["weight"]) == 0)
    if grid.theta[0] > 0:
        assert added[0] == 0
        assert closed[0, 0] == pytest.approx(np.cos(grid.theta[0]))
    assert np.dot(rings["weight"], rings["nphi"]) == pytest.approx(grid.weights.sum())


def test_a_pole_is_missing_where_most_of_its_ring_is() -> None:
    grid = Grid.gauss(4, 8)
    u = np.ones((1, 4, 8))
    u[0, 0, :5] = np.nan
    u[0, 3, :4] = np.nan
    closed = encode.close(u.reshape(1, -1), grid)[0]
    assert np.isnan(closed[0])
    assert closed[-1] == 1


@pytest.mark.parametrize(
    ("low", "high", "colors", "limits"),
    [
        (-2.0, 1.0, "diverging", (-2.0, 2.0)),
        (3.0, 5.0, "sequential", (3.0, 5.0)),
        (-0.01, 1.0, "sequential", (-0.01, 1.0)),
        (-3.0, -1.0, "sequential", (-3.0, -1.0)),
        (2.0, 2.0, "sequential", (2.0, 3.0)),
        (np.nan, np.nan, "sequential", (0.0, 1.0)),
    ],
)
def test_color_map_suits_the_variable(low, high, colors: str, limits: tuple) -> None:
    grid = Grid.gauss(4, 8)
    u = np.linspace(low, high, grid.size).reshape(grid.shape)
    source = embedded(globe_section(Globe("", [Variable("u", grid, {"file": u})])))["variables"][0]
    assert source["sources"][0]["colors"] == colors
    assert source["sources"][0]["limits"] == pytest.approx(limits)


def test_color_maps_are_read_by_lightness_alone() -> None:
    def lightness(table: np.ndarray) -> np.ndarray:
        """CIE L*, by way of luminance."""
        s = table / 255
        linear = np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4)
        y = linear @ [0.2126, 0.7152, 0.0722]
        return np.where(y > 0.008856, 116 * np.cbrt(y) - 16, 903.3 * y)

    maps = color_maps()
    assert (np.diff(lightness(maps["sequential"])) > -0.3).all()
    assert np.ptp(lightness(maps["sequential"])) > 70
    # Viénot, Brettel and Mollon: what an eye without green cones sees, in linear light.
    blind = np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]])
    for name in ("diverging", "error"):
        up, down = lightness(maps[name][:128]), lightness(maps[name][128:])
        assert (np.diff(up) > -0.3).all()
        assert (np.diff(down) < 0.3).all()
        ends = (maps[name][[20, -21]] / 255) ** 2.2 @ blind.T
        # One side is blue to such an eye, the other yellow.
        assert ends[0, 2] > 1.5 * ends[0, 0]
        assert ends[1, 2] < 0.5 * ends[1, 0]


def test_ten_days_of_three_variables_stay_below_4_megabytes(tmp_path: Path) -> None:
    grid, hours = Grid.gauss(96, 192), 241
    variables = []
    for seed, name in enumerate(("geopotential", "vorticity", "divergence")):
        few = waves(grid, 16, lmax=42, seed=seed).astype(np.float32)
        truth = few[np.arange(hours) % 16]
        noise = np.random.default_rng(seed).standard_normal(truth.shape, dtype=np.float32)
        model = truth + 0.3 * truth[::-1] + 1e-3 * noise
        variables.append(Variable(name, grid, {"model": model, "truth": truth}, "", "truth"))
    path = tmp_path / "globe.html"
    write_globe(path, Globe("Ten days", variables, Frames.hours(np.arange(hours))))
    assert path.stat().st_size < 4e6
    page = embedded(path.read_text())
    assert len(page["frames"]["labels"]) >= 20
    assert page["frames"]["labels"][0] == "0 d"
    stride = round(24 * float(page["frames"]["labels"][1].split()[0]))
    assert any(f"One of {stride} frames is shown, of 241" in note for note in page["notes"])
    found = decoded(page, 1, "model")[5, 1:-1].reshape(grid.shape)
    field = variables[1].sources["model"]
    assert np.abs(found - field[5 * stride]).max() <= 1e-3 * np.ptp(field)


def test_large_grids_are_coarsened_and_said_to_be() -> None:
    grid = Grid.clenshaw_curtis(181, 360)
    u = waves(grid, 30, lmax=6).astype(np.float32)
    u[:, (grid.xyz[:, 0] > 0.5).reshape(grid.shape)] = np.nan
    globe = Globe("", [Variable("u", grid, {"file": u})], Frames.hours(range(30)))
    page = embedded(globe_section(globe, room=payload.AROUND + 130_000))
    coarse = Grid.from_name(page["grids"][0]["name"])
    assert coarse.size < 10_000
    assert page["notes"][0] == f"u is on {grid.name}, shown on {coarse.name}."
    found = decoded(page, 0, "file")[0, 1:-1]
    near = coarse.xyz[:, 0]
    assert np.isnan(found[near > 0.55]).all()
    kept = near < 0.4
    wanted = ops.resample(torch.from_numpy(u[0]).nan_to_num(), grid, coarse).numpy().ravel()
    assert found[kept] == pytest.approx(wanted[kept], abs=1e-3)


def test_pages_need_nothing_and_break_on_no_name(tmp_path: Path) -> None:
    grid = Grid.gauss(4, 8)
    evil = "</script><b onclick=alert(1)>{globe}"
    path = tmp_path / "deep" / "globe.html"
    write_globe(path, Globe(evil, [Variable(evil, grid, {evil: np.zeros(grid.shape)}, evil)]))
    text = path.read_text()
    assert "<b onclick" not in text
    assert text.count("<spherule-globe>") == 1
    assert embedded(text)["variables"][0]["units"] == evil
    assert re.findall(r"(?:src|href)=.{11}", text) == ['src="data:image']
    assert "http" not in text
    assert not list(tmp_path.rglob("*.new"))


def test_still_picture_shows_north_up_and_east_right() -> None:
    grid = Grid.gauss(32, 64)
    # Above 30 N, 0 E: to the east, y grows; gray is missing.
    u = grid.xyz[:, 1].reshape(grid.shape).copy()
    u[:3] = np.nan
    markup = globe_section(Globe("", [Variable("u", grid, {"file": u})]))
    data = re.search(r"data:image/png;base64,([^\"]*)", markup)[1]
    picture = np.asarray(Picture.open(io.BytesIO(base64.b64decode(data)))).astype(int)
    side = len(picture)
    west, east = picture[side // 2, side // 8], picture[side // 2, -side // 8]
    assert west[2] > west[0]
    assert east[0] > east[2]
    pole = picture[int(side / 2 * (1 - np.cos(np.radians(30)))) + 3, side // 2]
    assert set(pole) == {158}


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named() -> None:
    grid = Grid.gauss(4, 8)
    u = np.zeros((2, 4, 8))
    with pytest.raises(ValueError, match=r"u, file: expected \(frames, 4, 8\)"):
        Variable("u", grid, {"file": np.zeros((8, 4))})
    with pytest.raises(ValueError, match="truth='t' is not one of m"):
        Variable("u", grid, {"m": u}, truth="t")
    with pytest.raises(ValueError, match="u, file: expected 3 frames or one, got 2"):
        Globe("", [Variable("u", grid, {"file": u})], Frames.hours(range(3)))
    with pytest.raises(ValueError, match="variables: expected at least one"):
        Globe("", [])
    with pytest.raises(ValueError, match=r"rgb: expected uint8 \(frames, 4, 8, 3\)"):
        Image(grid, np.zeros((4, 8, 3), np.uint8))


@pytest.mark.parametrize("cutoff", [None, 0.7])
@pytest.mark.parametrize("planar", [False, True])
def test_attention_page_holds_the_weights_of_every_layer_and_head(cutoff, planar: bool) -> None:
    grid = Grid.gauss(8, 16)
    layers = [
        nn.PlanarAttention(6, grid, heads=2, window=None if cutoff is None else 3)
        if planar
        else nn.SphericalAttention(6, grid, heads=2, cutoff=cutoff)
        for _ in range(2)
    ]
    model = torch.nn.Sequential(*layers)
    x = torch.randn(1, 6, *grid.shape)
    globe = attention_globe("", model, lambda: model(x))
    assert [v.name for v in globe.variables] == ["attention of layer 1", "attention of layer 2"]
    assert not layers[0]._forward_pre_hooks
    # The weights make the layer's own output of its values.
    theta = np.radians(90 - np.array(globe.frames.places)[:, 0])
    phi = np.radians(np.array(globe.frames.places)[:, 1])
    inner = layers[0](x)
    for layer, variable, field in zip(layers, globe.variables, (x, inner), strict=True):
        weights = np.stack([variable.sources[f"head {h}"] for h in (1, 2)])
        assert np.nansum(weights, axis=(-1, -2)) == pytest.approx(1, abs=1e-5)
        assert np.isnan(weights).any() == (cutoff is not None)
        _, _, v = layer.project(field.flatten(2))
        flat = torch.from_numpy(weights).flatten(2).nan_to_num()
        found = layer.out((flat @ v[0])[None])[0]
        point = np.argmax(
            grid.xyz
            @ np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)]),
            axis=0,
        )
        torch.testing.assert_close(
            found, layer(field).flatten(2)[0][:, point], rtol=1e-4, atol=1e-5
        )


def test_a_model_without_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="Linear has no attention layer"):
        attention_globe("", torch.nn.Linear(1, 1), lambda: None)
