"""The commands on runs, as a user gives them."""

import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from spherule.cli import main
from spherule.train import RunConfig
from tests.tiny import TINY

SMALL = "--grid gauss:12x24 --step 300 --samples 8 --validation-samples 4 --test-samples 4"
SMALL += " --epochs 2 --batch 4 --model.width 8 --model.depth 1"


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["spherule", *(str(a) for a in arguments)])
    main()


def said(monkeypatch, *arguments: object) -> str:
    """What a failing command says."""
    with pytest.raises(SystemExit) as stopped:
        run(monkeypatch, *arguments)
    return str(stopped.value)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    patch = pytest.MonkeyPatch()
    directories = []
    for row in ("s2-transformer-local", "r2-transformer-local"):
        directories.append(tmp_path_factory.mktemp("runs") / row)
        run(patch, "train", f"swe/{row}:tiny", *SMALL.split(), "--out", directories[-1])
    patch.undo()
    return directories


def test_training_prints_a_line_an_epoch_and_writes_a_run(monkeypatch, capsys, tmp_path) -> None:
    out = tmp_path / "run"
    run(monkeypatch, "train", "swe/s2-transformer-local:tiny", *SMALL.split(), "--out", out)
    text = capsys.readouterr().out
    assert "epoch 2, step 4 of 4: validation loss" in text
    assert f"spherule report {out}" in text
    assert RunConfig.load(out / "config.json").model.width == 8
    assert "--resume goes on" in said(
        monkeypatch, "train", "swe/s2-transformer-local:tiny", "--out", out
    )
    run(monkeypatch, "train", "--resume", "--out", out, "--epochs", 3)
    assert "going on from step 4 of 6" in capsys.readouterr().out
    assert "holds a run of swe/s2-transformer-local:tiny" in said(
        monkeypatch, "train", "swe/s2-segformer:tiny", "--resume", "--out", out
    )


def test_print_config_and_config_round_trip(monkeypatch, capsys, tmp_path: Path) -> None:
    run(monkeypatch, "train", "seg/s2-segformer:small", "--epochs", 7, "--print-config")
    text = capsys.readouterr().out
    (tmp_path / "c.json").write_text(text)
    run(monkeypatch, "train", "--config", tmp_path / "c.json", "--print-config")
    assert capsys.readouterr().out == text
    assert json.loads(text)["training"]["epochs"] == 7
    run(monkeypatch, "train", f"--config={tmp_path / 'c.json'}", "--batch", 2, "--print-config")
    assert json.loads(capsys.readouterr().out)["training"]["batch"] == 2


def test_list_shows_recipes_with_parameters(monkeypatch, capsys) -> None:
    run(monkeypatch, "list")
    text = capsys.readouterr().out
    for words in ("swe/s2-transformer-local", "seg/s2-segformer-local-large", ":tiny", "0.007"):
        assert words in text


def test_evaluate_compare_and_report(monkeypatch, capsys, tmp_path: Path, runs) -> None:
    run(monkeypatch, "evaluate", runs[0])
    text = capsys.readouterr().out
    assert "over 4 samples" in text
    assert "L₂ error" in text
    for suffix in ("md", "html"):
        run(monkeypatch, "compare", *runs, "--out", tmp_path / f"table.{suffix}")
    printed = capsys.readouterr().out
    table = (tmp_path / "table.md").read_text()
    assert table.strip() in printed
    assert table.count("**") == 8  # the best of four columns
    assert "<table>" in (tmp_path / "table.html").read_text()
    run(monkeypatch, "report", *runs, "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    for words in (
        "Error by latitude",
        "Spectra",
        "R² Transformer (local), tiny",
        "data:image/webp",
    ):
        assert words in page
    # Three epochs of a tiny model are no match for doing nothing, and both say so.
    for text in (printed, page, (tmp_path / "table.html").read_text()):
        assert "loses to persistence" in text
    assert "<p class=bad>" in page
    assert "spherule train swe/" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert 'src="http' not in page


def test_rollout_draws_growth_spectra_and_a_movie(monkeypatch, capsys, runs, tmp_path) -> None:
    run(monkeypatch, "rollout", runs[0], "--hours", 3, "--samples", 2, "--out", tmp_path)
    assert capsys.readouterr().out.count("wrote") == 5
    with Image.open(tmp_path / "rollout.gif") as movie:
        assert movie.n_frames == 4
    numbers = json.loads((tmp_path / "rollout.json").read_text())
    assert numbers["hours"] == [1.0, 2.0, 3.0]
    assert len(numbers["model_error"][0]) == 3
    assert "lead is 1 h" in said(monkeypatch, "rollout", runs[0], "--hours", 0.1)


def test_predict_takes_a_store_of_shallow_water(monkeypatch, capsys, tmp_path, runs) -> None:
    xr = pytest.importorskip("xarray")
    pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
    arguments = ["data", "swe", "--grid", "gauss:12x24", "--step", "300", "--samples", "4"]
    run(monkeypatch, *arguments, "--out", tmp_path / "in.zarr")
    run(monkeypatch, "predict", runs[0], "--input", tmp_path / "in.zarr", "--output",
        tmp_path / "out.nc")  # fmt: skip
    with xr.open_dataset(tmp_path / "out.nc", engine="h5netcdf") as data:
        assert data["vorticity"].shape == (4, 2, 12, 24)
        assert data["vorticity"].attrs["units"] == "s-1"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train swe/s2-transformer-lokal --out x", "did you mean swe/s2-transformer-local"),
        ("train swe/s2-transformer:tiny", "--out DIR is missing"),
        ("train seg/s2-segformer --out OUT", "spherule data stanford --root"),
        ("train forecast --out OUT", "--data my.zarr --variables"),
        ("train forecast --data no.nc --variables z --out OUT", "no.nc does not exist"),
        ("train --config no.json", "no.json does not exist"),
        ("train swe/s2-transformer --config no.json", "exclude each other"),
        ("evaluate OUT", "holds no run: begin one"),
        ("report", "at least one run"),
        ("compare", "at least one run"),
        ("predict OUT --input a.nc --output b.nc", "holds no run"),
    ],
)
def test_bad_input_is_named(monkeypatch, tmp_path: Path, arguments: str, words: str) -> None:
    assert words in said(monkeypatch, *arguments.replace("OUT", str(tmp_path / "o")).split())


def test_runs_of_different_tasks_are_not_compared(monkeypatch, runs, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other"
    shutil.copytree(runs[0], other)
    run(monkeypatch, "evaluate", other)
    path = other / "evaluation.json"
    result = json.loads(path.read_text())
    path.write_text(json.dumps({**result, "columns": {"loss": "loss ↓"}}))
    assert "different tasks" in said(monkeypatch, "compare", runs[0], other)


def test_the_demo_writes_a_page(monkeypatch, capsys, tmp_path: Path) -> None:
    import dataclasses

    from spherule import recipes

    whole = recipes.get

    def smaller(name: str) -> RunConfig:
        config = whole(name)
        model = dataclasses.replace(config.model, width=8, depth=1)
        return dataclasses.replace(config, task=TINY.task, model=model)

    monkeypatch.setattr(recipes, "get", smaller)
    run(monkeypatch, "demo", "--epochs", 1, "--out", tmp_path)
    assert (tmp_path / "report.html").stat().st_size > 100_000
    assert "report.html" in capsys.readouterr().out


def test_attention_of_a_run_becomes_a_page(monkeypatch, capsys, runs: list[Path]) -> None:
    for directory in runs:
        run(monkeypatch, "view", directory, "--attention")
        text = (directory / "attention.html").read_text()
        assert f"wrote {directory / 'attention.html'}" in capsys.readouterr().out
        assert '"attention of layer 1"' in text
        assert '"vorticity"' in text
    assert "--variable chooses fields of a file" in said(
        monkeypatch, "view", runs[0], "--attention", "--variable", "vorticity"
    )
