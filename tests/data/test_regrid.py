"""Fields on another grid: values, means, attributes and coordinates."""

import sys
from pathlib import Path

import numpy as np
import pytest

from spherule.cli import main
from spherule.data.field_files import open_fields
from spherule.data.field_writer import FieldWriter
from spherule.data.layout import Layout
from spherule.data.regrid import regrid
from spherule.grids import Grid
from tests.fields import era5_like

xr = pytest.importorskip("xarray")


@pytest.mark.parametrize("method", ["bilinear", "nearest", "conservative", "spectral"])
@pytest.mark.parametrize(("kind", "name"), [("era5", "O8"), ("cells", "gauss:12x24")])
def test_linear_fields_arrive_at_their_places(kind, name, method, tmp_path: Path) -> None:
    data, grid = era5_like(kind, times=2), Grid.from_name(name)
    regrid(data, tmp_path / "out.nc", grid, method=method)
    out = open_fields(tmp_path / "out.nc")
    assert Layout.of(out).grid == grid
    assert out.z.attrs == data.z.attrs
    assert out.attrs["title"] == data.attrs["title"]
    assert (out.time.values == data.time.values).all()
    exact = grid.xyz @ [1.0, 2.0, 3.0]
    tolerance = {"bilinear": 0.25, "nearest": 0.8, "conservative": 0.8, "spectral": 2e-3}[method]
    if (kind, method) == ("cells", "spectral"):
        tolerance = 0.02  # a reduced grid's transform is approximate
    assert np.abs(out.place.values.ravel() - exact).max() < tolerance
    before = Layout.of(data)
    means = [
        (layout.grid.weights * layout.read(d.z[0])).sum() / layout.grid.weights.sum()
        for layout, d in ((before, data), (Layout.of(out), out))
    ]
    if method in ("conservative", "spectral"):
        assert means[0] == pytest.approx(means[1], rel=1e-5)


def test_missing_values_stay_missing_and_the_transform_refuses_them(tmp_path: Path) -> None:
    data = era5_like("era5", times=2)
    data["t"][0, 3:8, 4:12] = np.nan
    for method in ("bilinear", "nearest", "conservative"):
        regrid(data, tmp_path / f"{method}.nc", Grid.gauss(24, 48), method=method)
        gone = open_fields(tmp_path / f"{method}.nc").t.isnull()
        assert 0.05 < float(gone[0].mean()) < 0.4
        assert not gone[1].any()
    with pytest.raises(ValueError, match="t has 40 missing values"):
        regrid(data, tmp_path / "s.nc", Grid.gauss(24, 48), method="spectral")
    assert not (tmp_path / "s.nc").exists()


def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    data = era5_like("era5", times=2)
    data.to_netcdf(tmp_path / "in.nc", engine="h5netcdf")
    out = tmp_path / "out.nc"
    arguments = ["spherule", "regrid", str(tmp_path / "in.nc"), str(out), "--grid", "H4"]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    assert "Grid(H4" in capsys.readouterr().out
    assert open_fields(out).z.dims == ("time", "cell")


@pytest.mark.parametrize("step", ["_chunks", "_close", "write"])
def test_nothing_is_left_of_a_file_that_could_not_be_written(step, tmp_path: Path) -> None:
    class Full(FieldWriter):
        def __enter__(self) -> FieldWriter:
            super().__enter__()
            close = self._close
            if step == "_close":
                self._close = lambda: fail(close)
            return self

        def _chunks(self, variable):
            return fail() if step == "_chunks" else super()._chunks(variable)

    def fail(first=lambda: None):
        first()
        raise OSError("the disk is full")

    writer = Full(tmp_path / "out.nc", era5_like("era5", times=2), ("latitude", "longitude"))
    with pytest.raises(OSError, match="full"), writer:
        fail() if step == "write" else None
    assert not list(tmp_path.iterdir())


def test_what_is_no_field_goes_along_or_is_named(tmp_path: Path) -> None:
    data = era5_like("era5", times=2).assign(
        p0=1000.0, zonal=(("time", "latitude"), np.zeros((2, 13))), weight=("time", [0.5, 1.5])
    )
    said: list[str] = []
    regrid(data, tmp_path / "out.nc", Grid.gauss(8, 16), log=said.append)
    out = open_fields(tmp_path / "out.nc")
    assert out.p0 == 1000
    assert np.array_equal(out.weight, [0.5, 1.5])
    assert "zonal" not in out.variables
    assert said == ["note: left out, since they are no fields of numbers: zonal"]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_attributes_of_every_kind_are_written(suffix: str, tmp_path: Path) -> None:
    if suffix == ".zarr":
        pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
    data = era5_like("era5", times=2)
    data.z.attrs |= {
        "valid_range": np.array([-32766, 32767], np.int16), "flags": np.array([1, 2]), "on": True,
        "levels": np.array([0.5, 1.5], np.float32), "nested": {"a": [1, None]}, "words": ["a", "b"],
        "mixed": [1, "a"], "none": None,
    }  # fmt: skip
    data.attrs["history"] = np.float32(2.5)
    regrid(data, tmp_path / f"out{suffix}", Grid.gauss(8, 16))
    attrs = open_fields(tmp_path / f"out{suffix}").z.attrs
    assert "valid_range" not in attrs
    assert np.array_equal(attrs["flags"], [1, 2])
    assert attrs["on"] == 1
    assert np.array_equal(attrs["levels"], [0.5, 1.5])
    assert attrs["nested"] == '{"a": [1, null]}'
