from collections.abc import Iterator

import numpy as np
import pytest

from spherule import Grid
from spherule.geometry import tiles
from spherule.geometry.neighborhood import Neighborhood

DISKS = [
    ("gauss:8x16", "gauss:8x16", 0.9),
    ("equiangular:8x16", "gauss:5x9", 1.0),
    ("gauss:5x9", "equiangular:8x16", 1.0),
    ("O4", "H2", 1.0),
    ("H4", "H4", 0.5),
    ("clenshaw_curtis:9x20", "fejer:6x12@0.5", 0.9),
    ("gauss:4x40", "gauss:4x40", 3.14159),
    ("lobatto:5x24", "lobatto:5x24", 0.8),
]
NEIGHBORHOODS = [
    *(Neighborhood.disk(Grid.from_name(q), Grid.from_name(k), cutoff) for q, k, cutoff in DISKS),
    Neighborhood.window((9, 20), (5, 7)),
    Neighborhood.window((3, 1), (3, 3)),
    Neighborhood.whole(70, Grid.octahedral(4)),
    Neighborhood.whole(9, Grid.gauss(3, 6), weighted=False),
]


def programs(cut: tiles.Tiles) -> Iterator[tuple[list[tuple[int, int]], list[list[tuple]]]]:
    """As kernels walk: centers and, window by window, the points listed, as (ring, place, bits);
    None for a center that is not there.
    """
    sizes, steps = np.divmod(cut.rings[:, 1], 2**16)
    # Bits of all words in one number.
    shifts = 32 * np.arange(cut.bits.shape[1], dtype=object)[:, None]
    bits = (cut.bits.view(np.uint32).astype(object) << shifts).sum(axis=1)
    for tile, turn, first, last, _ in cut.programs.tolist():
        centers = []
        for ring, place in (divmod(spot, 2**16) for spot in cut.centers[tile].tolist()):
            place += turn * int(steps[ring])
            centers.append((ring, place) if place < sizes[ring] else None)
        assert any(centers)
        windows = []
        for window in range(first, last):
            windows.append([])
            for spot, needed in zip(cut.windows[window].tolist(), bits[window], strict=True):
                ring, place = divmod(spot, 2**16)
                place += turn * int(steps[ring])
                # Kernels subtract the size of the ring once at most.
                assert 0 <= place < 2 * sizes[ring]
                windows[-1].append((ring, place % int(sizes[ring]), needed))
            assert any(needed for *_, needed in windows[-1])
        yield centers, windows


def members(cut: tiles.Tiles, queries: int) -> list[list[int]]:
    """The keys of each query."""
    found: list[list[int]] = [[] for _ in range(queries)]
    origin = cut.rings[:, 0].tolist()
    for centers, windows in programs(cut):
        for c, center in enumerate(centers):
            if center is None:
                continue
            query = origin[center[0]] + center[1]
            for window in windows:
                found[query] += [origin[r] + p for r, p, bits in window if bits >> c & 1]
    return found


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS, ids=str)
def test_every_query_meets_each_of_its_keys_once(
    neighborhood: Neighborhood, transposed: bool
) -> None:
    neighborhood = neighborhood.transpose if transposed else neighborhood
    rings = [neighborhood.ring(r) for r in range(neighborhood.table.query.nphi.size)]
    expected = [
        sorted(i for i, w in zip(*row, strict=True) if w > -np.inf)
        for ring in rings
        for row in zip(*(a.tolist() for a in ring), strict=True)
    ]
    for block, window in ((16, 32), (4, 8), (64, 32)):
        found = members(tiles.cut(neighborhood, block, window), neighborhood.queries)
        assert [sorted(keys) for keys in found] == expected


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("names", [d[:2] for d in DISKS[:6]], ids=str)
def test_weights_by_the_numbers_are_those_of_the_neighborhood(
    names: tuple[str, str], transposed: bool
) -> None:
    """As kernels work them out: distances from places and the numbers of a pair of rings."""
    query, key = (Grid.from_name(name) for name in names)
    cutoff, width = 1.0, 0.4
    disk = Neighborhood.disk(query, key, cutoff, edge_width=width)
    disk = disk.transpose if transposed else disk
    cut = tiles.cut(disk, 16, 32)
    weights = np.full((disk.queries, disk.keys), -np.inf)
    theta, phi0, step = cut.angles.T.astype(float) * 2 * np.pi / 2.0**64
    bias, sine = cut.numbers.T.astype(float)
    for centers, windows in programs(cut):
        for c, (r, i) in ((c, center) for c, center in enumerate(centers) if center):
            for s, j, bits in (slot for window in windows for slot in window):
                if not bits >> c & 1:
                    continue
                east = phi0[r] + i * step[r] - phi0[s] - j * step[s]
                square = np.sin((theta[r] - theta[s]) / 2) ** 2
                square += sine[r] * sine[s] * np.sin(east / 2) ** 2
                distance = 2 * np.arcsin(np.sqrt(np.clip(square, 0, 1)))
                taper = np.clip((cutoff - distance) / width + 0.5, 0, 1)
                with np.errstate(divide="ignore"):
                    weight = bias[r] + bias[s] + np.log2(taper)
                weights[cut.rings[r, 0] + i, cut.rings[s, 0] + j] = weight
    wanted = np.full_like(weights, -np.inf)
    for i in range(disk.queries):
        with np.errstate(divide="ignore"):
            wanted[i, disk.indices(i)] = np.log2(disk.weights(i))
    inside = wanted > -8  # nearly nothing is left of the others, and of their digits
    assert inside.sum() > 100
    assert np.abs(weights[inside] - wanted[inside]).max() < 1e-3


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("gauss:64x128", 0.58),
        ("gauss:128x256", 0.62),
        ("clenshaw_curtis:91x180", 0.58),
        ("H8", 0.34),
        ("H32", 0.36),
        ("O16", 0.36),
        ("O48", 0.38),
    ],
)
def test_products_are_useful_and_no_program_is_much_longer_than_the_mean(
    name: str, share: float
) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    cut = tiles.cut(disk, 16, 32)
    assert disk.counts().sum() >= share * cut.work.sum() * 16 * 32
    assert cut.work.max() <= 1.5 * cut.work.mean()
    # Those with the longest come first.
    assert np.all(np.diff(cut.work) <= 0)
    tables = (cut.programs, cut.centers, cut.windows, cut.bits, cut.rings, cut.numbers, cut.angles)
    # Far from a list of all neighbors, which would be 4 bytes for each of them.
    assert sum(t.nbytes for t in tables) < 0.35 * 4 * disk.counts().sum()


def test_parts_of_a_split_tile_cover_it() -> None:
    grid = Grid.gauss(128, 256)
    cut = tiles.cut(Neighborhood.disk(grid, grid, grid.cutoff(7)), 16, 32)
    assert cut.parts > 0
    split = cut.programs[cut.programs[:, 4] >= 0]
    split = split[np.argsort(split[:, 4])]
    assert split[:, 4].tolist() == list(range(cut.parts))
    for tile, turn, first, last in cut.splits.tolist():
        parts = split[first:last]
        assert np.all(parts[:, :2] == [tile, turn])
        assert np.all(parts[1:, 2] == parts[:-1, 3])
    # All windows are met in each of the 16 turns.
    assert cut.work.sum() == 16 * len(cut.windows)


@pytest.mark.parametrize("name", ["gauss:32x64", "H8", "O16"])
def test_estimate_counts_windows_nearly(name: str) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    for size in ((16, 32), (64, 32)):
        made = tiles.cut(disk, *size).work.sum()
        assert abs(tiles.estimate(disk.table, *size) / made - 1) < 0.25


def test_rings_too_fine_for_the_tables_are_refused() -> None:
    neighborhood = Neighborhood.window((1, 50000), (1, 3))
    with pytest.raises(ValueError, match="fewer than 32768"):
        tiles.cut(neighborhood, 16, 32)


@pytest.mark.parametrize("neighborhood", NEIGHBORHOODS, ids=str)
def test_every_query_is_the_center_of_one_tile(neighborhood: Neighborhood) -> None:
    cut = tiles.cut(neighborhood, 16, 32)
    sizes, steps = np.divmod(cut.rings[:, 1], 2**16)
    found = []
    for tile, turn in sorted({(tile, turn) for tile, turn, *_ in cut.programs.tolist()}):
        ring, place = np.divmod(cut.centers[tile], 2**16)
        place = place + turn * steps[ring]
        there = place < sizes[ring]
        found += (cut.rings[ring, 0] + place)[there].tolist()
    assert sorted(found) == list(range(neighborhood.queries))
