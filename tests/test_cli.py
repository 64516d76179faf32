import json
import shlex
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import spherule
from spherule import recipes
from spherule.cli import main
from spherule.cli.info import openmp_runtimes
from spherule.data import PanoramaDataset, StoredShallowWater
from spherule.recipes.command import train_command
from spherule.report.movie import draw_movie
from tests.data.stanford_files import CAMERAS, file_of, write_dataset


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


def test_info_keeps_the_extra_in_the_line_that_installs_it(monkeypatch, capsys) -> None:
    line = "pip install 'spherule[gpu]'"
    monkeypatch.setattr("spherule.cuda.kernels", lambda: line)
    run(monkeypatch, "info")
    assert line in capsys.readouterr().out


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="counts libraries in /proc")
def test_one_openmp_runtime_in_the_process() -> None:
    code = (
        "from spherule import native; from spherule.cli.info import openmp_runtimes;"
        "native.load(); print(len(openmp_runtimes()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert openmp_runtimes() is not None


def test_plots_of_neighborhoods(monkeypatch, capsys, tmp_path: Path) -> None:
    path = tmp_path / "a" / "n.png"
    run(monkeypatch, *f"plot neighborhood --grid O16 --cutoff 0.3 --at=-60,30 --out {path}".split())
    assert "keys here" in capsys.readouterr().out
    assert path.read_bytes().startswith(b"\x89PNG")
    run(monkeypatch, "plot", "panels", "--out", str(tmp_path / "p.png"))
    assert (tmp_path / "p.png").exists()
    run(monkeypatch, "plot", "grids", "--out", str(tmp_path / "g.png"))
    assert (tmp_path / "g.png").read_bytes().startswith(b"\x89PNG")


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


def test_data_writes_a_store_and_says_so(monkeypatch, capsys, tmp_path: Path) -> None:
    out = tmp_path / "swe.zarr"
    command = ("data", "swe", "--grid", "gauss:16x32", "--lead", "300", "--samples", "3")
    run(monkeypatch, *command, "--out", str(out))
    assert "3/3" in capsys.readouterr().out
    assert out.is_dir()
    with pytest.raises(SystemExit, match="exists: remove it"):
        run(monkeypatch, *command, "--out", str(out))


def test_data_goes_on_after_a_kill(tmp_path: Path) -> None:
    out = tmp_path / "swe.zarr"
    command = [sys.executable, "-c", "from spherule.cli import main; main()", "data", "swe"]
    command += ["--grid", "gauss:16x32", "--lead", "300", "--samples", "400", "--out", str(out)]
    progress = tmp_path / "swe.zarr.partial" / "progress"
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while first.poll() is None and not (progress.exists() and progress.read_text() > "0"):
        time.sleep(0.01)
    first.kill()
    first.wait()
    assert not out.exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert len(StoredShallowWater(out)) == 400


def test_data_draws_a_movie(tmp_path: Path) -> None:
    path = tmp_path / "wave.gif"
    days = list(draw_movie(path, case="williamson6", days=0.25, lmax=21, pixels=120))
    assert days == [0, 0.125, 0.25]
    with Image.open(path) as movie:
        assert movie.n_frames == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to do"),
        (["--samples", "3"], "belong together"),
        (["--samples", "0", "--out", "a.zarr"], "samples=0"),
        (["--samples", "3", "--out", "a.zarr", "--lead", "100"], "multiple of step"),
        (["--samples", "3", "--out", "a.zarr", "--mean-depth", "-1"], "mean_depth=-1"),
        (["--movie", "a.gif", "--case", "galewski"], "case='galewski'"),
        (["--movie", "a.png"], r"ends in \.gif"),
        (["--movie", "a.gif", "--days", "-1"], "days=-1"),
    ],
)
def test_data_names_bad_input(monkeypatch, tmp_path, arguments: list[str], message: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match=message):
        run(monkeypatch, "data", "swe", *arguments)
    assert list(tmp_path.iterdir()) == []


def test_data_makes_a_store_of_stanfords_files(monkeypatch, capsys, tmp_path: Path) -> None:
    root = write_dataset(tmp_path / "2d3ds")
    file_of(root, "area_5a", CAMERAS[0], "depth").unlink()
    command = f"data stanford --root {root} --out {tmp_path}/p.zarr --size 12x24 --workers 0"
    with pytest.raises(SystemExit, match="missing partner"):
        run(monkeypatch, *command.split())
    run(monkeypatch, *command.split(), "--bad", "skip")
    text = capsys.readouterr().out
    assert "4/4" in text
    assert f"skipped area_5a/{CAMERAS[0]}: missing partner" in text
    assert "3 panoramas; left out: 1 missing partner" in text
    assert len(PanoramaDataset(tmp_path / "p.zarr", split="all")) == 3
    with pytest.raises(SystemExit, match="size='12'"):
        run(monkeypatch, *command.replace("12x24", "12").split())


def test_data_makes_rooms_that_read_back_alike_from_either_layout(
    monkeypatch, capsys, tmp_path: Path
) -> None:
    command = "data rooms --samples 6 --size 16x32 --seed 4 --workers 0 --out"
    run(monkeypatch, *f"{command} {tmp_path}/rooms.zarr".split())
    assert "6 panoramas" in capsys.readouterr().out
    run(monkeypatch, *f"{command} {tmp_path}/files --layout stanford".split())
    assert "6 panoramas" in capsys.readouterr().out
    stanford = f"data stanford --root {tmp_path}/files --out {tmp_path}/copy.zarr --size 16x32"
    run(monkeypatch, *f"{stanford} --workers 0".split())
    made, read = (
        PanoramaDataset(tmp_path / name, split="all") for name in ("rooms.zarr", "copy.zarr")
    )
    rooms = {made.panorama(i).name: made.panorama(i) for i in range(6)}
    for i in range(6):
        copy = read.panorama(i)
        (room,) = (room for name, room in rooms.items() if name.split("_")[1] in copy.name)
        np.testing.assert_array_equal(copy.rgb, room.rgb)
        np.testing.assert_array_equal(copy.label, room.label)
        np.testing.assert_allclose(copy.depth, room.depth, atol=1 / 1024 + 1e-6)
        assert copy.area == room.area


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--samples 0", "samples=0"),
        ("--samples 2 --size 128", "size='128'"),
        ("--samples 2 --tilt 200", "tilt=200"),
        ("--samples 2 --seed -1", "seed=-1"),
    ],
)
def test_data_rooms_names_bad_input(monkeypatch, tmp_path: Path, flags: str, words: str) -> None:
    with pytest.raises(SystemExit, match=words):
        run(monkeypatch, *f"data rooms --out {tmp_path}/r.zarr {flags}".split())
    assert list(tmp_path.iterdir()) == []


def test_plot_of_rooms(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "rooms.png"
    run(monkeypatch, *f"plot rooms --rooms 0 1 --more 2 3 4 --size 16x32 --out {path}".split())
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape[1] > 600
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 1000  # not an empty sheet


COMMANDS = ("train", "evaluate", "predict", "rollout", "compare", "report", "regrid", "demo")


@pytest.mark.parametrize(
    "flags", ["--help", "--version", "list", *(f"{name} --help" for name in COMMANDS)]
)
def test_help_version_and_list_need_no_torch(flags: str) -> None:
    code = (
        f"import sys; sys.argv = ['spherule', *{flags.split()!r}]\n"
        "from spherule.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert end.code == 0, end\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert any(w in done.stdout for w in (spherule.__version__, "usage: spherule", "swe/linear"))


def test_the_compiler_is_not_imported_before_something_is_compiled() -> None:
    code = (
        "import sys, spherule.cli.progress, spherule.models, spherule.runs, spherule.tasks\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_unknown_commands_are_answered_with_the_nearest(monkeypatch, capsys) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, "evalute")
    assert "did you mean evaluate?" in capsys.readouterr().err


def test_a_reader_that_stops_early_is_no_error() -> None:
    code = "import sys; sys.argv = ['spherule', '--help']; from spherule.cli import main; main()"
    program = subprocess.Popen(
        [sys.executable, "-u", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    program.wait()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ("--model.heads 3", "width=128 must be a multiple of --model.heads=3"),
        ("--training-part 2", "--training-part=2.0, validation_part=0.1"),
        ("--lead=parsec", "--lead='parsec': expected a number and a unit"),
        ("--learning-rate -1", "--learning-rate=-1.0 must be > 0"),
    ],
)
def test_errors_name_the_flag_that_was_given(monkeypatch, flags: str, words: str) -> None:
    with pytest.raises(SystemExit) as end:
        run(monkeypatch, "train", "forecast", "--out", "nowhere", *flags.split())
    assert words in str(end.value)


def test_the_command_of_a_report_makes_the_same_config(monkeypatch, capsys) -> None:
    config = recipes.get("forecast/s2-transformer-local:tiny")
    task = replace(config.task, data=Path("my data.nc"), variables=("z@500", "t"), repair=True)
    model = replace(config.model, heads=2, local=False, cutoff=None)
    training = replace(config.training, epochs=3, clip=None)
    config = replace(config, task=task, model=model, training=training)
    command = shlex.split(train_command(config, "my run"))
    assert command[:3] == ["spherule", "train", config.recipe]
    run(monkeypatch, *command[1:], "--print-config")
    assert json.loads(capsys.readouterr().out) == config.to_dict()
