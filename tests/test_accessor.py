"""`.spherule` of a DataArray agrees with the library on the same fields."""

from pathlib import Path

import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.data.layout import Layout
from tests.fields import era5_like

xr = pytest.importorskip("xarray")
pytest.importorskip("spherule.accessor")


@pytest.fixture(scope="module", params=["era5", "cells"])
def data(request):
    return era5_like(request.param, times=3)


def test_transforms_and_means_are_those_of_the_library(data) -> None:
    layout = Layout.of(data)
    z, grid = data.z, layout.grid
    u = torch.from_numpy(layout.read(z)).double()
    assert z.spherule.grid == grid
    coeffs = ops.sht(u, grid, 4)
    assert np.array_equal(z.spherule.sht(4).values, coeffs.numpy())
    assert z.spherule.sht(4).dims == ("time", "l", "m")
    assert np.allclose(z.spherule.power_spectrum(4), ops.power_spectrum(coeffs))
    mean = z.spherule.mean()
    assert mean.dims == ("time",)
    assert (mean.time == z.time).all()
    assert np.allclose(mean, ops.integrate(u, grid) / grid.weights.sum(), rtol=1e-6)
    holes = z.where(data.place > 0)
    assert np.isfinite(holes.spherule.mean()).all()
    with pytest.raises(ValueError, match="missing values"):
        holes.spherule.sht(4)


def test_another_grid_keeps_attributes_and_time(data, unchecked) -> None:
    there = data.z.spherule.regrid("gauss:16x32", "spectral")
    assert there.dims == ("time", "latitude", "longitude")
    assert there.attrs == data.z.attrs
    assert there.name == "z"
    assert there.spherule.grid == Grid.gauss(16, 32)
    with pytest.raises(ValueError, match="method='cubic'"):
        data.z.spherule.regrid("H4", "cubic")


def test_pictures_are_drawn(data, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib").use("Agg")
    drawn = data.z.isel(time=0).spherule.plot(pixels=60)
    assert drawn.get_cmap().name == "viridis", "no anomaly"
    assert drawn.colorbar.ax.get_ylabel() == f"z ({data.z.attrs['units']})"
    assert drawn.axes.get_title().startswith(str(data.time.values[0].astype("datetime64[D]")))
    assert drawn.axes.collections or drawn.axes.lines, "coasts"
    assert data.z.spherule.globe(tmp_path / "z.html").stat().st_size > 10_000
    with pytest.raises(ValueError, match="expected one field"):
        data.z.spherule.plot()


def test_the_users_own_matplotlib_stays_as_it_was(data) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    with matplotlib.rc_context({"backend": "svg"}):
        before = dict(matplotlib.rcParams)
        data.z.isel(time=0).spherule.plot(pixels=60)
        assert dict(matplotlib.rcParams) == before
