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


def torchrun(processes: int, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
    command += ["--master_port=0", "--rdzv_backend=c10d", "--rdzv_endpoint=localhost:0"]
    return subprocess.run(
        [*command, "-m", "spherule", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def train_in(processes: int, config: RunConfig, out: Path) -> None:
    """Pairs of processes share each sample."""
    config.save(out.with_suffix(".json"))
    flags = ["--config", str(out.with_suffix(".json")), "--out", str(out), "--domain", "2"]
    done = torchrun(processes, "train", *flags)
    assert done.returncode == 0, done.stderr[-3000:]


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
    train_in(4, plain, tmp_path / "run")
    assert_same_curves(tmp_path / "run", alone)


def test_two_processes_begin_and_one_goes_on(tmp_path: Path, serial: Path) -> None:
    half = replace(PLAIN, training=replace(PLAIN.training, epochs=1))
    train_in(2, half, tmp_path / "run")
    train(PLAIN, tmp_path / "run", resume=True, log=silent)
    assert_same_curves(tmp_path / "run", serial)


def test_commands_speak_with_one_voice_and_name_the_rank_that_cannot_go_on(
    tmp_path: Path, serial: Path
) -> None:
    done = torchrun(2, "evaluate", str(serial), "--samples", "2")
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("over 2 samples; wrote") == 2
    (tmp_path / "there.nc").touch()
    files = ["--input", str(tmp_path / "there.nc"), "--output", str(tmp_path / "out.txt")]
    done = torchrun(2, "predict", str(serial), *files)
    assert done.returncode == 1
    assert "spherule: rank 0: " in done.stderr or "spherule: rank 1: " in done.stderr


def test_a_domain_that_processes_do_not_divide_into_is_refused(tmp_path: Path) -> None:
    config = replace(PLAIN, training=replace(PLAIN.training, domain=2))
    with pytest.raises(ValueError, match=r"domain=2 must divide .* 1: start them with torchrun"):
        train(config, tmp_path / "run", log=silent)
