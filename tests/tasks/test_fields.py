"""Trained models on new data: coordinates, order and units come back as they were."""

import datetime
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from spherule.data.field_files import open_fields
from spherule.data.layout import Layout
from spherule.models import LinearConfig, TransformerConfig, build
from spherule.models.least_squares import fit_zonal
from spherule.report.rollout import draw_rollout
from spherule.runs import Run, evaluate, evaluated, predict, roll_out, train
from spherule.tasks import ForecastConfig, fields
from spherule.tasks.field_prediction import BATCH, _pieces
from spherule.tasks.fields import FieldTask
from spherule.tasks.shallow_water import ShallowWaterTask
from spherule.train import RunConfig, TrainingConfig
from tests.fields import era5_like
from tests.tiny import losses, silent, tiny

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")


@pytest.fixture(scope="module", params=["era5", "cells"])
def forecast(request, tmp_path_factory) -> tuple[Path, Path]:
    """A file of the user's, and a run trained on it."""
    torch.set_num_threads(1)
    directory = tmp_path_factory.mktemp("forecast")
    path = directory / "mine.nc"
    era5_like(request.param, times=40).to_netcdf(path, engine="h5netcdf")
    config = RunConfig(
        ForecastConfig(data=path, variables=("z", "t"), static=("orography",), lead="1h"),
        TransformerConfig(width=16, depth=1, skip="identity"),
        TrainingConfig(epochs=4, batch=4, learning_rate=3e-3, schedule="cosine"),
        recipe="forecast/test",
    )
    return path, train(config, directory / "run", log=silent)


def test_a_users_own_data_are_learned(forecast) -> None:
    run = Run.open(forecast[1])
    values = [loss for _, loss in losses(forecast[1])]
    assert np.mean(values[-4:]) < 0.7 * values[0]
    assert run.metadata["variables"] == ["z", "t"]
    assert run.metadata["units"] == ["m2 s-2", "K"]
    assert run.model.in_channels == 3


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_predictions_have_the_users_coordinates_units_and_order(
    forecast, tmp_path: Path, suffix: str
) -> None:
    path, directory = forecast
    out = tmp_path / f"out{suffix}"
    predict(Run.open(directory), path, out)
    before, after = open_fields(path), open_fields(out)
    assert set(after.data_vars) == {"z", "t"}
    for name in ("z", "t"):
        assert after[name].dims == before[name].dims
        assert after[name].attrs == before[name].attrs
        assert after[name].dtype == np.float32
    for name in before.coords:
        if name != "time":
            xr.testing.assert_equal(
                after[name].drop_vars("time", errors="ignore"),
                before[name].drop_vars("time", errors="ignore"),
            )
    assert (after.time.values - before.time.values == np.timedelta64(1, "h")).all()
    # Close to the truth an hour later, which a wrong order would not be.
    truth = before["z"].isel(time=slice(1, None)).values
    found = after["z"].isel(time=slice(None, -1)).values
    spread = truth.std()
    assert (
        np.sqrt(((found - truth) ** 2).mean()) < 0.75 * spread
    )  # 1.4 for fields that are unrelated


def test_predictions_of_packed_fields_are_not_packed(forecast, tmp_path: Path) -> None:
    """Packed as int16 the input just fits; what is predicted need not, and is float32."""
    path, directory = forecast
    data = open_fields(path).isel(time=slice(0, 6)).load()
    run = Run.open(directory)
    encoding = {}
    for name in ("z", "t"):
        low, high = float(data[name].min()), float(data[name].max())
        scale, offset = (high - low) / 65000, (high + low) / 2
        encoding[name] = {
            "dtype": "int16",
            "scale_factor": scale,
            "add_offset": offset,
            "_FillValue": -32768,
        }
    data.to_netcdf(tmp_path / "packed.nc", engine="h5netcdf", encoding=encoding)
    data.to_netcdf(tmp_path / "plain.nc", engine="h5netcdf")
    for name in ("packed", "plain"):
        predict(run, tmp_path / f"{name}.nc", tmp_path / f"{name}-out.nc", log=silent)
    packed, plain = (open_fields(tmp_path / f"{n}-out.nc") for n in ("packed", "plain"))
    for name in ("z", "t"):
        assert "scale_factor" not in packed[name].encoding
        assert packed[name].dtype == np.float32
        spread = float(plain[name].std())
        assert np.abs(packed[name].values - plain[name].values).max() < 1e-3 * spread


@pytest.mark.parametrize("kind", ["noleap", "valid_time", "scalar"])
def test_predicted_times_are_a_lead_later_however_time_is_kept(
    forecast, tmp_path: Path, kind: str
) -> None:
    path, directory = forecast
    data = open_fields(path).isel(time=slice(0, 3)).load()
    if kind == "noleap":
        pytest.importorskip("cftime")
        hours = xr.date_range("2000-02-28T22", periods=3, freq="h", calendar=kind, use_cftime=True)
        data = data.assign_coords(time=hours)
    elif kind == "valid_time":
        data = data.rename(time="valid_time")
    else:
        data = data.isel(time=0)
    data.to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    predict(Run.open(directory), tmp_path / "in.nc", tmp_path / "out.nc", log=silent)
    name = "valid_time" if kind == "valid_time" else "time"
    before, after = (open_fields(tmp_path / f"{n}.nc")[name].values for n in ("in", "out"))
    lead = datetime.timedelta(hours=1) if kind == "noleap" else np.timedelta64(1, "h")
    assert np.all(after - before == lead)
    if kind == "noleap":
        assert (after[1].month, after[1].day, after[1].hour) == (3, 1, 0)


def test_steps_follow_the_models_own_predictions(forecast, tmp_path: Path) -> None:
    path, directory = forecast
    run = Run.open(directory)
    data = open_fields(path).isel(time=slice(0, 5)).load()
    # As cfgrib has it: the time that fields are of, beside the axis.
    data = data.assign_coords(valid_time=("time", data.time.values, {"standard_name": "time"}))
    predict(run, data, tmp_path / "three.nc", steps=3)
    three = open_fields(tmp_path / "three.nc")
    assert three.z.dims == ("lead", *data.z.dims)
    assert (three.lead.values / np.timedelta64(1, "h")).tolist() == [1, 2, 3]
    assert (three.time.values == data.time.values).all()
    assert three.time.attrs["standard_name"] == "forecast_reference_time"
    of = three.time.values + three.lead.values[:, None]
    assert (three.valid_time.values == of).all()
    assert three.valid_time.attrs["standard_name"] == "time"
    # The other way round: the axis is the time that fields are of.
    turned = data.drop_vars("valid_time").rename(time="valid_time")
    turned = turned.assign_coords(time=("valid_time", data.time.values))
    predict(run, turned, tmp_path / "turned.nc", steps=3)
    found = open_fields(tmp_path / "turned.nc")
    assert found.z.dims == ("lead", *turned.z.dims)
    assert (found.valid_time.values == data.time.values).all()
    assert np.array_equal(found.z.values, three.z.values)
    # One step at a time, each from the file before.
    source = data
    for step in range(3):
        predict(run, source, tmp_path / f"{step}.nc", log=silent)
        once = open_fields(tmp_path / f"{step}.nc")
        assert np.allclose(
            once.z.values, three.z.values[step], rtol=1e-3, atol=1e-3 * float(once.z.std())
        )
        source = once.assign(orography=data.orography)
    with pytest.raises(ValueError, match="steps=0"):
        predict(run, data, tmp_path / "none.nc", steps=0)


def test_a_run_on_another_grid_reads_and_writes_the_users(tmp_path: Path) -> None:
    data = era5_like("era5", times=20)
    data.to_netcdf(tmp_path / "mine.nc", engine="h5netcdf")
    task = ForecastConfig(
        data=tmp_path / "mine.nc", variables=("z",), lead="1h", grid="H4", static=("orography",)
    )
    config = RunConfig(
        task, TransformerConfig(width=8, depth=1, skip="identity"), TrainingConfig(epochs=1)
    )
    run = Run.open(train(config, tmp_path / "run", log=silent))
    assert run.model.grid.name == "H4"
    predict(run, tmp_path / "mine.nc", tmp_path / "out.nc", log=silent)
    out = open_fields(tmp_path / "out.nc")
    assert out.z.dims == data.z.dims
    error = out.z.values[:-1] - data.z.values[1:]
    assert np.sqrt((error**2).mean()) < 0.75 * float(data.z.std())


def test_a_start_that_fails_leaves_nothing_and_overwrites_nothing(
    finished: Path, tmp_path: Path
) -> None:
    config = RunConfig(
        ForecastConfig(data=tmp_path / "none.nc", variables=("z",)), TransformerConfig(width=8)
    )
    with pytest.raises(FileNotFoundError):
        train(config, tmp_path / "a" / "b" / "run", log=silent)
    assert not (tmp_path / "a").exists()
    other = Run.open(finished).config
    wide = replace(other, model=TransformerConfig(width=24, depth=1))
    with pytest.raises(ValueError, match="don't fit this model"):
        train(wide, tmp_path / "wide", init=finished, log=silent)
    assert not (tmp_path / "wide").exists()
    before = sorted(str(p) for p in finished.rglob("*"))
    with pytest.raises(ValueError, match="don't fit this model"):
        train(wide, finished, init=finished, overwrite=True, log=silent)
    assert sorted(str(p) for p in finished.rglob("*")) == before


def test_predictions_do_not_depend_on_the_order_of_the_file(forecast, tmp_path: Path) -> None:
    path, directory = forecast
    run = Run.open(directory)
    predict(run, path, tmp_path / "a.nc")
    data = open_fields(path).isel(time=slice(0, 3)).load()
    if "cell" in data.dims:
        turned = data.isel(cell=np.arange(data.sizes["cell"])[::-1])
    else:
        turned = data.isel(latitude=slice(None, None, -1))
        turned = turned.assign_coords(longitude=turned.longitude % 360).sortby("longitude")
    turned.to_netcdf(tmp_path / "turned.nc", engine="h5netcdf")
    predict(run, tmp_path / "turned.nc", tmp_path / "b.nc")
    a, b = open_fields(tmp_path / "a.nc"), open_fields(tmp_path / "b.nc")
    a, b = (Layout.of(d).read(d["z"].isel(time=1)) for d in (a, b))
    assert np.allclose(a, b, rtol=1e-5)


def test_a_spherical_model_predicts_on_another_grid_with_a_note(
    finished: Path, tmp_path: Path
) -> None:
    run = Run.open(finished)
    task = run.task()
    from spherule import ops
    from spherule.grids import Grid

    other = Grid.octahedral(8)
    x, _ = task.test[0]
    there = ops.isht(ops.sht(x, task.grid, 4), other)
    physical = task.statistics.denormalize(there, other).numpy()
    data = xr.Dataset(
        {n: ("cell", physical[i]) for i, n in enumerate(task.variables)},
        coords={
            "lat": ("cell", 90 - np.degrees(other.point_theta)),
            "lon": ("cell", np.degrees(other.point_phi)),
        },
    )
    data.to_zarr(tmp_path / "in.zarr", consolidated=False)
    said: list[str] = []
    predict(run, tmp_path / "in.zarr", tmp_path / "out.zarr", log=said.append)
    assert said == ["note: trained on gauss:12x24, applied on O8"]
    out = open_fields(tmp_path / "out.zarr")
    assert out["vorticity"].shape == (other.size,)
    planar = replace(
        run.config, model=TransformerConfig.planar(width=8, depth=1), recipe="swe/planar"
    )
    bound = train(
        replace(planar, training=replace(planar.training, epochs=1)), tmp_path / "p", log=silent
    )
    with pytest.raises(ValueError, match="knows points, not places on the sphere"):
        predict(Run.open(bound), tmp_path / "in.zarr", tmp_path / "o2.zarr", log=silent)


def test_bad_input_is_named(finished: Path, forecast, tmp_path: Path) -> None:
    path, directory = forecast
    run = Run.open(directory)
    with pytest.raises(ValueError, match=r"\.zarr or \.nc"):
        predict(run, path, tmp_path / "out.txt")
    with pytest.raises(FileExistsError, match="exists"):
        predict(run, path, path)
    with pytest.raises(ValueError, match="has no variable 'geopotential'; it has z"):
        predict(Run.open(finished), path, tmp_path / "out.nc")
    data = open_fields(path).load()
    data["z"][3] = np.nan
    data.to_netcdf(tmp_path / "nan.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"missing values: \{'z': \d+, 't': 0\}"):
        predict(run, tmp_path / "nan.nc", tmp_path / "out.nc")
    with pytest.raises(ValueError, match=r"--data my\.zarr --variables"):
        ForecastConfig().open(0)


def test_files_are_predicted_a_few_fields_at_a_time() -> None:
    data = era5_like("era5", times=BATCH + 3)
    layout = Layout.of(data)
    pieces = list(_pieces(data["z"], layout))
    assert [data["z"].isel(piece).sizes["time"] for piece in pieces] == [BATCH, 3]
    members = data["z"].expand_dims(member=2).transpose("time", "member", ...)
    sizes = [members.isel(piece).sizes for piece in _pieces(members, layout)]
    fields = [size["time"] * size["member"] for size in sizes]
    assert max(fields) <= BATCH
    assert sum(fields) == 2 * (BATCH + 3)
    assert list(_pieces(data["z"].isel(time=0), layout)) == [{}]


def test_missing_values_can_be_left_out_of_the_loss(tmp_path: Path) -> None:
    data = era5_like("era5", times=30)
    data["t"][:, 2:4, 5:9] = np.nan  # land
    data.to_netcdf(tmp_path / "sea.nc", engine="h5netcdf")
    task = ForecastConfig(data=tmp_path / "sea.nc", variables=("z", "t"), lead="1h", missing="mask")
    config = RunConfig(
        task, TransformerConfig(width=8, depth=1, skip="identity"), TrainingConfig(epochs=1)
    )
    directory = train(config, tmp_path / "run", log=silent)
    assert all(np.isfinite(loss) for _, loss in losses(directory))
    predict(Run.open(directory), tmp_path / "sea.nc", tmp_path / "out.nc")
    opened = task.open(0)
    state = opened.trajectories(1)[0][0][None]
    seen = opened.inputs(state)  # what is missing counts as the mean
    assert state.isnan().any()
    assert torch.equal(seen, state.where(state.isfinite(), 0.0))
    missing = open_fields(tmp_path / "out.nc")["t"].isnull()
    assert bool((missing == data["t"].isnull().values).all())


def test_each_variable_counts_where_it_is_known(tmp_path: Path) -> None:
    data = era5_like("era5", times=30)
    data["t"][:, 2:4, 5:9] = np.nan  # land, where z is known
    data["t"][5] = data["t"][20] = np.nan
    for name in ("z", "t"):
        data[name][7] = np.nan
    path = tmp_path / "sea.nc"
    data.to_netcdf(path, engine="h5netcdf")
    task = ForecastConfig(data=path, variables=("z", "t"), lead="1h", missing="mask").open(0)
    model = build(TransformerConfig(width=8, depth=1), task.grid, 2, 2).eval()
    batch = [torch.stack(p) for p in zip(*(task.training[i] for i in range(8)), strict=True)]
    target = batch[1]
    assert task.valid(batch).tolist() == [True] * 6 + [False, True]
    area = torch.tensor(task.grid.weights).reshape(task.grid.shape)
    with torch.no_grad():
        found = task.metrics(model, batch)
        error = (task.step(model, batch[0]).double() - target) ** 2
    square = (error.nan_to_num(0.0) * area).flatten(2).sum(-1)
    square = square / (target.isfinite() * area).flatten(2).sum(-1)  # 0 / 0 where none is known
    torch.testing.assert_close(found["loss"][:6], square.nanmean(1)[:6].float())
    torch.testing.assert_close(found["l2"][:6], square.sqrt().nanmean(1)[:6].float())
    assert found["loss"][6] == 0
    torch.testing.assert_close(task.loss(model, batch), found["loss"])
    # A fit must not learn that what is not there became the mean.
    state, wanted = map(torch.cat, zip(*task.fitting_batches(task.samples), strict=True))
    assert torch.equal(wanted[4], torch.where(target[4].isfinite(), target[4], state[4]))


def test_a_fit_does_not_depend_on_how_many_samples_it_sees_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    task = tiny().task.open(0, tmp_path, log=silent)
    maps = []
    for values, batches in ((1, 50), (7 * task.in_channels * task.grid.size, 8), (2**20, 1)):
        monkeypatch.setattr(fields, "FITTED", values)
        samples = list(task.fitting_batches(50))
        assert len(samples) == batches
        assert sum(len(state) for state, _ in samples) == 50
        maps.append(fit_zonal(samples, task.grid, 4, reach=1).weight)
    # Where the data say little, rounding says more.
    torch.testing.assert_close(maps[1], maps[0], rtol=1e-4, atol=1e-7)
    torch.testing.assert_close(maps[2], maps[0], rtol=1e-4, atol=1e-7)


def test_a_rollout_says_nothing_about_what_is_missing(tmp_path: Path) -> None:
    data = era5_like("era5", times=30)
    data["t"][28] = data["t"][:, 2:4, 5:9] = np.nan
    path = tmp_path / "gap.nc"
    data.to_netcdf(path, engine="h5netcdf")
    task = ForecastConfig(data=path, variables=("z", "t"), lead="1h", missing="mask")
    config = RunConfig(task, LinearConfig(), TrainingConfig(epochs=0))
    rollout = roll_out(Run.open(train(config, tmp_path / "run", log=silent)), 2, samples=1)
    missing = [[False, False], [False, True]]
    assert np.isnan(rollout.model_error).tolist() == missing
    assert np.isnan(rollout.persistence_error).tolist() == missing
    for source, gaps in (("model", [8, 8, 8]), ("truth", [8, 8, data["t"][28].size])):
        assert np.isnan(rollout.frames[source][:, 1]).sum((1, 2)).tolist() == gaps
        assert not np.isnan(rollout.frames[source][:, 0]).any()
    draw_rollout(rollout, tmp_path / "drawn")
    assert json.loads((tmp_path / "drawn/rollout.json").read_text())["model_error"][1][1] is None


def test_a_part_without_values_is_refused(tmp_path: Path) -> None:
    data = era5_like("era5", times=30)
    data["z"][24:] = np.nan
    data.to_netcdf(tmp_path / "early.nc", engine="h5netcdf")
    task = ForecastConfig(data=tmp_path / "early.nc", variables=("z",), lead="1h", missing="mask")
    config = RunConfig(task, LinearConfig(), TrainingConfig(epochs=0))
    with pytest.raises(ValueError, match="the validation part has no values"):
        train(config, tmp_path / "run", log=silent)


@pytest.mark.parametrize("norm", ["instance", "layer"])
def test_a_state_of_which_nothing_is_known_is_the_mean_to_a_model(
    norm: str, tmp_path: Path
) -> None:
    data = era5_like("era5", times=12)
    for name in ("z", "t"):
        data[name][0] = np.nan
    data.to_netcdf(tmp_path / "late.nc", engine="h5netcdf")
    path = tmp_path / "late.nc"
    task = ForecastConfig(data=path, variables=("z", "t"), lead="1h", missing="mask").open(0)
    model = build(TransformerConfig(width=8, depth=1, norm=norm), task.grid, 2, 2)
    states = torch.stack([task.training[i][0] for i in range(2)])
    assert states[0].isnan().all()
    prediction = task.step(model, states)
    torch.testing.assert_close(prediction[0], model(torch.zeros_like(states[:1]))[0])
    torch.testing.assert_close(prediction[1], model(states[1:])[0])


def test_evaluation_is_kept_until_the_model_is_another(finished: Path) -> None:
    run = Run.open(finished)
    result = evaluate(run)
    assert result["test"]["loss"]["count"] == run.task().test_samples
    assert result["parameters"] == sum(p.numel() for p in run.model.parameters())
    assert evaluated([finished]) == [result]
    short = evaluate(run, samples=2)
    assert short["test"]["loss"]["count"] == 2
    (finished / "evaluation.json").unlink()


def test_a_rollout_ends_where_fields_cease_to_be_finite(forecast, monkeypatch) -> None:
    run, finite = Run.open(forecast[1]), [True, True, False, False]
    step = type(run.task()).step
    states = iter(finite)
    monkeypatch.setattr(
        type(run.task()), "step", lambda *args: step(*args) * (1.0 if next(states) else math.nan)
    )
    rollout = roll_out(run, 3, samples=1)
    assert (rollout.leads, rollout.hours.tolist()) == (3, [1.0, 2.0])
    assert rollout.frames["model"].shape == rollout.frames["truth"].shape
    with pytest.raises(FloatingPointError, match="first prediction is not finite"):
        roll_out(run, 3, samples=1)


def test_a_rollout_starts_from_the_one_step_error_and_beats_nothing_at_first(forecast) -> None:
    run = Run.open(forecast[1])
    task = run.task()
    assert roll_out(run, 1, samples=50).hours.size == 1  # as many as there are
    rollout = roll_out(run, 2, samples=2)
    assert rollout.hours.tolist() == [1.0, 2.0]
    x, y = (
        torch.stack(p) for p in zip(*(task.trajectories(2)[i][:2] for i in range(2)), strict=True)
    )
    with torch.no_grad():
        prediction = task.step(run.model.eval(), x)
    weights = torch.tensor(task.grid.weights / task.grid.weights.sum())
    square = ((prediction - y) ** 2 * weights.reshape(task.grid.shape)).flatten(2).sum(-1)
    assert np.allclose(rollout.model_error[0], square.sqrt().mean(0), rtol=1e-5)
    assert rollout.frames["truth"].shape[0] == 3
    assert rollout.spectra["model"].shape == rollout.spectra["truth"].shape


def test_fits_see_samples_that_lie_apart() -> None:
    def few(samples: int, count: int, endless: bool = False) -> int:
        return FieldTask.fitting_stride(SimpleNamespace(samples=samples, endless=endless), count)

    def old(windows: int, count: int) -> int:
        return ShallowWaterTask.fitting_stride(SimpleNamespace(_windows=windows), count)

    assert (few(100, 8), few(5, 8), few(100, 8, endless=True)) == (12, 1, 1)
    assert (old(5, 8), old(6, 9), old(3, 64), old(1, 2)) == (5, 5, 1, 1)
    assert isinstance(old(6, 9), int)


def test_variables_of_other_dimensions_are_refused(forecast, tmp_path: Path) -> None:
    data = open_fields(forecast[0]).load()
    data["t"] = data["t"].isel(time=0, drop=True)
    data.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"different dimensions: z \(.*, t \("):
        predict(Run.open(forecast[1]), tmp_path / "other.nc", tmp_path / "out.nc")


def test_a_run_is_told_where_its_data_have_moved(forecast, tmp_path: Path) -> None:
    path, directory = forecast
    here, there = tmp_path / "run", tmp_path / path.name
    shutil.copytree(directory, here)
    config = Run.open(here).config
    gone = replace(config, task=replace(config.task, data=tmp_path / "gone.nc"))
    gone.save(here / "config.json")
    with pytest.raises(
        FileNotFoundError, match=r"gone.nc does not exist; .*--resume.*--data WHERE"
    ):
        Run.open(here).task()
    shutil.copy(path, there)
    train(replace(config, task=replace(config.task, data=there)), here, resume=True, log=silent)
    assert Run.open(here).task(silent).test_samples == Run.open(directory).task(silent).test_samples
