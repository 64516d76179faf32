"""What training computes: schedules, averages, accumulation, precision, several leads, ranks."""

import itertools
import math
import os
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spherule.runs import Run, RunDirectory, train
from spherule.train import StepEvent, TrainingConfig, loop
from spherule.train.batches import Batches
from spherule.train.optim import MovingAverage, Schedule
from tests.tiny import TINY, losses, silent, tiny, validations


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    config = replace(TINY, model=replace(TINY.model, drop_path=0.0, dropout=0.0))
    config = replace(config, training=replace(TINY.training, epochs=8, learning_rate=1e-2))
    directory = train(config, tmp_path / "run", log=silent)
    assert validations(directory)[-1] < 0.5 * validations(directory)[0]


def test_an_accumulated_batch_is_the_whole_batch(tmp_path: Path) -> None:
    plain = replace(TINY, model=replace(TINY.model, drop_path=0.0, dropout=0.0))
    whole = train(plain, tmp_path / "whole", log=silent)
    parts = replace(plain, training=replace(plain.training, accumulate=2))
    split = train(parts, tmp_path / "parts", log=silent)
    for (step, a), (other, b) in zip(losses(whole), losses(split), strict=True):
        assert step == other
        assert a == pytest.approx(b, rel=1e-4)


def test_cosine_ends_at_zero_and_warmup_begins_there() -> None:
    schedule = Schedule(TrainingConfig(schedule="cosine", warmup=10, learning_rate=2.0), 100)
    rates = [schedule.rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.2, rel=1e-2)
    assert max(rates) == pytest.approx(2.0, rel=0.05)
    assert rates[50] == pytest.approx(1.0)
    assert rates[100] == pytest.approx(0.0, abs=1e-12)


def test_a_plateau_lowers_the_rate_after_its_patience() -> None:
    schedule = Schedule(TrainingConfig(schedule="plateau", patience=2, learning_rate=1.0), 100)
    for value in (3.0, 2.0, 2.0, 2.5):
        schedule.observe(value)
    assert schedule.rate(0) == 1.0
    schedule.observe(2.1)
    assert schedule.rate(0) == pytest.approx(0.1)
    again = Schedule(schedule.settings, 100)
    again.restore(schedule.state())
    assert again.rate(0) == schedule.rate(0)


def test_the_moving_average_lags_and_is_what_is_kept(tmp_path: Path) -> None:
    model = torch.nn.Linear(1, 1, bias=False)
    average = MovingAverage(model, 0.9)
    start = model.weight.item()
    with torch.no_grad():
        model.weight.fill_(start + 1.0)
    average.update(0)
    with average.applied():  # a tenth of the start is left after the first step
        assert model.weight.item() == pytest.approx(start + 0.9, abs=1e-6)
    for step in range(1, 200):
        with torch.no_grad():
            model.weight.fill_(start + 1.0)
        average.update(step)
    with average.applied():
        assert model.weight.item() == pytest.approx(start + 1.0, rel=1e-3)
    with torch.no_grad():
        model.weight.fill_(start + 2.0)
    average.update(200)
    with average.applied():
        assert start + 1.0 < model.weight.item() < start + 1.2
    assert model.weight.item() == pytest.approx(start + 2.0)
    directory = train(tiny(ema=0.9), tmp_path / "run", log=silent)
    run = Run.open(directory, which="last")
    own = run.checkpoint.tensors()["weights.encoder.weight"]
    assert not torch.equal(run.model.state_dict()["encoder.weight"], own)


def test_long_gradients_are_clipped(tmp_path: Path) -> None:
    free = train(tiny(epochs=1), tmp_path / "free", log=silent)
    clipped = train(tiny(epochs=1, clip=1e-3, optimizer="adamw"), tmp_path / "clip", log=silent)
    norms = [r["gradient_norm"] for r in RunDirectory(clipped).records() if "gradient_norm" in r]
    assert min(norms) > 1e-3  # what is written is the norm before
    assert losses(free)[0] == losses(clipped)[0]
    assert losses(free)[-1] != losses(clipped)[-1]


def test_bfloat16_trains(tmp_path: Path) -> None:
    directory = train(tiny(precision="bfloat16", epochs=2), tmp_path / "run", log=silent)
    assert all(math.isfinite(loss) for _, loss in losses(directory))
    assert all(t.dtype == torch.float32 for t in Run.open(directory).model.state_dict().values())


def test_several_leads_are_followed_and_a_run_can_be_fine_tuned(
    tmp_path: Path, finished: Path
) -> None:
    longer = replace(TINY, task=replace(TINY.task, leads=3))
    longer = replace(longer, training=replace(longer.training, epochs=1))
    tuned = train(longer, tmp_path / "tuned", init=finished, log=silent)
    fresh = train(longer, tmp_path / "fresh", log=silent)
    assert losses(tuned)[0][1] < losses(fresh)[0][1]
    one = replace(longer, task=replace(longer.task, leads=1))
    single = train(one, tmp_path / "single", init=finished, log=silent)
    assert losses(single)[0][1] < losses(tuned)[0][1]  # errors grow on the way
    wide = replace(TINY, model=replace(TINY.model, width=16))
    with pytest.raises(ValueError, match=r"don't fit this model: blocks"):
        train(wide, tmp_path / "wide", init=finished, log=silent)


def test_ranks_share_each_batch_and_every_epoch_has_each_sample_once() -> None:
    def numbers(samples=10, **of):
        return list(Batches(samples, 4, 0, **of))

    whole = numbers(start=0, stop=4)
    parts = [numbers(start=0, stop=4, rank=r, ranks=2) for r in (0, 1)]
    assert [a + b for a, b in zip(*parts, strict=True)] == whole
    assert len({n for batch in whole[:2] for n in batch}) == 8
    assert all(n // 10 == 0 for batch in whole[:2] for n in batch)
    assert all(n // 10 == 1 for batch in whole[2:] for n in batch)
    assert numbers(start=3, stop=4) == whole[3:]
    assert numbers(samples=None, start=2, stop=3) == [[8, 9, 10, 11]]


def test_two_processes_have_the_losses_of_one(tmp_path: Path) -> None:
    plain = replace(
        TINY,
        task=replace(TINY.task, leads=2),
        model=replace(TINY.model, drop_path=0.0, dropout=0.0),
        training=replace(TINY.training, epochs=2, accumulate=2),
    )
    one = train(plain, tmp_path / "one", log=silent)
    plain.save(tmp_path / "config.json")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2"]
    command += ["--master_port=0", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    command += ["-m", "spherule", "train", "--config", str(tmp_path / "config.json")]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "two")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    two = tmp_path / "two"
    assert [s for s, _ in losses(one)] == [s for s, _ in losses(two)]
    for (_, a), (_, b) in zip(losses(one), losses(two), strict=True):
        assert a == pytest.approx(b, rel=2e-5)
    assert validations(one) == pytest.approx(validations(two), rel=2e-5)


def test_a_batch_that_ranks_and_parts_do_not_divide_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"batch=4 .* accumulate=3"):
        tiny(accumulate=3)
    with pytest.raises(ValueError, match="no CUDA device"):
        train(tiny(device="cuda"), tmp_path / "run")


def test_tensorboard_is_told_where_it_is_installed(tmp_path: Path, monkeypatch) -> None:
    import types

    told = []

    class SummaryWriter:
        def __init__(self, directory: Path, purge_step: int) -> None:
            told.append((directory.name, purge_step))

        def add_scalar(self, name: str, value: float, step: int) -> None:
            told.append((name, step))

        def close(self) -> None:
            told.append("closed")

    module = types.ModuleType("torch.utils.tensorboard")
    module.SummaryWriter = SummaryWriter
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    train(tiny(epochs=1), tmp_path / "run", log=silent)
    assert told[0] == ("tensorboard", 1)
    assert ("training/loss", 3) in told
    assert ("validation/l2", 3) in told
    assert told[-1] == "closed"


def test_speed_is_samples_a_second_without_validation(tmp_path: Path, monkeypatch) -> None:
    # A clock that goes on by a second whenever it is read: once a step, and before and after
    # validation.
    clock = itertools.count()
    now = types.SimpleNamespace(perf_counter=lambda: float(next(clock)))
    monkeypatch.setattr(loop, "time", now)
    speeds: list[float] = []

    def on_step(event: StepEvent) -> None:
        if event.validation is None:
            speeds.append(event.samples_per_second)

    train(tiny(epochs=2), tmp_path / "run", on_step=on_step, log=silent)
    assert speeds == pytest.approx([4.0, 4.0, 4.0, 4 * 4 / 5, 5 * 4 / 6, 6 * 4 / 7])
