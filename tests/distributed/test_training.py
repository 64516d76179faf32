"""Training with samples shared among processes is training."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from spherule.runs import train
from spherule.train import RunConfig
from tests.tiny import TINY, losses, silent, validations

pytestmark = pytest.mark.xdist_group("ranks")

PLAIN = replace(
    TINY,
    task=replace(TINY.task, leads=2, samples=40, noise=0.1),
    model=replace(TINY.model, drop_path=0.2, dropout=0.0, skip="spectral", local=True),
    training=replace(TINY.training, epochs=2, learning_rate=3e-4, ema=0.9, save_every=0),
)


def torchrun(
    processes: int, config: RunConfig, out: Path, *flags: str
) -> subprocess.CompletedProcess:
    config.save(out.with_suffix(".json"))
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
    command += ["--master_port=0", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    command += ["-m", "spherule", "train", "--config", str(out.with_suffix(".json"))]
    return subprocess.run(
        [*command, "--out", str(out), *flags],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(PLAIN, tmp_path_factory.mktemp("serial") / "run", log=silent)


def assert_same_curves(run: Path, serial: Path) -> None:
    assert len(losses(run)) == 20
    for (step, loss), (_, expected) in zip(losses(run), losses(serial), strict=True):
        assert loss == pytest.approx(expected, rel=1e-6), f"step {step}"
    assert validations(run) == pytest.approx(validations(serial), rel=1e-6)


def test_four_processes_that_share_samples_have_the_losses_of_one(
    tmp_path: Path, serial: Path
) -> None:
    # What is drawn in a step, as noise is, has a stream of its own for each part of the batch.
    plain = replace(PLAIN, task=replace(PLAIN.task, noise=0.0))
    plain = replace(plain, model=replace(plain.model, drop_path=0.0))
    alone = train(plain, tmp_path / "alone", log=silent)
    done = torchrun(4, plain, tmp_path / "run", "--domain", "2")
    assert done.returncode == 0, done.stderr[-3000:]
    assert_same_curves(tmp_path / "run", alone)


def test_two_processes_begin_and_one_goes_on(tmp_path: Path, serial: Path) -> None:
    half = replace(PLAIN, training=replace(PLAIN.training, epochs=1))
    done = torchrun(2, half, tmp_path / "run", "--domain", "2")
    assert done.returncode == 0, done.stderr[-3000:]
    train(PLAIN, tmp_path / "run", resume=True, log=silent)
    assert_same_curves(tmp_path / "run", serial)


def test_a_domain_that_processes_do_not_divide_into_is_refused(tmp_path: Path) -> None:
    config = replace(PLAIN, training=replace(PLAIN.training, domain=2))
    with pytest.raises(ValueError, match=r"domain=2 must divide .* 1: start them with torchrun"):
        train(config, tmp_path / "run", log=silent)
