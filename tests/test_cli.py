import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spherule
from spherule.cli import main, openmp_runtimes


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["spherule", *arguments])
    main()


def test_info_tells_versions_and_threads(monkeypatch, capsys) -> None:
    run(monkeypatch, "info")
    text = capsys.readouterr().out
    assert spherule.__version__ in text
    assert torch.__version__ in text
    assert "OpenMP" in text
    assert "native CPU library" in text


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="counts libraries in /proc")
def test_one_openmp_runtime_in_the_process() -> None:
    code = (
        "from spherule import native; from spherule.cli import openmp_runtimes;"
        "native.load(); print(len(openmp_runtimes()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert openmp_runtimes() is not None


def test_demo_draws_a_picture(monkeypatch, capsys, tmp_path: Path) -> None:
    run(monkeypatch, "demo", "--out", str(tmp_path))
    assert str(tmp_path) in capsys.readouterr().out
    assert (tmp_path / "grids.png").read_bytes().startswith(b"\x89PNG")


def test_plots_of_neighborhoods(monkeypatch, capsys, tmp_path: Path) -> None:
    path = tmp_path / "a" / "n.png"
    run(monkeypatch, *f"plot neighborhood --grid O16 --cutoff 0.3 --at=-60,30 --out {path}".split())
    assert "keys here" in capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")
    run(monkeypatch, "plot", "panels", "--out", str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--cutoff 20", "math.radians"),
        ("--cutoff 0.2 --grid P3", "P3"),
        ("--cutoff 0.2 --at 60", "latitude,longitude"),
        ("--cutoff 0.2 --at 95,0", "90"),
    ],
)
def test_bad_flags_get_one_clear_line(monkeypatch, flags: str, words: str, unchecked) -> None:
    with pytest.raises(SystemExit, match=words) as stopped:
        run(monkeypatch, *f"plot neighborhood {flags}".split())
    assert "Traceback" not in str(stopped.value)


def test_unknown_command_is_refused(monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "inof")
    assert "inof" in capsys.readouterr().err
