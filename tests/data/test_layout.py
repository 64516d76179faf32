"""A part of a user's fields is read alone."""

import numpy as np
import pytest

from spherule import Grid
from spherule.data.layout import Layout
from tests.fields import era5_like

xr = pytest.importorskip("xarray")

from xarray.backends import BackendArray  # noqa: E402
from xarray.core import indexing  # noqa: E402


class Recorded(BackendArray):
    """An array in a file, which remembers the points that were read."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.read = np.zeros(values.shape, bool)

    def __getitem__(self, key):
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._get)

    def _get(self, key):
        # One axis after the other, as HDF5 and Zarr take lists of places.
        index = [np.atleast_1d(np.arange(n)[k]) for k, n in zip(key, self.shape, strict=True)]
        self.read[np.ix_(*index)] = True
        single = tuple(i for i, k in enumerate(key) if np.ndim(k) == 0 and not isinstance(k, slice))
        return self.values[np.ix_(*index)].squeeze(single)


def file_of(kind: str) -> tuple[Recorded, "xr.Dataset"]:
    """Fields as files have them: rows from the south, columns from anywhere, cells in any order."""
    if kind in ("north", "south", "rolled"):
        grid = Grid.clenshaw_curtis(13, 24)
        latitude, longitude = 90 - np.degrees(grid.theta), np.arange(24) * 15.0
        if kind == "south":
            latitude = latitude[::-1]
        if kind == "rolled":
            longitude = longitude - 180
        dims = ("latitude", "longitude")
        coordinates = {"latitude": latitude, "longitude": longitude}
    else:
        grid = Grid.octahedral(6) if kind == "cells" else Grid.healpix(4)
        order = np.arange(grid.size)
        if kind == "shuffled":
            order = np.random.default_rng(0).permutation(grid.size)
        latitude, longitude = 90 - np.degrees(grid.point_theta), np.degrees(grid.point_phi)
        dims = ("cell",)
        coordinates = {"lat": (dims, latitude[order]), "lon": (dims, longitude[order])}
    shape = (3, *grid.shape)
    array = Recorded(np.random.default_rng(1).standard_normal(shape).astype(np.float32))
    variable = xr.Variable(("time", *dims), indexing.LazilyIndexedArray(array))
    return array, xr.Dataset({"z": variable}, coordinates)


@pytest.mark.parametrize("rings", [slice(0, 4), slice(4, 5), slice(5, 11), slice(6, 6)])
@pytest.mark.parametrize("kind", ["north", "south", "rolled", "cells", "shuffled"])
def test_rings_are_read_alone(kind: str, rings: slice) -> None:
    array, data = file_of(kind)
    layout = Layout.of(data)
    part = layout.part(rings)
    mine = part.read(data["z"].isel(time=1))
    count = int(layout.grid.nphi[rings].sum())
    assert array.read.sum() == count
    assert mine.shape == part.grid.shape
    whole = layout.read(data["z"].isel(time=1)).ravel()
    start = int(layout.grid.nphi[: rings.start].sum())
    assert np.array_equal(mine.ravel(), whole[start : start + count])


def test_what_is_resampled_on_the_way_is_the_same_part() -> None:
    _, data = file_of("north")
    for target in (Grid.gauss(8, 16), Grid.healpix(4)):
        layout = Layout.of(data, target=target)
        part = layout.part(slice(2, 5))
        whole = layout.read(data["z"])
        mine = part.read(data["z"])
        assert mine.shape == (3, *part.grid.shape)
        points = target.points(2, 5)
        assert np.array_equal(mine.reshape(3, -1), whole.reshape(3, -1)[:, points])


def renamed(data, north: dict, east: dict):
    """Rows and columns under other names, known by their attributes."""
    there = data.rename(latitude="y", longitude="x")
    return there.assign_coords(y=("y", there.y.values, north), x=("x", there.x.values, east))


@pytest.mark.parametrize(
    ("north", "east"),
    [
        ({"standard_name": "latitude"}, {"standard_name": "longitude"}),
        ({"units": "degree_north"}, {"units": "degree_east"}),
        ({"units": "degreesN"}, {"units": "degrees_E"}),
    ],
)
def test_coordinates_are_known_by_what_cf_says_of_them(north: dict, east: dict) -> None:
    data = era5_like("era5", times=2)
    found = renamed(data, north, east)
    assert np.array_equal(Layout.of(found).read(found.place), Layout.of(data).read(data.place))
    capitals = data.rename(latitude="Latitude", longitude="LON")
    assert Layout.of(capitals).grid == Layout.of(data).grid


@pytest.mark.parametrize("transposed", [False, True])
def test_a_mesh_of_rows_and_columns_is_one_though_it_is_rounded(transposed: bool) -> None:
    data = era5_like("era5", times=2)
    rng = np.random.default_rng(0)
    lat, lon = np.meshgrid(data.latitude, data.longitude, indexing="ij")
    noise = rng.uniform(-1e-5, 1e-5, (2, *lat.shape))
    dims = ("y", "x")
    mesh = data.rename(latitude="y", longitude="x").drop_vars(["y", "x"])
    order = dims[::-1] if transposed else dims
    lat, lon = (a.T if transposed else a for a in (lat + noise[0], lon + noise[1]))
    mesh = mesh.assign_coords(nav_lat=(order, lat), nav_lon=(order, lon))
    assert np.array_equal(Layout.of(mesh).read(mesh.place), Layout.of(data).read(data.place))
