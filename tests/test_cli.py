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


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="counts libraries in /proc")
def test_one_openmp_runtime_in_the_process() -> None:
    code = (
        "import spherule; from spherule.cli import openmp_runtimes; print(len(openmp_runtimes()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert openmp_runtimes() is not None


def test_demo_draws_a_picture(monkeypatch, capsys, tmp_path: Path) -> None:
    run(monkeypatch, "demo", "--out", str(tmp_path))
    assert str(tmp_path) in capsys.readouterr().out
    assert (tmp_path / "grids.png").read_bytes().startswith(b"\x89PNG")


def test_unknown_command_is_refused(monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "inof")
    assert "inof" in capsys.readouterr().err
