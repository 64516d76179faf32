import re
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from spherule import Grid
from spherule.cli import main
from spherule.data import Panorama, write_panoramas
from spherule.report.globe.files import MOST_FRAMES, MOST_VARIABLES, file_globe
from tests.browser.fields import waves


def dataset(
    name: str, fields: dict[str, tuple[tuple[str, ...], np.ndarray]], **coordinates
) -> xr.Dataset:
    """Fields with the latitudes and longitudes of a grid; `*` in dimensions stands for space."""
    grid = Grid.from_name(name)
    space = ("lat", "lon") if grid.regular else ("cell",)
    lat, lon = 90 - np.degrees(grid.point_theta), np.degrees(grid.point_phi)
    if grid.regular:
        lat, lon = lat.reshape(grid.shape)[:, 0], lon.reshape(grid.shape)[0]
    return xr.Dataset(
        {
            n: ([d for dim in dims for d in (space if dim == "*" else (dim,))], values)
            for n, (dims, values) in fields.items()
        },
        {"lat": (space[:1], lat), "lon": (space[-1:], lon), **coordinates},
    )


def view(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["spherule", "view", *map(str, arguments)])
    main()


TIMES = np.datetime64("2020-01-01", "ns") + np.arange(4) * np.timedelta64(6, "h")


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
@pytest.mark.parametrize("name", ["gauss:8x16", "H4", "O8"])
def test_files_on_any_ring_grid_become_pages(monkeypatch, capsys, tmp_path, name, suffix) -> None:
    grid, path = Grid.from_name(name), tmp_path / f"fields{suffix}"
    u = waves(grid, 4, lmax=4).astype(np.float32)
    data = dataset(name, {"u": (("time", "*"), u), "orography": (("*",), u[0])}, time=TIMES)
    data.u.attrs["units"] = "m/s"
    if suffix == ".nc":
        data.to_netcdf(path, engine="h5netcdf")
    else:
        data.to_zarr(path, consolidated=False, zarr_format=3)
    globe = file_globe(path)
    assert [(v.name, v.units, v.grid) for v in globe.variables] == [
        ("u", "m/s", grid),
        ("orography", "", grid),
    ]
    assert np.array_equal(globe.variables[0].sources["file"], u)
    assert globe.frames.labels[1] == "2020-01-01 06:00"
    monkeypatch.chdir(tmp_path)
    view(monkeypatch, path, "--variable", "u")
    assert re.search(r"wrote fields.html \(\d\.\d MB\)", capsys.readouterr().out)
    assert (tmp_path / "fields.html").read_text().startswith("<!doctype html>")


def test_levels_are_fields_of_their_own(tmp_path: Path) -> None:
    u = np.arange(2 * 3 * 128, dtype=np.float32).reshape(2, 3, 8, 16)
    data = dataset(
        "gauss:8x16", {"t": (("level", "time", "*"), u)}, level=[500, 850], time=TIMES[:3]
    )
    data.to_netcdf(tmp_path / "t.nc", engine="h5netcdf")
    globe = file_globe(tmp_path / "t.nc")
    assert [v.name for v in globe.variables] == ["t, level 500", "t, level 850"]
    assert np.array_equal(globe.variables[1].sources["file"], u[1])


def test_of_500_variables_a_few_are_shown_and_the_rest_named(tmp_path: Path) -> None:
    fields = {f"v{i}": (("*",), np.full((8, 16), i, np.float32)) for i in range(500)}
    dataset("gauss:8x16", fields).to_netcdf(tmp_path / "many.nc", engine="h5netcdf")
    globe = file_globe(tmp_path / "many.nc")
    assert len(globe.variables) == MOST_VARIABLES
    assert f"{MOST_VARIABLES} of 500 fields are shown" in globe.notes[1]
    assert "and 488 more" in globe.notes[1]
    assert file_globe(tmp_path / "many.nc", ["v321"]).variables[0].sources["file"].max() == 321


def test_one_time_and_no_time_and_missing_values_make_pages(monkeypatch, tmp_path: Path) -> None:
    u = np.full((1, 8, 16), np.nan, np.float32)
    data = dataset("gauss:8x16", {"u": (("time", "*"), u), "s": (("*",), u[0])}, time=TIMES[:1])
    data.to_netcdf(tmp_path / "one.nc", engine="h5netcdf")
    out = tmp_path / "one.html"
    view(monkeypatch, tmp_path / "one.nc", "--out", out)
    assert out.exists()
    data[["s"]].to_netcdf(tmp_path / "none.nc", engine="h5netcdf")
    assert file_globe(tmp_path / "none.nc").frames.labels == ("",)


def test_long_files_are_read_in_strides(tmp_path: Path) -> None:
    count = 3 * MOST_FRAMES
    u = np.broadcast_to(np.arange(count, dtype=np.float32)[:, None, None], (count, 4, 8))
    hours = np.arange(count) * np.timedelta64(1, "h")
    data = dataset("gauss:4x8", {"u": (("step", "*"), u)}, step=hours.astype("timedelta64[ns]"))
    data.to_netcdf(tmp_path / "long.nc", engine="h5netcdf")
    globe = file_globe(tmp_path / "long.nc")
    assert globe.variables[0].sources["file"][:, 0, 0].tolist() == list(range(0, count, 3))
    assert globe.frames.labels[:3] == ("0 h", "3 h", "6 h")
    assert f"One of 3 times is read, of {count}." in globe.notes


def test_panoramas_are_seen_from_the_inside(tmp_path: Path) -> None:
    path = tmp_path / "rooms.zarr"
    pixels = np.random.default_rng(0).integers(0, 14, (3, 16, 32), dtype=np.uint8)
    source = [Panorama(np.stack([9 * p] * 3, -1), p, p + np.float32(1), "", "a") for p in pixels]
    for _ in write_panoramas(path, source, size=(16, 32), config={}):
        pass
    globe = file_globe(path)
    assert globe.inside
    assert [v.name for v in globe.variables] == ["label", "depth"]
    assert np.array_equal(globe.image.rgb[1], source[1].rgb)
    assert [v.name for v in file_globe(path, ["depth"]).variables] == ["depth"]
    with pytest.raises(ValueError, match="'height' is not label or depth"):
        file_globe(path, ["height"])


@pytest.mark.parametrize(
    ("data", "flags", "words"),
    [
        (xr.Dataset({"u": (("x",), np.zeros(3))}), [], "no coordinate latitude or lat"),
        (
            xr.Dataset(
                {"u": (("lat", "lon"), np.zeros((3, 4)))}, {"lat": [1, 2, 4], "lon": range(4)}
            ),
            [],
            "regional or stretched data is not a grid of the sphere",
        ),
        (dataset("gauss:4x8", {}, time=[0.0]), [], "no variable has dimensions"),
        (dataset("gauss:4x8", {"u": (("*",), np.zeros((4, 8)))}), ["--variable", "w"], "it has u"),
    ],
)
def test_files_that_cannot_be_shown_get_a_sentence(
    monkeypatch, tmp_path, data, flags, words
) -> None:
    data.to_netcdf(tmp_path / "f.nc", engine="h5netcdf")
    with pytest.raises(SystemExit, match=words):
        view(monkeypatch, tmp_path / "f.nc", *flags)
    assert not list(Path().glob("f.html"))


def test_a_run_without_attention_gets_a_sentence(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"is a run: spherule view .* --attention"):
        view(monkeypatch, tmp_path)
    with pytest.raises(SystemExit, match="does not exist"):
        view(monkeypatch, tmp_path / "nothing.nc")
