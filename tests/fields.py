"""Files as users have them, made from shallow water: ERA5's conventions, or cells of an O grid."""

from typing import Any, Literal

import numpy as np
import torch

from spherule.grids import Grid
from spherule.pde import ShallowWater
from spherule.pde.initial_states import random_states


def era5_like(kind: Literal["era5", "cells"], *, times: int) -> Any:
    """Hourly `z` (geopotential) and `t` (vorticity, renamed), `orography`, and `place`, which is
    x + 2 y + 3 z everywhere. ERA5: latitudes descend, longitudes run from -180, float32.
    """
    import xarray as xr

    grid = Grid.clenshaw_curtis(13, 24) if kind == "era5" else Grid.octahedral(6)
    solver = ShallowWater(grid, lmax=5, dtype=torch.float32)
    generator = torch.Generator().manual_seed(1)
    state = random_states(5, 1, preset="public", generator=generator).to(torch.complex64)
    run = solver.trajectory(state, 450.0, 8 * (times - 1), every=8)
    fields = torch.cat([solver.fields(state), *(solver.fields(s) for s in run)]).numpy()
    place = (grid.xyz @ [1.0, 2.0, 3.0]).reshape(grid.shape).astype(np.float32)
    ground = np.maximum(0, 1000 * grid.xyz[:, 0]).reshape(grid.shape).astype(np.float32)
    time = np.datetime64("2000-01-01T00", "ns") + np.arange(times) * np.timedelta64(1, "h")
    if kind == "era5":
        space = ("latitude", "longitude")
        latitude = 90 - np.degrees(grid.theta)
        longitude = np.arange(24) * 15.0
        coordinates = {"latitude": latitude, "longitude": longitude, "time": time}
    else:
        space = ("cell",)
        coordinates = {
            "lat": ("cell", 90 - np.degrees(grid.point_theta)),
            "lon": ("cell", np.degrees(grid.point_phi)),
            "time": time,
        }
    data = xr.Dataset(
        {
            "z": (("time", *space), fields[:, 0], {"units": "m2 s-2", "long_name": "geopotential"}),
            "t": (("time", *space), fields[:, 1], {"units": "K"}),
            "orography": (space, ground, {"units": "m"}),
            "place": (space, place),
        },
        coords=coordinates,
        attrs={"title": "a file of one's own"},
    )
    if kind == "era5":
        data = data.assign_coords(longitude=(data.longitude + 180) % 360 - 180).sortby("longitude")
    else:
        order = np.random.default_rng(0).permutation(grid.size)
        data = data.isel(cell=order)
    return data
