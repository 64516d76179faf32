import math
import pickle
import warnings

import numpy as np
import pytest

from spherule import Grid
from spherule.geometry.arcs import disk_table
from spherule.geometry.neighborhood import Neighborhood
from spherule.grids.names import Names

GRIDS = ["gauss:8x16", "clenshaw_curtis:9x15", "equiangular:8x12", "fejer:6x13@0.5", "H3", "O5"]


def distances(a: Grid, b: Grid) -> np.ndarray:
    chord = np.linalg.norm(a.xyz[:, None] - b.xyz[None], axis=-1)
    return 2 * np.arcsin(np.minimum(chord / 2, 1))


def members(neighborhood: Neighborhood) -> np.ndarray:
    dense = np.zeros((neighborhood.queries, neighborhood.keys), int)
    for i in range(neighborhood.queries):
        np.add.at(dense[i], neighborhood.indices(i), 1)
    return dense


@pytest.mark.parametrize("cutoff", [0.7, 1.3, 2.6, math.pi])
@pytest.mark.parametrize("key", GRIDS)
@pytest.mark.parametrize("query", GRIDS)
def test_members_are_the_points_within_the_cutoff(query: str, key: str, cutoff: float) -> None:
    query, key = Grid.from_name(query), Grid.from_name(key)
    neighborhood = Neighborhood.disk(query, key, cutoff)
    dense, distance = members(neighborhood), distances(query, key)
    assert dense.max() == 1
    clear = np.abs(distance - cutoff) > 1e-9
    assert np.array_equal(dense[clear], (distance <= cutoff)[clear])
    assert np.array_equal(dense.sum(axis=1), neighborhood.counts())
    assert np.array_equal(members(neighborhood.transpose), dense.T)


@pytest.mark.parametrize("cutoff", [0.7, 0.9, 2.0, math.pi])
def test_single_points_count_the_keys_of_rings_of_other_lengths(cutoff: float) -> None:
    query = Grid.from_rings(
        [0.0, 0.9, 1.8, 3.0], [1, 1, 1, 1], [0.0, 2.0, 0.3, 1.0], [1.0] * 4, partial=True
    )
    key = Grid.from_rings(
        [0.1, 0.6, 1.2, 1.7, 2.2, 2.9], [3, 11, 19, 16, 8, 1], [0.0] * 6, [1.0] * 6, partial=True
    )
    found = Neighborhood.disk(query, key, cutoff).counts()
    assert np.array_equal(found, (distances(query, key) <= cutoff).sum(axis=1))


@pytest.mark.parametrize("degrees", [2, 4, 10])
def test_points_on_the_rim_are_inside_on_both_sides(degrees: int) -> None:
    grid = Grid.clenshaw_curtis(91, 180)
    table = Neighborhood.disk(grid, grid, math.radians(degrees)).table
    steps = degrees // 2
    rings = np.arange(91)
    assert np.array_equal(table.first, np.maximum(rings - steps, 0))
    last = table.first + np.diff(table.pairs) - 1
    assert np.array_equal(last, np.minimum(rings + steps, 90))
    # Along the equator too, where the rim lies on points of the same ring.
    around = Neighborhood.disk(grid, grid, math.radians(degrees)).indices(45 * 180 + 90)
    on_ring = around[around // 180 == 45] % 180
    assert np.array_equal(on_ring, np.arange(90 - steps, 91 + steps))


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.filterwarnings("ignore:cutoff=.* is below the spacing")
def test_every_point_is_in_its_own_disk(name: str) -> None:
    grid = Grid.from_name(name)
    # Unweighted, since a pole of weight 0 would be a disk without keys.
    tiny = Neighborhood.disk(grid, grid, 1e-3, weighted=False)
    assert np.all(np.diag(members(tiny)) == 1)


@pytest.mark.parametrize("name", ["gauss:8x16", "H3", "O5"])
def test_turning_a_grid_onto_itself_turns_the_members(name: str) -> None:
    grid = Grid.from_name(name)
    dense = members(Neighborhood.disk(grid, grid, 0.9))
    symmetry = np.gcd.reduce(grid.nphi)
    columns = np.arange(grid.size) - np.repeat(grid.ringstart, grid.nphi)
    nphi, start = np.repeat(grid.nphi, grid.nphi), np.repeat(grid.ringstart, grid.nphi)
    turned = start + (columns + nphi // symmetry) % nphi
    assert np.array_equal(dense[np.ix_(turned, turned)], dense)


def test_members_do_not_depend_on_where_longitude_begins() -> None:
    a, b = Grid.gauss(10, 20), Grid.octahedral(5)
    dense = members(Neighborhood.disk(a, b, 0.8))
    for angle in (0.1, 1 / 3, 2.5):
        a2, b2 = (
            Grid.from_rings(g.theta, g.nphi, g.phi0 + angle, g.ring_weights, partial=True)
            for g in (a, b)
        )
        assert np.array_equal(members(Neighborhood.disk(a2, b2, 0.8)), dense)


def test_large_disks_stay_small() -> None:
    grid = Grid.clenshaw_curtis(721, 1440)
    neighborhood = Neighborhood.disk(grid, grid, math.radians(2))
    arrays = [a for a in vars(neighborhood.table).values() if isinstance(a, np.ndarray)]
    assert sum(a.nbytes for a in arrays) < 1e6


@pytest.mark.parametrize(("query", "key"), [("gauss:8x16", "gauss:8x16"), ("O5", "gauss:9x14")])
def test_soft_edge_falls_linearly_with_distance(query: str, key: str) -> None:
    query, key = Grid.from_name(query), Grid.from_name(key)
    cutoff, h = 0.9, 0.4
    neighborhood = Neighborhood.disk(query, key, cutoff, edge_width=h)
    distance = distances(query, key)
    taper = np.clip((cutoff + h / 2 - distance) / h, 0, 1)
    for i in range(query.size):
        dense = np.zeros(key.size)
        dense[neighborhood.indices(i)] = neighborhood.weights(i)
        np.testing.assert_allclose(dense, taper[i] * key.weights.reshape(-1), atol=1e-12)


def test_disk_that_reaches_the_antipode_is_the_whole_sphere() -> None:
    grid = Grid.gauss(6, 12)
    whole = Neighborhood.disk(grid, grid, 3.0, edge_width=0.4)
    assert whole == Neighborhood.disk(grid, grid, math.pi)
    assert np.all(whole.counts() == grid.size)
    np.testing.assert_allclose(whole.weights(0), grid.weights.reshape(-1), rtol=1e-14)


@pytest.mark.parametrize("key", GRIDS)
@pytest.mark.parametrize("number", [1, 31, 33, 2100])
def test_whole_gives_every_key_to_any_number_of_queries(number: int, key: str) -> None:
    grid = Grid.from_name(key)
    whole = Neighborhood.whole(number, grid)
    assert (whole.queries, whole.keys) == (number, grid.size)
    assert np.all(whole.counts() == grid.size)
    assert np.all(whole.transpose.counts() == number)
    assert whole.transpose.transpose == whole
    for i in (0, number - 1):
        np.testing.assert_allclose(whole.weights(i), grid.weights.reshape(-1), rtol=1e-14)


def test_whole_has_few_rings_that_64_bits_can_hold() -> None:
    """Whatever number there is."""
    for number in (2**12, 2**20, 2**24):
        table = Neighborhood.whole(number, Grid.healpix(16)).table
        reach = table.query.nphi[:, None].astype(object) * table.key.nphi * 2**28
        assert np.array_equal(reach.ravel(), table.reach)
        assert len(table.query.nphi) <= max(64, number // 2**15)


@pytest.mark.parametrize("shape", [(9, 5), (8, 16), (1, 7), (2, 3)])
def test_window_is_shifted_inside(shape: tuple[int, int]) -> None:
    window = Neighborhood.window(shape, (7, 7))
    fit = [min(7, n if n % 2 else n - 1) for n in shape]
    for i in range(shape[0] * shape[1]):
        spans = []
        for at, n, w in zip(divmod(i, shape[1]), shape, fit, strict=True):
            start = min(max(at - w // 2, 0), n - w)
            spans.append(np.arange(start, start + w))
        expected = (spans[0][:, None] * shape[1] + spans[1]).ravel()
        assert np.array_equal(window.indices(i), expected)
    assert np.array_equal(members(window.transpose), members(window).T)


def test_equal_neighborhoods_are_one_object() -> None:
    a, b = (Neighborhood.disk(Grid.gauss(8, 16), Grid.healpix(4), 0.7) for _ in range(2))
    assert a is b
    assert hash(a) == hash(pickle.loads(pickle.dumps(a)))
    assert a == pickle.loads(pickle.dumps(a))
    assert a != Neighborhood.disk(Grid.gauss(8, 16), Grid.healpix(4), 0.7, weighted=False)
    assert a.transpose.transpose == a


@pytest.mark.parametrize(
    "neighborhood",
    [
        Neighborhood.disk(Grid.gauss(8, 16), Grid.octahedral(4), 1 / 3 + 0.4, edge_width=0.1),
        Neighborhood.disk(Grid.fejer(6, 12), Grid.healpix(2), 1.0, weighted=False),
        Neighborhood.window((8, 16), (7, 7)),
        Neighborhood.whole(70, Grid.octahedral(4)),
        Neighborhood.whole(8, Grid.healpix(2), weighted=False),
    ],
    ids=lambda n: n.name,
)
def test_a_name_says_all(neighborhood: Neighborhood, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spherule.geometry.neighborhood._known", Names(recent=1))
    assert Neighborhood.from_name(neighborhood.name) == neighborhood


GRID = Grid.gauss(8, 16)


@pytest.mark.parametrize("cutoff", [0.0, -0.1, math.nan, math.inf])
def test_cutoff_must_be_an_angle(cutoff: float) -> None:
    with pytest.raises(ValueError, match=r"cutoff=.* must be (in \(0, pi\]|finite)"):
        Neighborhood.disk(GRID, GRID, cutoff)


def test_cutoff_in_degrees_gets_a_hint() -> None:
    with pytest.raises(ValueError, match=r"looks like degrees: use math.radians\(7.5\)"):
        Neighborhood.disk(GRID, GRID, 7.5)


@pytest.mark.parametrize("edge_width", [-0.1, 1.1, math.nan])
def test_edge_wider_than_the_disk_is_refused(edge_width: float) -> None:
    with pytest.raises(ValueError, match="edge_width"):
        Neighborhood.disk(GRID, GRID, 0.5, edge_width=edge_width)


def test_rings_are_counted_from_zero_to_the_last() -> None:
    near = Neighborhood.disk(Grid.gauss(4, 8), Grid.gauss(3, 6), 1.2)
    assert near.ring(3)[0].shape[0] == 8
    for r in (-1, 4):
        with pytest.raises(ValueError, match="r="):
            near.ring(r)


def test_disk_without_keys_is_refused() -> None:
    with pytest.raises(ValueError, match="no key of positive weight"):
        Neighborhood.disk(GRID, Grid.healpix(1), 0.3)


def test_pole_of_weight_zero_alone_is_no_key() -> None:
    grid = Grid.equiangular(8, 16)
    with pytest.raises(ValueError, match="no key of positive weight"):
        Neighborhood.disk(grid, grid, 0.05)


def test_cutoff_below_the_spacing_warns_with_counts() -> None:
    with pytest.warns(UserWarning, match=r"below the spacing .* 1 keys at least"):
        Neighborhood.disk(GRID, GRID, 0.01)


def test_a_cutoff_of_one_spacing_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Neighborhood.disk(GRID, GRID, GRID.spacing)
    with pytest.warns(UserWarning, match="below the spacing"):
        Neighborhood.disk(GRID, GRID, np.nextafter(GRID.spacing, 0))


def test_rings_are_as_fine_as_64_bits_allow_and_no_finer() -> None:
    def ring(points: int) -> Grid:
        return Grid.from_rings([1.5], [points], [0.3], [1.0], partial=True)

    with pytest.raises(ValueError, match="too fine"):
        disk_table(ring(2**16), ring(2**17), 1e-3, 0)
    for nq, nk in ((2**16, 2**17 - 1), (2**17 - 1, 2**16)):
        table = disk_table(ring(nq), ring(nk), 1e-3, 0)
        queries = np.array([0, 1, nq // 2, nq - 1])
        first, count = table.arcs(0, queries, 0, 0)
        middle = (first + (count - 1) / 2) % nk
        away = np.abs(middle / nk - queries / nq)
        assert np.minimum(away, 1 - away).max() <= 1 / nk
        assert abs(count.mean() / (2e-3 / np.sin(1.5) / (2 * np.pi) * nk) - 1) < 0.05


@pytest.mark.parametrize("size", [(6, 7), (0, 3), (7,)])
@pytest.mark.usefixtures("unchecked")
def test_window_needs_a_middle(size: tuple) -> None:
    with pytest.raises(ValueError, match="size="):
        Neighborhood.window((8, 16), size)


def test_fine_grids_meet_only_the_rings_of_their_disks_or_are_refused() -> None:
    fine = Grid.fejer(30000, 60000)
    table = disk_table(fine, fine, 7 * np.pi / 30000, 0.0)
    inside = slice(7, -7)
    assert (np.diff(table.pairs)[inside] == 15).all()
    assert (table.first[inside] == np.arange(30000 - 14)).all()
    with pytest.raises(ValueError, match=r"cutoff=1 .*481777050 pairs of rings.* 33554432 at most"):
        Neighborhood.disk(fine, fine, 1.0)
