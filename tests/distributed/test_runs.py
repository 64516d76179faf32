"""Runs over ranks: training with every option, and what commands do with a trained run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spherule.models import SegformerConfig, TransformerConfig
from spherule.runs import train
from spherule.tasks import DepthConfig, ForecastConfig, SegmentationConfig
from spherule.train import RunConfig, TrainingConfig
from tests.distributed import runs
from tests.distributed.pool import Failed, Pool
from tests.fields import era5_like
from tests.tiny import TINY, losses, silent, validations

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
pytestmark = pytest.mark.xdist_group("ranks")

PLAIN = replace(
    TINY,
    task=replace(TINY.task, samples=12),
    model=replace(TINY.model, drop_path=0.0, dropout=0.0, local=True),
    training=replace(TINY.training, epochs=2, learning_rate=3e-4, save_every=0),
)
SPECTRAL = replace(PLAIN, model=replace(PLAIN.model, skip="spectral", keep_mean=True))


def with_training(config: RunConfig, **training: object) -> RunConfig:
    return replace(config, training=replace(config.training, **training))


def assert_same_curves(a: Path, b: Path, tolerance: float) -> None:
    assert [step for step, _ in losses(a)] == [step for step, _ in losses(b)]
    assert [loss for _, loss in losses(a)] == pytest.approx(
        [loss for _, loss in losses(b)], rel=tolerance
    )
    assert validations(a) == pytest.approx(validations(b), rel=tolerance)


@pytest.mark.parametrize(
    ("config", "tolerance"),
    [
        (with_training(PLAIN, domain=4, batch=1), 1e-6),
        (with_training(PLAIN, domain=2, batch=6, accumulate=3, clip=0.5), 1e-6),
        (with_training(SPECTRAL, domain=4, batch=3, ema=0.9, accumulate=3), 1e-6),
        (replace(PLAIN, task=replace(PLAIN.task, leads=3),
                 training=replace(PLAIN.training, domain=4)), 1e-6),
        (replace(PLAIN, task=replace(PLAIN.task, ages=0.5, unroll=(1.0, 1.0)),
                 training=replace(PLAIN.training, domain=4)), 1e-6),
        (with_training(PLAIN, domain=4, precision="bfloat16"), 2e-2),
    ],
    ids=["batch 1", "accumulate", "ema", "leads", "ages", "bfloat16"],
)  # fmt: skip
def test_every_option_trains_as_in_one_process(
    pool: Pool, tmp_path: Path, config: RunConfig, tolerance: float
) -> None:
    pool.run(4, runs.trained, config, tmp_path / "ranks")
    train(with_training(config, domain=1), tmp_path / "one", log=silent)
    assert_same_curves(tmp_path / "ranks", tmp_path / "one", tolerance)


def test_the_same_ranks_train_to_the_same_bits(pool: Pool, tmp_path: Path) -> None:
    config = with_training(SPECTRAL, domain=2, batch=4)
    for name in ("a", "b"):
        pool.run(4, runs.trained, config, tmp_path / name)
    assert losses(tmp_path / "a") == losses(tmp_path / "b")


def test_samples_are_made_on_a_ranks_own_rings(pool: Pool) -> None:
    # A float32 near 1e5, as geopotential is with its mean, is rounded to 1.9e-5 of its deviation.
    assert max(pool.run(4, runs.made, PLAIN.task.data)) < 4e-5


@pytest.fixture(scope="module", params=["era5", "cells"])
def forecast(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunConfig:
    """Of a file with missing values and static fields."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("forecast") / "mine.nc"
    data = era5_like(request.param, times=40)
    data["z"] = data.z.where(data.place < 2.5)
    # Something in all degrees: of nothing but rounding there is no share.
    rough = np.random.default_rng(0).standard_normal(data.t.shape)
    data["t"] = data.t + 0.1 * float(data.t.std()) * rough
    for name, times in (("z", [5, 10, 37]), ("t", [5, 38])):
        data[name][times] = np.nan
    data.to_netcdf(path, engine="h5netcdf")
    return RunConfig(
        ForecastConfig(
            data=path, variables=("z", "t"), static=("orography",), lead="1h", missing="mask"
        ),
        TransformerConfig(width=8, depth=1, skip="identity"),
        TrainingConfig(epochs=1, batch=4, domain=2),
        recipe="forecast/test",
    )


def test_a_users_file_is_learned_predicted_and_scored_by_rings(
    pool: Pool, tmp_path: Path, forecast: RunConfig
) -> None:
    alone, ranks = tmp_path / "one", tmp_path / "ranks"
    pool.run(4, runs.trained, forecast, ranks)
    train(with_training(forecast, domain=1), alone, log=silent)
    assert_same_curves(ranks, alone, 1e-5)
    _assert_same_numbers(pool, alone)
    for steps in (1, 2):
        files = [tmp_path / f"{who}{steps}.nc" for who in ("one", "ranks")]
        runs.predicted(None, alone, forecast.task.data, files[0], steps)
        pool.run(4, runs.predicted, alone, forecast.task.data, files[1], steps)
        with xr.open_dataset(files[0]) as one, xr.open_dataset(files[1]) as other:
            for name in ("z", "t"):
                spread = float(one[name].std())
                assert other[name].dims == one[name].dims
                assert bool((one[name].isnull() == other[name].isnull()).all())
                assert float(abs(one[name] - other[name]).max()) < 1e-4 * spread


def test_shallow_water_is_scored_by_rings(pool: Pool, tmp_path: Path) -> None:
    run = train(with_training(SPECTRAL, epochs=1, batch=4), tmp_path / "one", log=silent)
    _assert_same_numbers(pool, run)


def _assert_same_numbers(pool: Pool, run: Path) -> None:
    expected = runs.measured(None, run)
    for found in pool.run(4, runs.measured, run):
        assert found.keys() == expected.keys()
        assert found["count"] == expected["count"]
        for name, values in expected.items():
            close = np.allclose(found[name], values, rtol=1e-3, atol=1e-4, equal_nan=True)
            assert close, (name, found[name], values)


@pytest.mark.parametrize("task", [SegmentationConfig, DepthConfig])
def test_panoramas_are_shared_too(pool: Pool, tmp_path: Path, task: type) -> None:
    rooms = task(rooms=24, size="16x32", fold="1")
    model = SegformerConfig(widths=(8, 16), depths=(1, 1), heads=(1, 2), drop_path=0.0)
    config = RunConfig(rooms, model, TrainingConfig(epochs=1, batch=4, learning_rate=3e-4))
    train(config, tmp_path / "one", log=silent)
    shared = replace(rooms, data=tmp_path / "one" / "rooms-24-16x32.zarr")
    config = with_training(replace(config, task=shared), domain=2)
    pool.run(4, runs.trained, config, tmp_path / "ranks")
    assert_same_curves(tmp_path / "ranks", tmp_path / "one", 1e-5)
    expected = runs.judged(None, tmp_path / "one")
    for found in pool.run(4, runs.judged, tmp_path / "one"):
        for name, (mean, count) in expected.items():
            assert found[name][0] == pytest.approx(mean, rel=1e-4)
            assert found[name][1] == count


def test_a_planar_model_is_refused_by_name_on_all_ranks(pool: Pool, tmp_path: Path) -> None:
    config = replace(PLAIN, model=replace(PLAIN.model, convolution="planar"))
    with pytest.raises(Failed, match="PlanarConv") as failed:
        pool.run(4, runs.trained, with_training(config, domain=2), tmp_path / "run")
    assert failed.value.errors.keys() == {0, 1, 2, 3}
