"""What people have: formats, several files, levels, members, calendars, rows of their own."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from spherule.data import grib
from spherule.data.field_files import choose, open_fields
from spherule.data.forecast import ForecastDataset
from spherule.data.layout import Layout
from spherule.data.times import Lead, shifted, span
from spherule.grids import Grid
from tests.fields import era5_like

xr = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def data():
    return era5_like("era5", times=8)


def written(data, path: Path, how: str) -> Path:
    if how == "netcdf3":
        data.to_netcdf(path, engine="scipy")
    elif how == "netcdf4":
        data.to_netcdf(path, engine="h5netcdf")
    elif how == "several":
        path = path.with_suffix("")
        path.mkdir()
        for i in range(4):
            data.isel(time=slice(2 * i, 2 * i + 2)).to_netcdf(path / f"{i}.nc", engine="h5netcdf")
    else:
        pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
        path = path.with_suffix("")
        data.to_zarr(path, zarr_format=int(how[-1]), consolidated=False)
    return path


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
@pytest.mark.parametrize("how", ["netcdf3", "netcdf4", "zarr2", "zarr3", "several"])
def test_every_format_gives_the_same_samples(how: str, data, tmp_path: Path) -> None:
    path = written(data, tmp_path / "mine.nc", how)
    read = ForecastDataset(path, ["z", "t"], lead="1h")
    wanted = ForecastDataset(data, ["z", "t"], lead="1h")
    assert len(read) == len(wanted) == 7
    assert all(torch.equal(a, b) for a, b in zip(read[3], wanted[3], strict=True))
    if how == "several":
        pattern = ForecastDataset(f"{path}/[0-2].nc", ["z", "t"], lead="1h")
        assert pattern.times.size == 6


def test_an_address_is_read_through_fsspec(data, tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    data.to_netcdf(tmp_path / "far.nc", engine="h5netcdf")
    with fsspec.open("memory://spherule/far.nc", "wb") as file:
        file.write((tmp_path / "far.nc").read_bytes())
    # As a flag makes a path of it.
    read = ForecastDataset(Path("memory://spherule/far.nc"), ["z"], lead="1h")
    assert torch.equal(read[0][0], ForecastDataset(data, ["z"], lead="1h")[0][0])
    with pytest.raises(FileNotFoundError, match=r"memory://spherule/no\.nc does not exist"):
        open_fields("memory://spherule/no.nc")
    for address in (f"file://{tmp_path}/far.nc", Path(f"file://{tmp_path}/far.nc")):
        assert open_fields(address).z.equals(data.z)


def test_levels_are_variables_of_their_own(data) -> None:
    levels = xr.concat([data.z, 2 * data.z, 3 * data.z], "level").assign_coords(
        level=("level", [1000, 850, 500], {"units": "hPa"})
    )
    levels = xr.Dataset({"z": levels, "t": data.t})
    one = ForecastDataset(levels, ["t", "z@500"], lead="1h")
    assert one.variables == ("t", "z@500")
    assert np.allclose(one.state(2)[1], 3 * one.layout.read(data.z[2]))
    assert ForecastDataset(levels, ["z"], lead="1h").variables == ("z@1000", "z@850", "z@500")
    with pytest.raises(ValueError, match=r"'z@300': level has no 300; it has 1000, 850, 500"):
        choose(levels, ["z@300"], "mine")
    with pytest.raises(ValueError, match="t has no levels"):
        choose(levels, ["t@500"], "mine")


def test_members_are_samples_and_other_dimensions_are_named(data) -> None:
    members = xr.concat([data.z, data.z + 5], "number")
    read = ForecastDataset(xr.Dataset({"z": members}), ["z"], lead="1h")
    assert len(read) == 14
    first, second = read[6][0], read[7][0]
    assert np.allclose((second - first) * read.statistics.std[0], 5, atol=0.1)
    with pytest.raises(ValueError, match=r"z has dimensions beside time and space: branch \(2\)"):
        ForecastDataset(xr.Dataset({"z": members.rename(number="branch")}), ["z"], lead="1h")


@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_calendars_without_leap_years_count_their_own_days(data, calendar: str) -> None:
    pytest.importorskip("cftime")
    days = xr.date_range("2000-02-25", periods=8, freq="D", calendar=calendar, use_cftime=True)
    read = ForecastDataset(data.assign_coords(time=days)[["z"]], ["z"], lead="2d")
    assert len(read) == 6
    later = shifted(data.assign_coords(time=days), Lead.parse("7d")).time.values
    assert (later.min() - days[0]).days == 7
    wanted = {"noleap": (3, 4), "360_day": (3, 2)}[calendar]
    assert (later[0].month, later[0].day) == wanted


@pytest.mark.parametrize("name", ["valid_time", "time_counter", "t0"])
def test_time_is_found_by_name_or_attributes_and_shifted(data, name: str) -> None:
    renamed = data.rename(time=name)
    renamed[name].attrs["standard_name"] = "time"
    read = ForecastDataset(renamed, ["z"], lead="1h")
    assert len(read) == 7
    later = shifted(renamed, read.lead)
    assert (later[name].values - data.time.values == np.timedelta64(1, "h")).all()
    assert later[name].attrs == renamed[name].attrs


def test_steps_of_a_forecast_carry_the_time(data) -> None:
    """As cfgrib gives them: time is when the forecast starts, valid_time lies along step."""
    begin = data.time.values[0]
    steps = data.time.values - begin
    grib = data.rename(time="step").assign_coords(
        step=steps, time=begin, valid_time=("step", data.time.values)
    )
    assert len(ForecastDataset(grib, ["z"], lead="1h")) == 7
    later = shifted(grib, Lead.parse("6h"))
    assert later.time.values == begin
    assert (later.valid_time.values == begin + later.step.values).all()
    assert later.step.values[0] == np.timedelta64(6, "h")


def test_months_and_steps_are_leads_too(data) -> None:
    middles = np.array(
        ["2000-01-16T12", "2000-02-15T12", "2000-03-16T12", "2000-05-16T12"], "M8[ns]"
    )
    monthly = data.isel(time=slice(4)).assign_coords(time=middles)
    read = ForecastDataset(monthly, ["z"], lead="1mo")
    assert [read.time(i) for i in range(len(read))] == list(middles[:2])
    assert len(ForecastDataset(monthly, ["z"], lead="1step")) == 3
    ends = np.array(["2000-01-31T06", "2001-01-31T06"], "M8[ns]")
    assert Lead.parse("1mo").later(ends).astype(str).tolist() == [
        "2000-02-29T06:00:00.000000000", "2001-02-28T06:00:00.000000000",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="one time a month, got more"):
        ForecastDataset(data, ["z"], lead="1mo")
    for text in ("1.5mo", "0.5step"):
        with pytest.raises(ValueError, match="whole months or steps"):
            Lead.parse(text)
    assert [span(s) for s in (30, 1800, 21600, 86400, 129600, 432000)] == [
        "30 s", "30 min", "6 h", "1 d", "36 h", "5 d",
    ]  # fmt: skip


def test_messages_speak_of_hours_and_days(data) -> None:
    with pytest.raises(
        ValueError, match=r"follow others by lead=5 d, 1 in a row; the smallest step is 1 h"
    ):
        ForecastDataset(data, ["z"], lead="5d")


def test_what_would_be_damaged_silently_is_refused_by_name(data) -> None:
    with pytest.raises(ValueError, match="z given more than once"):
        ForecastDataset(data, ["z", "t", "z"], lead="1h")
    with pytest.raises(ValueError, match=r"--static t varies along time \(8\)"):
        ForecastDataset(data, ["z"], static=["t"], lead="1h")
    repeated = data.assign(orography=data.orography.expand_dims(time=data.time))
    alone = ForecastDataset(data, ["z"], static=["orography"], lead="1h")
    same = ForecastDataset(repeated, ["z"], static=["orography"], lead="1h")
    assert torch.equal(alone.static, same.static)
    broken = data.copy(deep=True)
    broken["t"][2, 3, 4] = np.inf
    for missing in ("refuse", "mask"):
        with pytest.raises(ValueError, match="t has 1 infinite values of 312"):
            ForecastDataset(broken, ["t"], lead="1h", missing=missing)
    large = data.assign(t=data.t.astype(np.float64) * 1e300)
    with pytest.raises(ValueError, match="beyond float32's range"):
        ForecastDataset(large, ["t"], lead="1h")


def test_a_first_time_without_values_does_not_spoil_the_statistics(data) -> None:
    holes = data.copy(deep=True)
    holes["t"][0] = np.nan
    read = ForecastDataset(holes, ["t"], lead="1h", missing="mask")
    whole = ForecastDataset(data.isel(time=slice(1, None)), ["t"], lead="1h")
    assert np.allclose(read.statistics.mean, whole.statistics.mean)
    assert np.allclose(read.statistics.std, whole.statistics.std)
    holes["t"][:] = np.nan
    with pytest.raises(ValueError, match="t has no values in the training part"):
        ForecastDataset(holes, ["t"], lead="1h", missing="mask")


def test_fields_are_read_on_another_grid(data) -> None:
    grid = Grid.healpix(2)
    read = ForecastDataset(data, ["z"], static=["place"], lead="1h", grid=grid)
    assert read.grid == grid
    assert read[0][0].shape == (1, 48)
    smooth = Layout.of(data, target=Grid.gauss(24, 48))
    place = smooth.read(data["place"])
    assert np.allclose(place.ravel(), smooth.grid.xyz @ [1.0, 2.0, 3.0], atol=0.06)
    assert smooth.unread(place, ["latitude", "longitude"]).shape == data["place"].shape


def test_grib_without_messages_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    cubes: list = []
    store = types.ModuleType("cfgrib.xarray_store")
    store.open_variable_datasets = lambda *_, **__: cubes
    monkeypatch.setitem(sys.modules, "cfgrib", types.ModuleType("cfgrib"))
    monkeypatch.setitem(sys.modules, "cfgrib.xarray_store", store)
    with pytest.raises(ValueError, match="no messages"):
        grib._opened("empty.grib", 0, False)
    cubes.append(era5_like("era5", times=2)[["z"]])
    assert list(grib._opened("one.grib", 0, False).data_vars) == ["z"]


def test_files_of_one_time_each_are_joined(data, tmp_path: Path) -> None:
    for i in range(4):
        data.isel(time=i).to_netcdf(tmp_path / f"{i}.nc", engine="h5netcdf")
    (tmp_path / ".DS_Store").write_bytes(b"no fields")
    joined = ForecastDataset(tmp_path, ["z"], lead="1h")
    wanted = ForecastDataset(data.isel(time=slice(4)), ["z"], lead="1h")
    assert len(joined) == len(wanted) == 3
    assert all(torch.equal(a, b) for a, b in zip(joined[1], wanted[1], strict=True))


def test_a_time_in_two_files_is_refused(data, tmp_path: Path) -> None:
    for i, times in enumerate((slice(0, 4), slice(3, 8))):
        data.isel(time=times).to_netcdf(tmp_path / f"{i}.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"in more than one of 2 files|don't fit together"):
        open_fields(tmp_path)


@pytest.mark.parametrize(
    "levels", [[0.494025, 1062.43994, 2225.078], [1.00000012, 1.0000024, 3.0], ["low", "mid", "up"]]
)
def test_levels_are_found_again_by_their_names(data, levels: list) -> None:
    kind = None if isinstance(levels[0], str) else np.float32
    axis = xr.DataArray(np.array(levels, dtype=kind), dims="depth", attrs={"positive": "down"})
    deep = xr.concat([k * data.z for k in range(3)], "depth").assign_coords(depth=axis)
    names = list(choose(deep.to_dataset(name="z"), ["z"], "file").data_vars)
    assert len(set(names)) == 3
    for k, name in enumerate(names):
        found = choose(deep.to_dataset(name="z"), [str(name)], "file")
        assert np.array_equal(found[name], k * data.z)


@pytest.mark.parametrize("calendar", ["noleap", "standard"])
def test_axes_of_many_centuries_can_be_followed(data, calendar: str) -> None:
    pytest.importorskip("cftime")
    months = xr.date_range("1500-01-01", periods=8 * 12, freq="100MS", calendar=calendar,
                           use_cftime=True)  # fmt: skip
    old = data.isel(time=np.arange(8 * 12) % 8).assign_coords(time=months)
    for lead in ("100mo", "1step"):
        found = ForecastDataset(old, ["z"], lead=lead)
        assert len(found) == 8 * 12 - 1


def test_times_that_are_missing_or_none_are_named(data) -> None:
    for place in (0, 3, 7):
        times = data.time.values.copy()
        times[place] = np.datetime64("NaT")
        with pytest.raises(
            ValueError, match=f"1 of 8 times are missing, the first at place {place}"
        ):
            ForecastDataset(data.assign_coords(time=times), ["z"], lead="1h")
    with pytest.raises(ValueError, match="has no times"):
        ForecastDataset(data.isel(time=slice(0)), ["z"], lead="1h")


def test_durations_are_no_numbers(data) -> None:
    sun = data.assign(sun=data.z.astype("timedelta64[s]").astype("timedelta64[ns]"))
    with pytest.raises(ValueError, match="sun holds timedelta64"):
        ForecastDataset(sun, ["sun"], lead="1h")
