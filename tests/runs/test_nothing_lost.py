"""Kills, damage, full disks, bad losses: what a run does when things go wrong."""

import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from spherule.runs import Run, RunDirectory, train
from spherule.train import Interrupted
from spherule.train.checkpoint import Checkpoint, checkpoints, damage, newest_whole
from tests.tiny import losses, silent, tiny, validations

SETTINGS = {"epochs": 6, "ema": 0.9, "clip": 1.0}


def train_silently(directory: Path, resume: bool) -> None:
    torch.set_num_threads(1)
    train(tiny(**SETTINGS), directory, resume=resume, log=silent)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    directory = tmp_path_factory.mktemp("undisturbed") / "run"
    began = time.perf_counter()
    train_silently(directory, False)
    return directory, time.perf_counter() - began


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_ends_like_one_that_was_not(
    tmp_path: Path, undisturbed, kills: int
) -> None:
    whole, seconds = undisturbed
    directory = tmp_path / "run"
    draw = random.Random(kills)
    context = multiprocessing.get_context("fork")
    done = 0
    while done < kills:
        resume = (directory / "config.json").exists()
        process = context.Process(target=train_silently, args=(directory, resume))
        process.start()
        process.join(draw.uniform(0.02, 0.35) * seconds)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            done += 1
        process.join()
        if process.exitcode == 0:  # it was faster than the kill: begin anew
            assert losses(directory) == losses(whole)
            shutil.rmtree(directory)
    if not (directory / "config.json").exists():
        train_silently(directory, False)
    else:
        train_silently(directory, True)
    assert losses(directory) == losses(whole)
    assert validations(directory) == validations(whole)
    for name, tensor in Run.open(directory, which="last").model.state_dict().items():
        assert torch.equal(tensor, Run.open(whole, which="last").model.state_dict()[name]), name


def test_the_last_two_and_the_best_are_kept(finished: Path) -> None:
    found = checkpoints(finished / "checkpoints")
    best = found[-1].state()["best"]
    assert {c.step for c in found} == {found[-1].step, found[-2].step, best}
    assert all(damage(c) is None for c in found)
    assert Run.open(finished).checkpoint.step == best


def test_the_best_is_opened_or_the_last(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = checkpoints(finished / "checkpoints")
    state, best = Checkpoint.state, {"best": found[-2].step}
    monkeypatch.setattr(Checkpoint, "state", lambda self: state(self) | best)
    assert Run.open(finished).checkpoint.step == found[-2].step
    assert Run.open(finished, which="last").checkpoint.step == found[-1].step


@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.safetensors", "state.json", "config.json", "SHA256SUMS"]
)
def test_a_flipped_bit_is_noticed_and_the_checkpoint_before_is_used(
    tmp_path: Path, finished: Path, name: str
) -> None:
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    newest, before = reversed(checkpoints(directory / "checkpoints")[-2:])
    path = newest.path / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    found, problems = newest_whole(directory / "checkpoints")
    assert found == before
    assert newest.path.name in problems[0]
    said: list[str] = []
    train(tiny(), directory, resume=True, log=said.append)
    assert any("damaged" in text for text in said)
    assert any(before.path.name in text for text in said)
    assert losses(directory) == losses(finished)
    assert damage(checkpoints(directory / "checkpoints")[-1]) is None


@pytest.mark.parametrize("name", ["model.safetensors", "state.json", "SHA256SUMS"])
def test_a_missing_or_truncated_file_is_noticed(tmp_path: Path, finished: Path, name: str) -> None:
    shutil.copytree(finished, tmp_path / "run")
    newest = checkpoints(tmp_path / "run" / "checkpoints")[-1]
    path = newest.path / name
    path.write_bytes(path.read_bytes()[:-3])
    assert damage(newest) is not None
    path.unlink()
    assert damage(newest) is not None


def test_a_full_disk_leaves_the_checkpoints_as_they_were(tmp_path: Path, finished: Path) -> None:
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    kept = {p.path.name for p in checkpoints(directory / "checkpoints")}
    size = (checkpoints(directory / "checkpoints")[-1].path / "training.safetensors").stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        with pytest.raises(OSError, match=r"could not be written.*--resume"):
            train(tiny(epochs=5), directory, resume=True, log=silent)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    found = checkpoints(directory / "checkpoints")
    assert {c.path.name for c in found} == kept
    assert all(damage(c) is None for c in found)
    train(tiny(epochs=5), directory, resume=True, log=silent)
    fresh = train(tiny(epochs=5), tmp_path / "fresh", log=silent)
    assert losses(directory) == losses(fresh)


def test_a_full_small_file_system_leaves_the_checkpoints_as_they_were() -> None:
    """A file system of our own with room for half a checkpoint."""
    probe = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("no rights to mount a file system here")
    code = (
        "import shutil, sys; from pathlib import Path\n"
        "from spherule.runs import train\n"
        "from spherule.train.checkpoint import checkpoints, damage\n"
        "from tests.tiny import silent, tiny\n"
        "import torch; torch.set_num_threads(1)\n"
        "run = Path(sys.argv[1]) / 'run'\n"
        "train(tiny(epochs=1), run, log=silent)\n"
        "free = shutil.disk_usage(run).free\n"
        "(run.parent / 'ballast').write_bytes(bytes(free - 16384))\n"
        "try:\n"
        "    train(tiny(epochs=9), run, resume=True, log=silent)\n"
        "except OSError as error:\n"
        "    found = checkpoints(run / 'checkpoints')\n"
        "    print('whole' if found and not any(map(damage, found)) else 'damaged', error)\n"
    )
    script = 'mount -t tmpfs -o size=2m none /mnt && exec "$0" -c "$1" /mnt'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, sys.executable, code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("whole"), done.stdout + done.stderr
    assert "No space left" in done.stdout
    assert "--resume" in done.stdout


def test_checkpoints_come_as_often_as_asked(tmp_path: Path) -> None:
    kept, speeds = {}, []

    def watch(event) -> None:
        newest = newest_whole(tmp_path / "run" / "checkpoints")[0]
        kept[event.step] = newest.step if newest else None
        speeds.append(event.samples_per_second)

    train(tiny(), tmp_path / "run", on_step=watch, log=silent)
    # Every second step, and at the end of each epoch of three.
    assert [kept[step] for step in (3, 4, 5, 7, 8, 9)] == [3, 3, 4, 6, 6, 9]
    assert min(speeds) > 0


def test_ctrl_c_saves_and_the_run_goes_on_bit_by_bit(tmp_path: Path, finished: Path) -> None:
    directory = tmp_path / "run"

    def interrupt(event) -> None:
        if event.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="step 5 of 9"):
        train(tiny(), directory, on_step=interrupt, log=silent)
    assert newest_whole(directory / "checkpoints")[0].step == 5
    train(tiny(), directory, resume=True, log=silent)
    assert losses(directory) == losses(finished)
    assert validations(directory) == validations(finished)


def test_a_bad_loss_is_not_applied_and_five_in_a_row_end_the_run(
    tmp_path: Path, monkeypatch
) -> None:
    from spherule.tasks.fields import FieldTask

    good = FieldTask.loss
    bad = {2, 4, 5, 6, 7, 8}
    calls = iter(range(100))

    def loss(self, model, batch):
        value = good(self, model, batch)
        return value * float("nan") if next(calls) in bad else value

    monkeypatch.setattr(FieldTask, "loss", loss)
    said: list[str] = []
    with pytest.raises(FloatingPointError, match=r"5 steps in a row.*learning-rate.*\[32, 33"):
        train(tiny(), tmp_path / "run", log=said.append)
    assert len(said) == 6
    assert "[8, 9, 10, 11]" in said[0]
    refused = [r for r in RunDirectory(tmp_path / "run").records() if "refused" in r]
    assert refused[0] == {"step": 3, "refused": [8, 9, 10, 11]}
    assert [r["step"] for r in refused] == [3, 5, 6, 7, 8, 9]
    weights = Run.open(tmp_path / "run", which="last").model.state_dict()
    assert all(t.isfinite().all() for t in weights.values())


def test_out_of_memory_says_how_much_is_needed(tmp_path: Path, monkeypatch) -> None:
    from spherule.tasks.fields import FieldTask

    def loss(self, model, batch):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate")

    monkeypatch.setattr(FieldTask, "loss", loss)
    with pytest.raises(MemoryError, match=r"4 samples on gauss:12x24 needs about .* GB.*--batch"):
        train(tiny(), tmp_path / "run", log=silent)


def test_the_estimate_of_memory_is_that_of_what_is_kept() -> None:
    from spherule.models import Transformer, TransformerConfig
    from spherule.train.memory import step_bytes

    model = Transformer(TransformerConfig(width=16, depth=2), "gauss:16x32", 3, 3)
    kept: dict[int, int] = {}
    held = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        held.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        model(torch.randn(2, 3, 16, 32))
    weights = sum(p.numel() * 4 for p in model.parameters())
    estimate = step_bytes(model, 2)
    assert abs(estimate - 4 * weights - sum(kept.values())) < 0.2 * estimate


def test_a_directory_with_a_run_is_never_overwritten_by_chance(tmp_path: Path, finished) -> None:
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    content = (directory / "metrics.jsonl").read_bytes()
    with pytest.raises(FileExistsError, match=r"--resume.*--overwrite"):
        train(tiny(), directory)
    with pytest.raises(ValueError, match=r"training.batch=4 there, 2 here"):
        train(tiny(batch=2), directory, resume=True)
    with pytest.raises(ValueError, match="exclude each other"):
        train(tiny(), directory, resume=True, overwrite=True)
    with pytest.raises(ValueError, match="exclude each other"):
        train(tiny(), directory, resume=True, init=finished)
    with pytest.raises(ValueError, match="at step 9 already, beyond the 3 that --epochs 1"):
        train(tiny(epochs=1), directory, resume=True, log=silent)
    assert json.loads((directory / "config.json").read_text())["training"]["epochs"] == 3
    with pytest.raises(ValueError, match=r"is a checkpoint of a run; give the run itself"):
        Run.open(next((directory / "checkpoints").iterdir()))
    assert (directory / "metrics.jsonl").read_bytes() == content
    train(tiny(epochs=1), directory, overwrite=True, log=silent)
    assert len(losses(directory)) == 3
    assert json.loads((directory / "config.json").read_text())["training"]["epochs"] == 1


def test_resuming_nothing_says_how_to_begin(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no run.*spherule train"):
        train(tiny(), tmp_path / "nothing", resume=True)


def test_a_run_that_cannot_begin_leaves_no_run_behind(tmp_path: Path, finished: Path) -> None:
    from spherule.tasks import SegmentationConfig
    from spherule.train import RunConfig

    config = RunConfig(SegmentationConfig(), tiny().model)
    with pytest.raises(ValueError, match="no panoramas"):
        train(config, tmp_path / "new", log=silent)
    assert not (tmp_path / "new").exists()
    directory = tmp_path / "run"
    shutil.copytree(finished, directory)
    with pytest.raises(ValueError, match="no panoramas"):
        train(config, directory, overwrite=True, log=silent)
    assert losses(directory) == losses(finished)
