"""What users read when a package that they did not install is needed."""

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import fsspec
import numpy as np
import pytest
import xarray as xr
from xarray.backends import plugins

from spherule import Grid, cuda
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


def _forget_readers() -> None:
    """xarray remembers which packages there are."""
    for function in (plugins.list_engines, plugins.module_available):
        if hasattr(function, "cache_clear"):
            function.cache_clear()


@pytest.fixture
def hide() -> Iterator[Callable[[str], None]]:
    """As if a package were not installed. All are loaded before, so that none misses another."""
    for package in EXTRAS:
        with suppress(ImportError):
            importlib.import_module(package)
    before = dict(sys.modules)

    def hide(package: str) -> None:
        for name in [n for n in sys.modules if n.startswith(f"{package}.")]:
            del sys.modules[name]
        sys.modules[package] = None
        _forget_readers()

    yield hide
    for name in set(sys.modules) - set(before):
        if sys.modules[name] is None:
            del sys.modules[name]
    sys.modules.update(before)
    _forget_readers()


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
        ("scipy", lambda path: open_fields(path / "classic.nc")),
        ("cftime", lambda path: open_fields(path / "noleap.nc")),
        ("cfgrib", lambda path: open_fields(path / "fields.grib")),
        ("fsspec", lambda path: open_fields("s3://bucket/fields.nc")),
        ("zarr", lambda path: open_fields(f"memory://{path}/fields.zarr")),
        ("h5netcdf", lambda path: open_fields("memory://fields.nc")),
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
    values = xr.Dataset({"t": ("time", np.zeros(3))}, {"time": ("time", np.arange(3))})
    values.to_netcdf(tmp_path / "classic.nc", engine="scipy")
    values["time"].attrs = {"units": "days since 2001-01-01", "calendar": "noleap"}
    values.to_netcdf(tmp_path / "noleap.nc", engine="h5netcdf")
    fsspec.filesystem("memory").pipe("/fields.nc", (tmp_path / "noleap.nc").read_bytes())
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
        ("matplotlib", "plot rooms --out {}/a.png"),
        ("matplotlib", "demo --out {}/a"),
        ("matplotlib", "report RUN --out {}/a.html"),
        ("matplotlib", "rollout RUN --out {}/a"),
        ("PIL", "rollout RUN --out {}/a"),
        ("PIL", "report RUN --out {}/a.html"),
        ("xarray", "evaluate RUN --scores {}/a.nc"),
        ("h5netcdf", "evaluate RUN --scores {}/a.nc"),
        ("xarray", "predict RUN --input FILE --output {}/a.nc"),
        ("h5netcdf", "predict RUN --input FILE --output {}/a.nc"),
        ("h5py", "predict RUN --input FILE --output {}/a.nc"),
        ("zarr", "predict RUN --input FILE --output {}/a.zarr"),
        ("xarray", "regrid FILE {}/a.nc --grid H8"),
        ("h5netcdf", "regrid FILE {}/a.nc --grid H8"),
        ("zarr", "regrid FILE {}/a.zarr --grid H8"),
        ("cfgrib", "regrid GRIB {}/a.nc --grid H8"),
        ("xarray", "view FILE --out {}/a.html"),
        ("h5py", "view FILE --out {}/a.html"),
        ("xarray", "train forecast --data FILE --variables t --lead 6h --out {}/a"),
        ("huggingface_hub", "publish RUN hf://someone/waves"),
    ],
)
def test_commands_end_with_one_sentence(
    package: str, command: str, hide, finished: Path, tmp_path: Path, monkeypatch
) -> None:
    """Before anything is measured or written."""
    made = tmp_path / "made"
    made.mkdir()
    _write_fields(tmp_path / "fields.nc")
    (tmp_path / "fields.grib").write_bytes(b"GRIB")
    for name, path in {
        "RUN": finished,
        "FILE": tmp_path / "fields.nc",
        "GRIB": tmp_path / "fields.grib",
        "{}": made,
    }.items():
        command = command.replace(name, str(path))
    before = sorted(finished.rglob("*"))
    hide(package)
    monkeypatch.setattr(sys, "argv", ["spherule", *command.split(" ")])
    with pytest.raises(SystemExit, match=re.escape(install(package))):
        main()
    assert not list(made.iterdir())
    assert sorted(finished.rglob("*")) == before


def _write_fields(path: Path) -> None:
    """What the finished run's model takes."""
    grid = Grid.gauss(12, 24)
    names = ("geopotential", "vorticity", "divergence")
    times = np.datetime64("2001-01-01", "ns") + np.arange(3) * np.timedelta64(1, "h")
    dims = ("time", "latitude", "longitude")
    axes = (90 - np.degrees(grid.theta), np.arange(24) * 15.0)
    data = {name: (dims, np.random.default_rng(0).normal(size=(3, 12, 24))) for name in names}
    coordinates = dict(zip(dims, (times.astype("datetime64[ns]"), *axes), strict=True))
    xr.Dataset(data, coordinates).to_netcdf(path, engine="h5netcdf")


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
