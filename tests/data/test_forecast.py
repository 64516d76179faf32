"""Users' own fields: any order of coordinates, gaps in time, missing values, and back again."""

from pathlib import Path

import numpy as np
import pytest
import torch

from spherule.data.field_files import open_fields
from spherule.data.forecast import ForecastDataset
from spherule.data.layout import Layout
from spherule.grids import Grid
from tests.fields import era5_like

xr = pytest.importorskip("xarray")


@pytest.fixture(scope="module")
def stores(tmp_path_factory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("fields")
    paths = {}
    for kind, suffix in (("era5", ".nc"), ("cells", ".zarr")):
        data = era5_like(kind, times=12)
        paths[kind] = directory / f"{kind}{suffix}"
        if suffix == ".nc":
            data.to_netcdf(paths[kind], engine="h5netcdf")
        else:
            pytest.importorskip("zarr", reason="Zarr 3 needs Python 3.11")
            data.to_zarr(paths[kind], consolidated=False)
    return paths


@pytest.mark.parametrize(("kind", "grid"), [("era5", "clenshaw_curtis:13x24"), ("cells", "O6")])
def test_the_grid_is_recognized_and_values_lie_at_their_places(stores, kind: str, grid) -> None:
    data = ForecastDataset(stores[kind], ["z"], lead="1h")
    assert data.grid.name == grid
    # The file holds a field that is known at every place: x + 2 y + 3 z at time 0.
    known = data.layout.read(open_fields(stores[kind])["place"])
    assert np.allclose(known.ravel(), data.grid.xyz @ [1.0, 2.0, 3.0], atol=1e-5)


@pytest.mark.parametrize("kind", ["era5", "cells"])
def test_what_is_written_back_is_what_was_read(stores, kind: str) -> None:
    original = open_fields(stores[kind])
    layout = Layout.of(original)
    for name in ("z", "place"):
        variable = original[name]
        back = layout.unread(layout.read(variable), list(variable.dims))
        assert np.array_equal(back, variable.values)


def test_targets_lie_a_lead_later_and_gaps_are_left_out(tmp_path: Path) -> None:
    data = era5_like("era5", times=12).isel(time=[0, 1, 2, 3, 6, 7, 8, 9, 10, 11])
    data.to_netcdf(tmp_path / "gap.nc", engine="h5netcdf")
    found = ForecastDataset(tmp_path / "gap.nc", ["z"], lead="2h", leads=2)
    starts = [found.time(i) for i in range(len(found))]
    hours = [(t - data.time.values[0]) / np.timedelta64(1, "h") for t in starts]
    assert hours == [6.0, 7.0]
    first = [found.statistics.denormalize(t, found.grid) for t in found[1]]
    for k, state in enumerate(first):
        wanted = found.layout.read(data["z"].sel(time=starts[1] + np.timedelta64(2 * k, "h")))
        assert np.allclose(state[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("lead", ["1h", "2h", "3step", "5h"])
def test_how_far_samples_can_be_followed_is_the_most_that_can_be_asked_for(
    lead: str, tmp_path: Path
) -> None:
    data = era5_like("era5", times=24).isel(time=[*range(7), *range(9, 20), *range(21, 24)])
    data.to_netcdf(tmp_path / "gap.nc", engine="h5netcdf")
    for part in ((0.0, 1.0), (0.2, 0.7), (0.6, 1.0), (0.95, 1.0)):
        whole = ForecastDataset(tmp_path / "gap.nc", ["z"], lead=lead)
        longest = whole.longest(part)
        if longest:
            ForecastDataset(tmp_path / "gap.nc", ["z"], lead=lead, leads=longest, part=part)
        with pytest.raises(ValueError, match="in a row"):
            ForecastDataset(tmp_path / "gap.nc", ["z"], lead=lead, leads=longest + 1, part=part)


def test_statistics_are_those_of_the_part_by_area(stores) -> None:
    data = ForecastDataset(stores["era5"], ["z", "t"], lead="1h", part=(0.0, 0.5))
    weights = torch.tensor(data.grid.weights / data.grid.weights.sum())
    states = torch.stack([torch.tensor(data.state(t)) for t in range(5)]).double()
    mean = (states * weights).sum((-2, -1)).mean(0)
    std = ((states - mean[:, None, None]) ** 2 * weights).sum((-2, -1)).mean(0).sqrt()
    assert torch.allclose(torch.tensor(data.statistics.mean, dtype=torch.float64), mean)
    assert torch.allclose(torch.tensor(data.statistics.std, dtype=torch.float64), std)
    later = ForecastDataset(stores["era5"], ["z", "t"], lead="1h", part=(0.5, 1.0))
    assert data.statistics != later.statistics
    # The last target of one part is the first input of the next, whose targets are all its own.
    assert data.time(len(data) - 1) + np.timedelta64(1, "h") == later.time(0)


def test_missing_values_are_refused_by_name_time_and_count_or_kept(tmp_path: Path) -> None:
    data = era5_like("era5", times=6)
    data["t"][2, 3, 4:7] = np.nan
    data.to_netcdf(tmp_path / "nan.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match=r"t has 3 missing values of 312 at 2000-01-01T02"):
        ForecastDataset(tmp_path / "nan.nc", ["z", "t"], lead="1h")
    kept = ForecastDataset(tmp_path / "nan.nc", ["z", "t"], lead="1h", missing="mask")
    assert int(kept[2][0].isnan().sum()) == 3
    assert all(np.isfinite(kept.statistics.std))


def test_static_fields_are_standardized(stores) -> None:
    data = ForecastDataset(stores["cells"], ["z"], static=["orography"], lead="1h")
    weights = torch.tensor(data.grid.weights / data.grid.weights.sum(), dtype=torch.float32)
    assert data.static.shape == (1, *data.grid.shape)
    assert (data.static * weights).sum().item() == pytest.approx(0.0, abs=1e-5)
    assert (data.static**2 * weights).sum().item() == pytest.approx(1.0, rel=1e-4)


def test_bad_input_is_named(stores, tmp_path: Path, unchecked) -> None:
    era5 = stores["era5"]
    with pytest.raises(FileNotFoundError, match=r"no\.nc does not exist"):
        open_fields(tmp_path / "no.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(ValueError, match=r"text\.nc cannot be read"):
        open_fields(tmp_path / "text.nc")
    with pytest.raises(ValueError, match=r"no variable 'q'; it has .*z"):
        ForecastDataset(era5, ["q"], lead="1h")
    for lead, words in (("6", "6h, 30min"), ("-1h", "positive"), ("90min", "smallest step")):
        with pytest.raises(ValueError, match=words):
            ForecastDataset(era5, ["z"], lead=lead)
    data = era5_like("era5", times=4)
    with pytest.raises(ValueError, match="latitude or lat"):
        Layout.of(data.drop_vars("latitude"))
    data.assign_coords(time=np.arange(4.0)).to_netcdf(tmp_path / "n.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="hours since"):
        ForecastDataset(tmp_path / "n.nc", ["z"], lead="1h")
    data["z"] = data["z"] * 0 + 1
    data.to_netcdf(tmp_path / "flat.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="z is the same everywhere"):
        ForecastDataset(tmp_path / "flat.nc", ["z"], lead="1h")


def test_grids_of_the_file_are_those_of_the_library() -> None:
    assert Grid.match(*(era5_like("era5", times=2)[c].values for c in ("latitude", "longitude")))
