"""Files that others publish: which grid they are on, their times, units and values."""

from pathlib import Path

import numpy as np
import pytest

from spherule.data.field_files import choose, open_fields
from spherule.data.layout import Layout
from spherule.data.regrid import regrid
from spherule.data.times import time_axis
from spherule.grids import Grid

# What libraries say of each other, and of files as old as these.
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:Ambiguous reference date"
)
xr = pytest.importorskip("xarray")
CFGRIB, PYGRIB = "cfgrib-0.9.15.1", "pygrib-2.1.8"
SAMPLES, GRIB = "tests/sample-data/", "sampledata/"
IRIS = "iris_sample_data-2.5.2"
IRIS_DATA = "iris_sample_data/sample_data/"

GLOBAL = {
    "ERA5": (CFGRIB, SAMPLES + "era5-levels-members.grib", "t@850", "clenshaw_curtis:61x120", "K"),
    "reduced": (CFGRIB, SAMPLES + "reduced_gg.grib", "u10", "N48", "m s**-1"),
    "gauss": (CFGRIB, SAMPLES + "regular_gg_pl.grib", "u10", "gauss:96x192", "m s**-1"),
    "coarse": (CFGRIB, SAMPLES + "regular_ll_sfc.grib", "skt", "clenshaw_curtis:37x72", "K"),
    "model levels": (CFGRIB, SAMPLES + "regular_gg_ml_g2.grib", "t@51", "gauss:160x320", "K"),
    "TIGGE": (PYGRIB, GRIB + "ecmwf_tigge.grb", "cape", "N200", "J kg**-1"),
    "CFSR": (PYGRIB, GRIB + "flux.grb", "sp", "gauss:94x192", "Pa"),
    "GFS": (PYGRIB, GRIB + "gfs.grb", "gh@500", "clenshaw_curtis:73x144", "gpm"),
}


@pytest.mark.parametrize("which", GLOBAL)
def test_global_files_are_recognized_and_values_stay_where_they_are(which: str, real) -> None:
    package, name, variable, grid, units = GLOBAL[which]
    data = open_fields(real(package, name))
    chosen = choose(data, [variable], name)[variable]
    layout = Layout.of(data)
    assert layout.grid.name == grid
    assert chosen.attrs["units"] == units
    values = layout.read(chosen)
    assert np.isfinite(values).all()
    back = layout.unread(values, [str(dim) for dim in chosen.dims])
    assert np.array_equal(back, chosen.values.astype(np.float32))


REFUSED = {
    "regional": (IRIS, IRIS_DATA + "A1B_north_america.nc", "take the whole globe"),
    "tropics only": (IRIS, IRIS_DATA + "ostia_monthly.nc", "fit no grid"),
    "ocean": (IRIS, IRIS_DATA + "orca2_votemper.nc", "curvilinear.*CDO's remapbil or xESMF"),
    "rotated": (IRIS, IRIS_DATA + "rotated_pole.nc", "no coordinate latitude.*rotated grid"),
    "Lambert": (CFGRIB, SAMPLES + "lambert_grid.grib", "curvilinear.*CDO's remapbil or xESMF"),
    "harmonics": (CFGRIB, SAMPLES + "spherical_harmonics.grib", "fields in harmonics"),
    "caps left out": (PYGRIB, GRIB + "reduced_latlon_surface.grib2", "leave out a cap.*--repair"),
}


@pytest.mark.parametrize("which", REFUSED)
def test_what_is_no_grid_of_the_sphere_is_refused_with_what_to_do(which: str, real) -> None:
    package, name, words = REFUSED[which]
    with pytest.raises(ValueError, match=words):
        Layout.of(open_fields(real(package, name)))


def test_waves_on_reduced_rows_without_the_poles_are_rings_of_their_own(real) -> None:
    data = open_fields(real(PYGRIB, GRIB + "reduced_latlon_surface.grib2"))
    layout = Layout.of(data, repair=True)
    assert (layout.grid.nrings, layout.grid.size) == (443, 313362)
    assert layout.match.note.startswith("443 rings of their own")
    covered = np.sin(np.radians(81.18)) + np.sin(np.radians(78.3))
    assert layout.grid.weights.sum() == pytest.approx(2 * np.pi * covered, rel=1e-12)
    values = layout.read(data.swh)
    assert np.array_equal(layout.unread(values, ["values"]), data.swh.values, equal_nan=True)


def test_all_variables_of_many_kinds_of_levels_are_there(real) -> None:
    """cfgrib opens them one by one only; a missing one would be missed silently."""
    data = open_fields(real(PYGRIB, GRIB + "gfs.grb"))
    temperature = choose(data, ["t@500"], "gfs")["t@500"]
    assert temperature.shape == (73, 144)
    assert 220 < float(temperature.mean()) < 270
    assert {"t", "t_surface", "t2m", "prmsl", "u10", "t_tropopause"} <= set(data.data_vars)
    winds = open_fields(real(CFGRIB, SAMPLES + "uv_on_different_levels.grib"))
    chosen = choose(winds, ["u@850", "v@700"], "uv")
    assert list(chosen) == ["u@850", "v@700"]
    assert str(time_axis(winds, "uv").name) == "valid_time"


def test_nothing_is_written_beside_a_file_that_is_read(
    real, tmp_path: Path, caplog, monkeypatch
) -> None:
    path = tmp_path / "reduced.grib"
    path.write_bytes(real(CFGRIB, SAMPLES + "reduced_gg.grib").read_bytes())
    monkeypatch.chdir(tmp_path)
    for name in (path, Path("reduced.grib")):
        assert open_fields(name).u10.isnull().sum() == 0
    assert list(tmp_path.iterdir()) == [path]
    assert not caplog.records


def test_missing_values_stay_missing(real) -> None:
    data = open_fields(real(CFGRIB, SAMPLES + "fields_with_missing_values.grib"))
    values = Layout.of(data).read(data.t2m)
    assert np.isnan(values).sum() == np.isnan(data.t2m.values).sum() == 21699
    with np.errstate(invalid="ignore"):
        sst = open_fields(real("cartopy-0.26.0", "lib/cartopy/data/netcdf/HadISST1_SST_update.nc"))
    layout = Layout.of(sst)
    assert layout.grid.shape == (180, 360)
    field = layout.read(sst.sst)[0]
    assert 0.25 < np.isnan(field).mean() < 0.4
    east = layout.grid.point_phi.reshape(180, 360)[90]
    assert np.isnan(field[90, np.abs(np.degrees(east) - 20).argmin()]), "Congo"
    assert np.isfinite(field[90, np.abs(np.degrees(east) - 220).argmin()]), "Pacific"


def test_conservative_regridding_keeps_the_mean_of_real_fields(real, tmp_path: Path) -> None:
    source = real(CFGRIB, SAMPLES + "reduced_gg.grib")
    regrid(source, tmp_path / "out.nc", Grid.from_name("H16"), method="conservative")
    before, after = open_fields(source), open_fields(tmp_path / "out.nc")
    means = []
    for data in (before, after):
        layout = Layout.of(data)
        field = layout.read(data.u10).astype(np.float64).ravel()
        means.append((field * layout.grid.weights).sum() / (4 * np.pi))
    assert means[1] == pytest.approx(means[0], abs=1e-6)
    assert after.u10.attrs["units"] == "m s**-1"
