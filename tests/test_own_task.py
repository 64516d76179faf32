"""A task outside the package: the same command line and functions serve it."""

import json
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_task.py"


def spherule(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spherule", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_task_outside_the_package_trains_evaluates_and_is_reported(tmp_path: Path) -> None:
    own = ("--import", EXAMPLE)
    trained = spherule(*own, "train", "own/spectrum", "--out", tmp_path / "run")
    assert trained.returncode == 0, trained.stderr
    evaluated = spherule(*own, "evaluate", tmp_path / "run")
    assert "accuracy" in evaluated.stdout, evaluated.stderr
    result = json.loads((tmp_path / "run" / "evaluation.json").read_text())
    assert result["test"]["accuracy"]["mean"] > 0.6  # a third by chance
    reported = spherule(*own, "report", tmp_path / "run")
    assert reported.returncode == 0, reported.stderr
    assert "Spectra of random fields" in (tmp_path / "run" / "report.html").read_text()
    assert "own/spectrum" in spherule(*own, "list").stdout
    # What a run's files name is never loaded by itself.
    unknown = spherule("evaluate", tmp_path / "run")
    assert unknown.returncode != 0
    assert "type='spectrum'" in unknown.stderr
    assert "--import FILE" in unknown.stderr
    flat = spherule(*own, "rollout", tmp_path / "run")
    assert "is no forecast" in flat.stderr
