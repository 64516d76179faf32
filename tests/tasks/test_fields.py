"""Trained models on new data: coordinates, order and units come back as they were."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spherule.data.forecast import Layout, open_fields
from spherule.models import TransformerConfig
from spherule.runs import Run, evaluate, evaluated, predict, roll_out, train
from spherule.tasks import ForecastConfig
from spherule.train import RunConfig, TrainingConfig
from tests.fields import era5_like
from tests.tiny import losses, silent

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
        ForecastConfig(path, ("z", "t"), static=("orography",), lead="1h"),
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
    physical = task.statistics.denormalise(there, other).numpy()
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
    with pytest.raises(ValueError, match="lacks geopotential, vorticity, divergence; it has z"):
        predict(Run.open(finished), path, tmp_path / "out.nc")
    data = open_fields(path).load()
    data["z"][3] = np.nan
    data.to_netcdf(tmp_path / "nan.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"missing values: \{'z': \d+, 't': 0\}"):
        predict(run, tmp_path / "nan.nc", tmp_path / "out.nc")
    with pytest.raises(ValueError, match=r"--data my\.zarr --variables"):
        ForecastConfig().open(0)


def test_missing_values_can_be_left_out_of_the_loss(tmp_path: Path) -> None:
    data = era5_like("era5", times=30)
    data["t"][:, 2:4, 5:9] = np.nan  # land
    data.to_netcdf(tmp_path / "sea.nc", engine="h5netcdf")
    task = ForecastConfig(tmp_path / "sea.nc", ("z", "t"), lead="1h", missing="mask")
    config = RunConfig(
        task, TransformerConfig(width=8, depth=1, skip="identity"), TrainingConfig(epochs=1)
    )
    directory = train(config, tmp_path / "run", log=silent)
    assert all(np.isfinite(loss) for _, loss in losses(directory))
    predict(Run.open(directory), tmp_path / "sea.nc", tmp_path / "out.nc")
    missing = open_fields(tmp_path / "out.nc")["t"].isnull()
    assert bool((missing == data["t"].isnull().values).all())


def test_evaluation_is_kept_until_the_model_is_another(finished: Path) -> None:
    run = Run.open(finished)
    result = evaluate(run)
    assert result["test"]["loss"]["count"] == 4
    assert result["parameters"] == sum(p.numel() for p in run.model.parameters())
    assert evaluated([finished]) == [result]
    short = evaluate(run, samples=2)
    assert short["test"]["loss"]["count"] == 2
    (finished / "evaluation.json").unlink()


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
