"""Rings of the user's own: any offsets, any numbers of points."""

import math
import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from spherule import Grid, ops
from spherule.geometry import tiles
from spherule.geometry.filters import Stencil
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.disco import reference as disco_reference
from tests.geometry.test_filters import dense, hats_from_vectors
from tests.geometry.test_neighborhood import distances, members
from tests.geometry.test_tiles import members as tile_members
from tests.ops.test_neighborhood_attention import kernel, reference, results


@st.composite
def rings(draw) -> Grid:
    """Colatitudes not nearer than 0.05 to each other, offsets many turns away."""
    n = draw(st.integers(1, 5))
    places = draw(st.lists(st.integers(0, 62), min_size=n, max_size=n, unique=True))
    theta = np.sort(places) * 0.05 + draw(st.floats(0, 0.04))
    each = st.integers(1, 40)
    alike = draw(st.booleans())
    nphi = [draw(each)] * n if alike else draw(st.lists(each, min_size=n, max_size=n))
    phi0 = draw(st.lists(st.floats(-1e3, 1e3), min_size=n, max_size=n))
    weights = draw(st.lists(st.floats(0.1, 2), min_size=n, max_size=n))
    return Grid.from_rings(theta, nphi, phi0, weights, partial=True)


def disk(query: Grid, key: Grid, cutoff: float, edge: float) -> Neighborhood:
    """The disk, or the whole sphere where it would leave a query without keys."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Neighborhood.disk(query, key, cutoff, edge_width=edge * cutoff)
        except ValueError:
            return Neighborhood.disk(query, key, math.pi)


@settings(max_examples=500)
@given(
    query=rings(),
    key=rings(),
    cutoff=st.floats(0.3, 3.1),
    edge=st.sampled_from([0.0, 0.0, 0.3]),
    masked=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_attention_matches_reference(query, key, cutoff, edge, masked, seed) -> None:
    neighborhood = disk(query, key, cutoff, edge)
    rng = torch.Generator().manual_seed(seed)
    points = (query.size, key.size, key.size, query.size)
    inputs = [torch.randn(1, 2, n, 3, generator=rng, dtype=torch.float64) for n in points]
    mask = torch.rand(key.size, generator=rng) > 0.3 if masked else None
    exact = results(reference.neighborhood_attention, inputs, neighborhood, mask)
    found = results(kernel, inputs, neighborhood, mask)
    for name, value in exact.items():
        limit = 1e-12 * max(value.abs().max().item(), 1e-3)
        assert (found[name] - value).abs().max() <= limit, name


@settings(max_examples=100)
@given(query=rings(), key=rings(), cutoff=st.floats(0.3, 3.1))
def test_members_are_the_points_within_the_cutoff(query, key, cutoff) -> None:
    neighborhood = disk(query, key, cutoff, 0.0)
    held, distance = members(neighborhood), distances(query, key)
    clear = np.abs(distance - neighborhood.cutoff) > 1e-7
    assert np.array_equal(held[clear], (distance <= neighborhood.cutoff)[clear])
    assert np.array_equal(members(neighborhood.transpose), held.T)
    found = tile_members(tiles.cut(neighborhood, 16, 32), query.size)
    assert [sorted(keys) for keys in found] == [np.flatnonzero(row).tolist() for row in held]


@settings(max_examples=500)
@given(
    source=rings(),
    target=rings(),
    cutoff=st.floats(0.8, math.pi),
    shape=st.sampled_from([(1, 1, 1), (3, 2, 1), (2, 5, 1), (4, 4, 4), (4, 2, 2)]),
    seed=st.integers(0, 1000),
)
def test_convolution_matches_reference(source, target, cutoff, shape, seed) -> None:
    try:
        stencil = Stencil.hats(source, target, cutoff=cutoff, radii=1, angles=2)
    except ValueError:
        stencil = Stencil.hats(source, target, cutoff=math.pi, radii=1, angles=2)
    (into, out, groups), rng = shape, torch.Generator().manual_seed(seed)
    x, weight, dy = (
        torch.randn(size, generator=rng, dtype=torch.float64)
        for size in (
            (2, into, *source.shape),
            (out, into // groups, stencil.basis),
            (2, out, *target.shape),
        )
    )
    leaves = [x.requires_grad_(), weight.requires_grad_()]
    by_group = weight.unflatten(0, (groups, -1))
    expected = disco_reference.convolve(x.flatten(2), by_group, stencil, False)[0]
    expected = expected.reshape(dy.shape)
    found = ops.disco(x, weight, stencil)
    pairs = zip(
        (found, *torch.autograd.grad(found, leaves, dy)),
        (expected, *torch.autograd.grad(expected, leaves, dy)),
        strict=True,
    )
    for a, b in pairs:
        assert (a - b).abs().max() <= 1e-12 * max(b.abs().max().item(), 1e-3)


@settings(max_examples=60)
@given(source=rings(), target=rings())
def test_filters_are_those_of_unit_vectors(source, target) -> None:
    try:
        stencil = Stencil.hats(source, target, cutoff=3.0, radii=1, angles=1)
    except ValueError:
        assume(False)  # a hat without points
    expected = hats_from_vectors(stencil)
    # At the rim of a hat a rounding decides whether a point of weight 1e-7 is there.
    np.testing.assert_allclose(dense(stencil.pairs, stencil.basis), expected, atol=1e-6)


HALVES = [math.pi / 2] * 2
"""Areas of two rings of four points."""


@given(grid=rings(), turns=st.sampled_from([-64, -1, 1, 2, 128]))
def test_a_grid_is_the_same_some_turns_away(grid, turns) -> None:
    assert np.all((grid.phi0 >= 0) & (grid.phi0 < 2 * math.pi))
    again = Grid.from_rings(grid.theta, grid.nphi, grid.phi0, grid.ring_weights, partial=True)
    assert (again, again.name, hash(again)) == (grid, grid.name, hash(grid))
    moved = grid.phi0 + turns * 2 * math.pi
    moved = Grid.from_rings(grid.theta, grid.nphi, moved, grid.ring_weights, partial=True)
    np.testing.assert_allclose(moved.xyz, grid.xyz, atol=1e-11)
    whole = Grid.from_rings([1.0, 2.0], [4, 4], [0.0, turns * 2 * math.pi], HALVES)
    assert whole.regular
    assert whole == Grid.from_rings([1.0, 2.0], [4, 4], [-0.0, 0.0], HALVES)


def test_angles_that_look_like_degrees_or_like_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"theta: .* got 30 \.\.\. 150; they look like degrees"):
        Grid.from_rings([30.0, 90.0, 150.0], [4, 8, 4], [0, 0, 0], [1, 1, 1])
    with pytest.raises(ValueError, match=r"phi0: expected longitudes in radians .* got -1e\+07"):
        Grid.from_rings([1.0, 2.0], [4, 4], [0, -1e7], [1, 1])


# What once looped for ever, read out of bounds, or was wrong without a word.
@pytest.mark.parametrize(
    ("arrays", "cutoff"),
    [
        (([1.54, 2.51], [10, 19], [-1.99, 2.91], [1.0, 1.0]), 2.13),
        (([0.8, 1.6, 2.3], [8] * 3, [0, 6.0, 0], [1.0] * 3), 1.5),
        (([0.8, 1.6, 2.3], [8] * 3, [0, 1e5, -1e5], [1.0] * 3), 1.5),
    ],
)
def test_offsets_far_apart(arrays, cutoff) -> None:
    grid = Grid.from_rings(*arrays, partial=True)
    neighborhood = Neighborhood.disk(grid, grid, cutoff)
    inputs = [torch.randn(1, 1, grid.size, 4, dtype=torch.float64) for _ in range(4)]
    exact = results(reference.neighborhood_attention, inputs, neighborhood, None)
    found = results(kernel, inputs, neighborhood, None)
    for name, value in exact.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-12)
