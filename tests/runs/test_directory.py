"""A run's directory: old runs, damaged files, links, locks, two at once."""

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from spherule.runs import Run, RunDirectory, evaluate, evaluated, publish, train
from spherule.tasks import ShallowWaterTaskConfig
from spherule.train.checkpoint import checkpoints, damage
from tests.tiny import losses, silent, tiny

OLD = Path(__file__).parent / "v0_1_0"


@pytest.fixture
def run_copy(tmp_path: Path, finished: Path) -> Path:
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_a_run_of_0_1_0_predicts_what_it_did(tmp_path: Path) -> None:
    shutil.copytree(OLD, tmp_path / "old")
    run = Run.open(tmp_path / "old")
    recorded = load_file(OLD / "recorded.safetensors")
    task = run.task()
    with torch.no_grad():
        prediction = task.step(run.model.eval(), recorded["input"])
    assert torch.allclose(prediction, recorded["prediction"], atol=1e-6)
    before = json.loads((OLD / "evaluation.json").read_text())
    assert evaluate(run, samples=4)["test"]["l2"]["mean"] == pytest.approx(
        before["test"]["l2"]["mean"]
    )
    assert run.config.model == tiny().model
    training = replace(run.config.training, epochs=2)
    train(replace(run.config, training=training), tmp_path / "old", resume=True, log=silent)
    assert len(losses(tmp_path / "old")) == 6


def test_overwriting_forgets_checkpoints_behind_a_link_and_follows_none(
    run_copy: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (run_copy / "checkpoints").rename(elsewhere)
    (run_copy / "checkpoints").symlink_to(elsewhere)
    kept = sorted(p.name for p in elsewhere.iterdir())
    train(tiny(epochs=1, seed=5), run_copy, overwrite=True, log=silent)
    assert Run.open(run_copy).config.training.seed == 5
    assert Run.open(run_copy, which="last").checkpoint.step == 3
    assert sorted(p.name for p in elsewhere.iterdir()) == kept


def test_resuming_leaves_the_config_alone(run_copy: Path) -> None:
    config = run_copy / "config.json"
    before = config.stat().st_mtime_ns, config.stat().st_ino
    train(tiny(), run_copy, resume=True, log=silent)
    assert (config.stat().st_mtime_ns, config.stat().st_ino) == before
    train(tiny(epochs=4), run_copy, resume=True, log=silent)
    assert Run.open(run_copy).config.training.epochs == 4


def _train_slowly(directory: Path, begun) -> None:
    torch.set_num_threads(1)

    def on_step(event) -> None:
        begun.set()
        time.sleep(60)

    train(tiny(), directory, on_step=on_step, log=silent)


def test_a_second_training_into_a_directory_is_refused_and_names_the_first(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    directory = tmp_path / "run"
    first = context.Process(target=_train_slowly, args=(directory, begun))
    first.start()
    try:
        assert begun.wait(60)
        journal = (directory / "metrics.jsonl").read_bytes()
        for how in ({"resume": True}, {"overwrite": True}):
            with pytest.raises(BlockingIOError, match=f"trained by process {first.pid}"):
                train(tiny(), directory, log=silent, **how)
        assert (directory / "metrics.jsonl").read_bytes() == journal
    finally:
        first.kill()
        first.join()
    train(tiny(epochs=1), directory, overwrite=True, log=silent)  # the lock died with it
    assert len(losses(directory)) == 3


def _hold_with_a_worker(directory: Path, begun) -> None:
    with RunDirectory(directory).locked():
        worker = multiprocessing.get_context("fork").Process(target=_outlive, args=(begun,))
        worker.start()
        worker.join()


def _outlive(begun) -> None:
    begun.set()
    time.sleep(3)


def test_a_lock_dies_with_its_process_though_a_worker_lives_on(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    begun = context.Event()
    holder = context.Process(target=_hold_with_a_worker, args=(tmp_path, begun))
    holder.start()
    assert begun.wait(60)
    holder.kill()
    holder.join()
    with RunDirectory(tmp_path).locked():
        pass


def test_a_renamed_checkpoint_is_no_checkpoint_of_that_step(run_copy: Path) -> None:
    newest = checkpoints(run_copy / "checkpoints")[-1]
    newest.path.rename(newest.path.with_name("step-00000099"))
    renamed = checkpoints(run_copy / "checkpoints")[-1]
    assert "is of step 9" in str(damage(renamed))
    assert Run.open(run_copy, which="last").checkpoint.step < 9


@pytest.mark.parametrize("name", ["config.json", "metadata.json"])
@pytest.mark.parametrize("junk", [b"", b"{", b"[1, 2]", b"\xff\xfe", b"[" * 100_000])
def test_junk_in_a_runs_files_is_named(run_copy: Path, name: str, junk: bytes) -> None:
    (run_copy / name).write_bytes(junk)
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        Run.open(run_copy)


def test_a_missing_file_is_named(run_copy: Path) -> None:
    (run_copy / "metadata.json").unlink()
    with pytest.raises(ValueError, match=r"metadata\.json does not exist.*--overwrite"):
        Run.open(run_copy)
    (run_copy / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="holds no run"):
        Run.open(run_copy)


def test_junk_in_a_journal_or_an_evaluation_is_left_out(run_copy: Path) -> None:
    with (run_copy / "metrics.jsonl").open("ab") as file:
        file.write(b'7\n{"loss": 3}\n{"step": "x"}\n\xff\n{"step": 10, "lo')
    assert all(r["step"] <= 9 for r in RunDirectory(run_copy).records())
    for junk in ("[]", '{"step": 9}', "{"):
        (run_copy / "evaluation.json").write_text(junk)
        assert evaluated([run_copy], log=silent)[0]["test"]["loss"]["count"] == 4


@pytest.mark.parametrize(
    "record",
    [
        {"step": 9, "loss": "x"},
        {"step": 9, "loss": None},
        {"step": 9, "loss": 10**400},
        {"step": 10**400, "loss": 1.0},
        {"step": 2**63, "loss": 1.0},
        {"step": -1, "loss": 1.0},
        {"step": 9, "validation": 5},
        {"step": 9, "validation": {}},
        {"step": 9, "validation": {"loss": {"mean": "x"}}},
        {"step": 9, "training_loss": [], "validation": {"loss": {"mean": 1.0}}},
    ],
)
def test_a_record_without_numbers_is_left_out(run_copy: Path, record: dict) -> None:
    before = RunDirectory(run_copy).records()
    with (run_copy / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(record) + "\n")
    assert RunDirectory(run_copy).records() == before


def test_an_evaluation_of_another_shape_is_made_again(run_copy: Path, monkeypatch) -> None:
    from spherule.runs import evaluation

    (good,) = evaluated([run_copy], log=silent)
    monkeypatch.setattr(evaluation, "evaluate", lambda *_, **__: {"made": "again"})
    assert evaluated([run_copy], log=silent) == [good]
    path = run_copy / "evaluation.json"
    nothing: tuple = (None, 3, "x", [], {}, {"loss": 3}, {"samples": "x"})
    for key in ("columns", "test", "measured_on", "title", "parameters", "training_loss"):
        fine = {"columns": [{}], "title": ["x"], "parameters": [3], "training_loss": [None]}
        for value in (v for v in nothing if v not in fine.get(key, [])):
            path.write_text(json.dumps({**good, key: value}))
            assert evaluated([run_copy], log=silent) == [{"made": "again"}], (key, value)


def test_junk_in_a_published_run_is_named(finished: Path, tmp_path: Path) -> None:
    path = Path(publish(Run.open(finished), tmp_path / "water", log=silent)) / "run.json"
    good = json.loads(path.read_text())
    for key in good:
        for value in (None, "x", [], 0.5, {} if key == "config" else True):
            path.write_text(json.dumps({**good, key: value}))
            with pytest.raises(ValueError, match=r"run\.json: .*"):
                Run.open(path.parent)


def test_statistics_that_are_none_are_named(run_copy: Path) -> None:
    path = run_copy / "metadata.json"
    good = json.loads(path.read_text())
    for junk in ({**good, "mean": None}, {**good, "std": 3}, {**good, "std": None}):
        path.write_text(json.dumps(junk))
        with pytest.raises(ValueError, match="metadata: mean and std must be lists of numbers"):
            Run.open(run_copy).task(silent)


def test_overwriting_leaves_no_old_metadata(run_copy: Path) -> None:
    shutil.copy(run_copy / "metadata.json", run_copy / "problem.json")
    RunDirectory(run_copy).clear()
    assert not RunDirectory(run_copy).metadata.exists()


def test_a_file_in_place_of_checkpoints_is_named(run_copy: Path) -> None:
    shutil.rmtree(run_copy / "checkpoints")
    (run_copy / "checkpoints").write_text("")
    with pytest.raises(OSError, match=r"could not be written to .*checkpoints"):
        train(tiny(), run_copy, resume=True, log=silent)


def test_evaluations_over_other_samples_are_made_again(run_copy: Path, finished: Path) -> None:
    evaluate(Run.open(run_copy), samples=2, log=silent)
    assert evaluated([run_copy], log=silent)[0]["measured_on"]["samples"] == 2
    counts = [r["measured_on"]["samples"] for r in evaluated([run_copy, finished], log=silent)]
    assert counts == [4, 4]


def test_a_run_that_may_only_be_read_can_be_evaluated(run_copy: Path, monkeypatch) -> None:
    def refuse(path: Path, values: object) -> None:
        raise PermissionError(f"{path} is read-only")

    monkeypatch.setattr("spherule.runs.evaluation.write_json", refuse)
    said: list[str] = []
    assert evaluate(Run.open(run_copy), log=said.append)["test"]["loss"]["count"] == 4
    assert "not kept" in said[0]
    assert not any("wrote" in line for line in said)


def test_statistics_are_not_measured_again(run_copy: Path, monkeypatch) -> None:
    from spherule.data import ShallowWaterDataset

    def measured(self) -> None:
        raise AssertionError("simulated anew")

    monkeypatch.setattr(ShallowWaterDataset, "_measure", measured)
    Run.open(run_copy).task()


def test_files_removed_under_a_running_training_end_it_with_a_word(tmp_path: Path) -> None:
    directory = tmp_path / "run"

    def on_step(event) -> None:
        if event.step == 1:
            shutil.rmtree(directory)

    with pytest.raises(OSError, match=r"could not be written|No such file"):
        train(tiny(), directory, on_step=on_step, log=silent)


def test_a_termination_saves_and_tells_how_to_go_on(tmp_path: Path) -> None:
    tiny(epochs=500).save(tmp_path / "config.json")
    command = [sys.executable, "-m", "spherule", "train", "--config", str(tmp_path / "config.json")]
    process = subprocess.Popen(
        [*command, "--out", str(tmp_path / "run")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    journal = tmp_path / "run" / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (journal.exists() and journal.stat().st_size):
        time.sleep(0.1)
    process.terminate()
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "--resume --out" in text
    assert damage(checkpoints(tmp_path / "run" / "checkpoints")[-1]) is None


def test_a_place_that_cannot_be_a_directory_is_named_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ShallowWaterTaskConfig, "open", lambda *_, **__: pytest.fail("too late"))
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        train(tiny(), tmp_path / "file" / "run", log=silent)
    with pytest.raises(OSError, match="file"):
        train(tiny(), tmp_path / "file", log=silent)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_system_that_may_only_be_read_is_named_before_anything_is_made() -> None:
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("no rights to mount a file system here")
    code = (
        "import sys\n"
        "from spherule.runs import train\n"
        "from spherule.tasks import ShallowWaterTaskConfig\n"
        "from tests.tiny import tiny\n"
        "ShallowWaterTaskConfig.open = lambda *_, **__: sys.exit('too late')\n"
        "try:\n"
        "    train(tiny(), sys.argv[1] + '/run')\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    script = 'mount -t tmpfs -o ro none /mnt && exec "$0" -c "$1" /mnt'
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script, sys.executable, code],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Read-only file system: '/mnt/run'" in done.stdout, done.stdout + done.stderr


def test_a_checkpoint_is_found_by_its_step_where_it_is_whole(run_copy: Path) -> None:
    directory = RunDirectory(run_copy)
    kept = checkpoints(directory.checkpoints)
    best = kept[-1].state()["best"]
    assert {c.step for c in kept} == {8, 9, best}
    assert [directory.at(c.step) for c in kept] == kept
    assert directory.at(7) is None
    assert directory.at(None) is None
    (kept[-1].path / "state.json").write_text("{}")
    assert directory.at(9) is None
    assert directory.at(kept[0].step) == kept[0]
