"""Scores by hand: what a forecast is worth in its variables' own units."""

import dataclasses
import json
import math
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from spherule import ops
from spherule.data.field_files import open_fields
from spherule.models import Linear, LinearConfig, TransformerConfig
from spherule.report.score_table import score_table
from spherule.runs import Run, roll_out, score, train
from spherule.runs.linear import best_linear
from spherule.runs.scores import BINS, FORECASTS, Scores, _Climatology, _Sums, scored
from spherule.tasks import ForecastConfig
from spherule.tasks.field_sections import field_sections
from spherule.tasks.fields import FieldTask
from spherule.train import RunConfig, TrainingConfig
from spherule.train.figures import ByLatitude, Spectra
from spherule.train.task import Trained
from tests.fields import era5_like
from tests.tiny import TINY, silent

xr = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    directory = tmp_path_factory.mktemp("scores")
    era5_like("era5", times=30).to_netcdf(directory / "mine.nc", engine="h5netcdf")
    config = RunConfig(
        ForecastConfig(data=directory / "mine.nc", variables=("z", "t"), lead="1h"),
        TransformerConfig(width=8, depth=1),  # without a skip: an hour of training is not enough
        TrainingConfig(epochs=1, batch=4),
    )
    return Run.open(train(config, directory / "run", log=silent))


def test_scores_are_those_of_their_definitions(run: Run) -> None:
    found = score(run)
    task = run.task()
    data, grid = open_fields(task.config.data), task.grid
    z = task.layout.read(data["z"]).astype(np.float64)
    weights = grid.weights / grid.weights.sum()
    climate = z[1:24].mean(0)  # targets of the first 24 times
    first = 27  # the last tenth
    truth, still = z[first:], z[first - 1 : -1]
    assert found.samples == len(truth) == 3
    wanted = {"persistence": still, "climatology": np.broadcast_to(climate, truth.shape)}
    for name, forecast in wanted.items():
        f, error = FORECASTS.index(name), forecast - truth
        assert found.rmse[f, 0] == pytest.approx(
            np.sqrt((weights * error**2).sum((1, 2)).mean()), rel=1e-4
        )
        assert found.bias[f, 0] == pytest.approx((weights * error).sum((1, 2)).mean(), rel=1e-2)
    a, b = still - climate, truth - climate
    acc = (weights * a * b).sum((1, 2)) / np.sqrt(
        (weights * a**2).sum((1, 2)) * (weights * b**2).sum((1, 2))
    )
    assert found.acc[FORECASTS.index("persistence"), 0] == pytest.approx(acc.mean(), rel=1e-3)
    assert np.isnan(found.acc[FORECASTS.index("climatology")]).all()
    assert found.rmse[FORECASTS.index("linear"), 0] < found.rmse[FORECASTS.index("persistence"), 0]


def test_samples_that_lack_a_variable_do_not_count_for_it(run: Run) -> None:
    task = run.task()
    field = torch.randn(3, task.out_channels, *task.grid.shape, dtype=torch.float64)
    usual, target = torch.zeros_like(field), field + 1
    target[1, 0] = math.nan
    some, whole = _Sums(task, torch.device("cpu")), _Sums(task, torch.device("cpu"))
    some.add(field, target, usual)
    whole.add(field[[0, 2]], target[[0, 2]], usual[[0, 2]])
    for found, wanted in zip(some.compute(), whole.compute(), strict=True):
        assert found[0] == pytest.approx(wanted[0])
    rmse, bias = some.compute()[:2]
    assert rmse == pytest.approx(1)
    assert bias == pytest.approx(-1)


@torch.no_grad()
def test_the_linear_map_is_the_better_that_the_samples_allow(run: Run) -> None:
    assert score(run, samples=1).forecasts[-1] == "linear (per degree)", "23 samples are too few"
    task = TINY.task.open(seed=0, log=silent)
    linear, kind = best_linear(task)
    assert (kind, linear.config.reach) == ("per degree and order", 3)
    by_degree = Linear(LinearConfig(), task.grid, task.in_channels, task.out_channels)
    by_degree.fit(task.fitting_batches(by_degree.fitting_samples))
    errors = [
        sum(
            (model(x[None]) - y).square().mean().item()
            for x, y in map(task.test.__getitem__, (0, 1))
        )
        for model in (linear, by_degree)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_a_model_that_loses_to_persistence_says_so(run: Run) -> None:
    found = score(run)
    worse = found.rmse[0] > found.rmse[FORECASTS.index("persistence")]
    assert worse.any()
    said = [s for s in found.losses() if "loses to persistence" in s]
    assert len(said) == worse.sum()


def test_figures_are_in_own_units(run: Run) -> None:
    found, task = score(run), run.task()
    model = Trained("model", run.model, task, torch.device("cpu"))
    figures = [figure for section in field_sections([model]) for figure in section.figures]
    (errors,) = (figure for figure in figures if isinstance(figure, ByLatitude))
    assert errors.panels == ["z (m2 s-2)", "t (K)"]
    share = np.add.reduceat(task.grid.weights.ravel(), task.grid.ringstart) / (4 * np.pi)
    rmse = np.sqrt((errors.curves[0].values ** 2 * share).sum(1))
    assert rmse == pytest.approx(found.rmse[0], rel=1e-4)
    (spectra,) = (figure for figure in figures if isinstance(figure, Spectra))
    assert spectra.panels == ["z (squares of m2 s-2)", "t (squares of K)"]
    z = torch.tensor(task.layout.read(open_fields(task.config.data)["z"])[27:]).double()
    power = ops.power_spectrum(ops.sht(z, task.grid, task.grid.lmax)).mean(0).numpy()
    # Degrees that the field does not have hold the rounding of float32.
    rounding = 1e-12 * power[1:].max()
    assert spectra.curves[0].truth[0, 1:] == pytest.approx(power[1:], rel=1e-3, abs=rounding)


def test_a_tie_is_no_loss() -> None:
    rmse = np.array([[2.0], [2.0 - 1e-6], [1.9], [3.0]])
    found = Scores("model", "1h", 1, 1, ("z",), ("m",), rmse, rmse, rmse, rmse)
    assert [s.split(",")[0] for s in found.losses()] == ["z: the model loses to climatology"]


def test_scores_are_files_that_others_read(run: Run, tmp_path: Path) -> None:
    found = score(run, samples=1)
    found.save(tmp_path / "scores.json")
    found.save(tmp_path / "scores.nc")
    found.save(tmp_path / "not" / "yet" / "there.json")
    values = json.loads((tmp_path / "scores.json").read_text())
    assert values["variables"]["z"]["persistence"]["rmse"] == found.rmse[1, 0]
    assert values["variables"]["z"]["climatology"]["acc"] is None
    again = Scores.load(tmp_path / "scores.json")
    assert np.array_equal(again.acc, found.acc, equal_nan=True)
    assert (again.step, again.units, again.rmse[0, 0]) == (
        found.step,
        found.units,
        found.rmse[0, 0],
    )
    data = xr.open_dataset(tmp_path / "scores.nc", engine="h5netcdf")
    assert float(data.rmse.sel(forecast="persistence", variable="z")) == found.rmse[1, 0]
    assert data.units.values.tolist() == ["m2 s-2", "K"]
    with pytest.raises(ValueError, match=r"ends in \.json or \.nc"):
        found.save(tmp_path / "scores.txt")


def test_scores_are_kept_until_the_model_or_the_samples_are_others(run: Run) -> None:
    first = scored([run])[0]
    marked = dataclasses.replace(first, title="kept")
    marked.save(run.directory.scores)
    assert scored([run])[0].title == "kept"
    for other in ({"step": first.step + 1}, {"samples": first.samples + 1}):
        dataclasses.replace(marked, **other).save(run.directory.scores)
        assert scored([run])[0].title == first.title
    run.directory.scores.write_text("{")
    assert scored([run])[0].title == first.title


def test_runs_of_the_same_data_share_a_linear_map(run: Run, monkeypatch) -> None:
    alone, fitted = score(run), []
    monkeypatch.setattr("spherule.runs.scores._kept", lambda *_: None)
    monkeypatch.setattr(
        "spherule.runs.scores.best_linear", lambda task: fitted.append(task) or best_linear(task)
    )
    later = dataclasses.replace(run.config.task, lead="2h")
    other = dataclasses.replace(run, config=dataclasses.replace(run.config, task=later))
    first, between, last = scored([run, other, run])
    assert len(fitted) == 2
    np.testing.assert_array_equal(first.rmse, alone.rmse)
    np.testing.assert_array_equal(last.rmse, alone.rmse)
    assert not np.array_equal(between.rmse, alone.rmse)


def test_a_rollout_ends_where_the_data_do_and_says_how_far(run: Run) -> None:
    said: list[str] = []
    rollout = roll_out(run, 100, samples=1, log=said.append)
    assert rollout.leads == 3
    assert said == [
        "note: the test data can be followed for 3 h, not for 4.167 d; the rollout ends there"
    ]


def test_years_of_training_data_give_each_season_its_own_climatology(tmp_path: Path) -> None:
    days = np.arange("2000-01-01", "2004-01-01", 5, dtype="datetime64[D]").astype("datetime64[ns]")
    data = era5_like("era5", times=2)
    season = np.cos(2 * np.pi * np.arange(days.size) * 5 / 365.25)
    field = data.z.isel(time=0).values
    z = 1e3 * season[:, None, None] + 1e-2 * (field - field.mean())
    seasonal = xr.Dataset(
        {"z": (("time", *data.z.dims[1:]), z)},
        coords={name: data[name] for name in data.z.dims[1:]} | {"time": days},
    )
    seasonal.to_netcdf(tmp_path / "seasons.nc", engine="h5netcdf")
    task = ForecastConfig(data=tmp_path / "seasons.nc", variables=("z",), lead="1step")
    config = RunConfig(
        task, TransformerConfig(width=8, depth=1), TrainingConfig(epochs=1, batch=64)
    )
    found = score(Run.open(train(config, tmp_path / "run", log=silent)), samples=12)
    # A mean over all seasons is off by the size of the cycle, of 700 in the root mean square.
    assert found.rmse[FORECASTS.index("climatology"), 0] < 150


def test_a_season_reaches_two_parts_of_the_year_to_both_sides() -> None:
    targets = [(None, torch.tensor([float(part)])) for part in range(BINS)]
    task = Mock(
        spec=FieldTask,
        samples=BINS,
        endless=False,
        training=targets,
        season=lambda _, sample: (sample + 0.5) / BINS,
    )
    found = _Climatology(task, torch.device("cpu")).at([0, 1, 10, BINS - 1])
    parts = [[22, 23, 0, 1, 2], [23, 0, 1, 2, 3], [8, 9, 10, 11, 12], [21, 22, 23, 0, 1]]
    assert found.flatten().tolist() == pytest.approx([sum(p) / 5 for p in parts])


def test_runs_of_other_variables_stand_under_their_own() -> None:
    def scores(title: str, variables: tuple[str, ...], rmse: list[list[float]]) -> Scores:
        table = np.array(rmse, dtype=np.float64)
        units = tuple({"z": "m", "t": "K"}[name] for name in variables)
        return Scores(title, "6h", 1, 1, variables, units, table, table, table, table)

    both = scores("a", ("z", "t"), [[1, 2], [5, 6], [7, 8], [9, 10]])
    one = scores("b", ("t",), [[3], [6], [8], [10]])
    cells = [[cell.text for cell in row[:3]] for row in score_table(["a", "b"], [both, one]).rows]
    assert cells == [
        ["z (m)", "a", "1"],
        ["", "persistence", "5"],
        ["", "climatology", "7"],
        ["", "linear (per degree)", "9"],
        ["t (K)", "a", "2"],
        ["", "b", "3"],
        ["", "persistence", "6"],
        ["", "climatology", "8"],
        ["", "linear (per degree)", "10"],
    ]
