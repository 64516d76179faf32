"""What users read when a package that they did not install is needed."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from spherule import cuda
from spherule.cli import main
from spherule.data.field_files import open_fields
from spherule.data.images import read_panorama, read_png
from spherule.data.rooms import Rooms, RoomsConfig
from spherule.data.stanford_layout import write_stanford_layout
from spherule.data.zarr_store import zarr_module
from spherule.models import from_pretrained
from spherule.optional import EXTRAS, install, require
from spherule.report.style import pyplot

ROOT = Path(__file__).parents[1]


@pytest.fixture
def hide() -> Iterator[Callable[[str], None]]:
    """As if a package were not installed. What is imported meanwhile may miss it, so it goes."""
    before = dict(sys.modules)

    def hide(package: str) -> None:
        for name in [n for n in sys.modules if n.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.modules[package] = None

    yield hide
    for name in set(sys.modules) - set(before):
        del sys.modules[name]
    sys.modules.update(before)


@pytest.mark.parametrize("package", EXTRAS)
def test_extras_bring_what_they_are_said_to(package: str) -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (extra,) = re.findall(rf"^{EXTRAS[package]} = \[(.*)\]", text, re.MULTILINE)
    assert re.search(rf'"{"pillow" if package == "PIL" else package}>=', extra)


@pytest.mark.parametrize(
    ("package", "call"),
    [
        ("matplotlib", lambda path: pyplot()),
        ("zarr", lambda path: zarr_module()),
        ("zarr", lambda path: open_fields(path / "store")),
        ("xarray", open_fields),
        ("h5netcdf", lambda path: open_fields(path / "fields.nc")),
        ("h5py", lambda path: open_fields(path / "fields.nc")),
        ("cfgrib", lambda path: open_fields(path / "fields.grib")),
        ("fsspec", lambda path: open_fields("s3://bucket/fields.nc")),
        ("huggingface_hub", lambda path: from_pretrained(f"hf://a/b@{'0' * 40}")),
        ("PIL", lambda path: read_png(path / "fields.nc", "name", ("L",))),
        ("PIL", lambda path: read_panorama(path / "fields.nc")),
        ("PIL", lambda path: next(write_stanford_layout(path / "new", Rooms(RoomsConfig())))),
    ],
)
def test_missing_package_is_named_with_the_way_to_get_it(
    package: str, call: Callable[[Path], object], hide, tmp_path: Path
) -> None:
    (tmp_path / "store").mkdir()
    for name in ("fields.nc", "fields.grib", "store/zarr.json"):
        (tmp_path / name).touch()
    hide(package)
    with pytest.raises(ModuleNotFoundError, match=f" needs {package}: ") as caught:
        call(tmp_path)
    assert str(caught.value).endswith(install(package))


@pytest.mark.parametrize(
    ("package", "command"),
    [
        ("matplotlib", "plot grids --out {}/a.png"),
        ("matplotlib", "plot neighborhood --cutoff 0.3 --out {}/a.png"),
        ("matplotlib", "plot panels --out {}/a.png"),
        ("matplotlib", "data swe --movie {}/a.gif"),
        ("PIL", "data swe --movie {}/a.gif"),
        ("PIL", "data stanford --root {} --out {}/a.zarr"),
        ("PIL", "data rooms --samples 1 --layout stanford --out {}/a"),
        ("zarr", "data swe --samples 1 --out {}/a.zarr"),
        ("zarr", "data rooms --samples 1 --out {}/a.zarr"),
    ],
)
def test_commands_end_with_one_sentence(
    package: str, command: str, hide, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(package)
    monkeypatch.setattr(sys, "argv", ["spherule", *command.replace("{}", str(tmp_path)).split(" ")])
    with pytest.raises(SystemExit, match=re.escape(install(package))):
        main()
    assert not list(tmp_path.iterdir())


def test_zarr_is_not_promised_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 13))
    assert "Python 3.11" in install("zarr")
    assert "pip install" in install("xarray")


def test_gpu_kernels_say_how_to_get_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "TRITON", False)
    assert install("triton") in cuda.kernels()


def test_other_missing_modules_are_not_explained_away(hide) -> None:
    hide("colorsys")
    with pytest.raises(ModuleNotFoundError, match="colorsys"):
        require("colorsys", "a test")
    assert require("numpy.linalg", "a test") is np.linalg
