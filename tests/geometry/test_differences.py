import math

import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.geometry.differences import shear_entries, slope_entries
from spherule.geometry.interpolation import Entries
from tests.oracles import SMALL_GRIDS, random_coeffs


def applied(entries: Entries, u: np.ndarray) -> np.ndarray:
    return np.bincount(entries.row, entries.weight * u.ravel()[entries.column], minlength=u.size)


@pytest.mark.parametrize(
    ("family", "order"),
    [
        ("fejer:{}x{}@0.5", 1.9),
        ("gauss:{}x{}", 1.8),
        ("clenshaw_curtis:{}x{}", 1.9),
        ("equiangular:{}x{}", 1.9),
    ],
)
def test_differences_are_derivatives_at_every_point_poles_included(family, order) -> None:
    coeffs = random_coeffs(4)
    errors = []
    for n in (32, 64):
        # With an odd number of longitudes, half a turn does not meet a point.
        grid = Grid.from_name(family.format(n, 2 * n + 1))
        u = ops.isht(coeffs, grid).numpy()
        east, north = ops.gradient(coeffs, grid).numpy().reshape(2, -1)
        off_poles = np.sin(grid.point_theta) > 1e-9
        slope, shear = applied(slope_entries(grid), u), applied(shear_entries(grid), u)
        # At a pole the limit has no sign that anything depends on.
        error = np.where(off_poles, shear - east, np.abs(shear) - np.abs(east))
        errors.append(max(np.abs(slope + north).max(), np.abs(error).max()))
    assert math.log2(errors[0] / errors[1]) > order


@pytest.mark.parametrize("name", [*SMALL_GRIDS, "clenshaw_curtis:3x1", "gauss:1x2", "lobatto:2x3"])
def test_constants_have_no_differences(name: str) -> None:
    grid = Grid.from_name(name)
    for entries in (slope_entries(grid), shear_entries(grid)):
        assert np.abs(applied(entries, np.ones(grid.size))).max() < 1e-10
        places = entries.row * grid.size + entries.column
        assert np.unique(places).size == places.size
        assert torch.isfinite(torch.tensor(entries.weight)).all()
