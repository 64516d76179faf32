"""Geometry is made when it is first asked for, and kept: by many threads at once too."""

import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

from spherule import Grid, nn, ops
from spherule.geometry.neighborhood import Neighborhood

NAMES = ["gauss:7x14", "clenshaw_curtis:8x15", "fejer:6x13@0.5", "H3", "O5"]


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def disk(case: tuple[str, float]) -> Neighborhood:
    grid = Grid.from_name(case[0])
    return Neighborhood.disk(grid, grid, case[1])


def outcome(case: tuple[str, float]) -> list[Tensor]:
    grid, cutoff = Grid.from_name(case[0]), case[1]
    field = torch.linspace(-1.0, 1.0, grid.xyz.shape[0]).reshape(grid.shape)
    rows = field.reshape(1, 1, -1, 1).expand(1, 1, -1, 4)
    layer = nn.DiscoConv(1, 1, grid, radii=1, angles=1, cutoff=cutoff, bias=False)
    torch.nn.init.ones_(layer.weight)
    return [
        ops.neighborhood_attention(rows, rows, rows, disk(case)),
        ops.sht(field, grid, grid.lmax),
        layer(field[None, None]).detach(),
        nn.Resample(grid, Grid.healpix(2))(field[None, None]),
    ]


@pytest.mark.usefixtures("hurried")
def test_threads_leave_filters_of_warnings_alone() -> None:
    grid, before = Grid.gauss(4, 8), list(warnings.filters)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ops.resample(torch.ones(4, 8), grid, Grid.healpix(2)), range(200)))
    assert warnings.filters == before


@pytest.mark.usefixtures("hurried")
def test_threads_that_ask_for_the_same_geometry_at_once_get_the_same() -> None:
    cases = [(name, 0.9 + 0.01 * k) for name in NAMES for k in range(4)]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(outcome, [case for case in cases for _ in range(4)]))
        disks = list(pool.map(disk, [(name, 1.23) for name in NAMES for _ in range(50)]))
    assert len({id(made) for made in disks}) == len(NAMES)
    alone = [outcome(case) for case in cases for _ in range(4)]
    for found, wanted in zip(together, alone, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
