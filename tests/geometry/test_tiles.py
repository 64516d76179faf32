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
]


def members(cut: tiles.Tiles, queries: int) -> list[list[int]]:
    """The keys of each query, as kernels walk: program by program, window by window."""
    found: list[list[int]] = [[] for _ in range(queries)]
    for point, column, size, first, last, _ in cut.programs.tolist():
        for pair, low, high in cut.windows[first:last].tolist():
            assert 0 < high - low <= cut.window
            origin, other, chunk, repeat, step, _ = cut.pairs[pair].tolist()
            for i in range(column, min(column + cut.block, size)):
                start, count = cut.arcs[chunk + i % repeat].tolist()
                start += i // repeat * step
                # Kernels subtract the size of the ring twice at most.
                assert start >= 0
                assert start + count <= 3 * other
                places = range(max(low, start), min(high, start + count))
                found[point + i - column] += [origin + place % other for place in places]
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
    for block, window in ((16, 32), (4, 8)):
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
    for point, column, size, first, last, _ in cut.programs.tolist():
        for pair, low, high in cut.windows[first:last].tolist():
            origin, other, chunk, repeat, step, turn = cut.pairs[pair].tolist()
            bias, meridian, parallel, unit, rest = cut.numbers[pair].astype(float)
            for i in range(column, min(column + cut.block, size)):
                start, count = cut.arcs[chunk + i % repeat].tolist()
                start += i // repeat * step
                place = np.arange(max(low, start), min(high, start + count)) % other
                x = (place + turn) % other * size - i * other
                x = (x + size * other // 2) % (size * other) - size * other // 2
                square = meridian + parallel * np.sin((x * unit + rest) / 2) ** 2
                distance = 2 * np.arcsin(np.sqrt(np.clip(square, 0, 1)))
                taper = np.clip((cutoff - distance) / width + 0.5, 0, 1)
                with np.errstate(divide="ignore"):
                    weights[point + i - column, origin + place] = bias + np.log2(taper)
    wanted = np.full_like(weights, -np.inf)
    for i in range(disk.queries):
        with np.errstate(divide="ignore"):
            wanted[i, disk.indices(i)] = np.log2(disk.weights(i))
    inside = wanted > -8  # nearly nothing is left of the others, and of their digits
    assert inside.sum() > 100
    assert np.abs(weights[inside] - wanted[inside]).max() < 1e-3


@pytest.mark.parametrize(
    "name", ["gauss:64x128", "gauss:128x256", "clenshaw_curtis:91x180", "H8", "O16"]
)
def test_no_program_is_much_longer_than_the_mean_and_the_longest_come_first(name: str) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    cut = tiles.cut(disk, 16, 32)
    assert cut.work.max() <= 2.4 * cut.work.mean()
    assert np.all(np.diff(cut.work) <= 0)
    tables = (cut.programs, cut.windows, cut.pairs, cut.numbers, cut.arcs)
    # Far from a list of all neighbors, which would be 4 bytes for each of them.
    assert sum(t.nbytes for t in tables) < 0.35 * 4 * disk.counts().sum()


def test_parts_of_a_split_tile_cover_it() -> None:
    grid = Grid.gauss(128, 256)
    cut = tiles.cut(Neighborhood.disk(grid, grid, grid.cutoff(7)), 16, 32)
    assert cut.parts > 0
    split = cut.programs[cut.programs[:, 5] >= 0]
    split = split[np.argsort(split[:, 5])]
    assert split[:, 5].tolist() == list(range(cut.parts))
    for point, column, size, first, last in cut.splits.tolist():
        parts = split[first:last]
        assert np.all(parts[:, :3] == [point, column, size])
        assert np.all(parts[1:, 3] == parts[:-1, 4])
    whole = cut.programs[cut.programs[:, 5] < 0]
    assert whole[:, 4].sum() - whole[:, 3].sum() + np.sum(split[:, 4] - split[:, 3]) == len(
        cut.windows
    )


@pytest.mark.parametrize("name", ["gauss:32x64", "H8", "O16"])
def test_estimate_counts_windows_nearly(name: str) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    for size in ((16, 32), (64, 32)):
        made = len(tiles.cut(disk, *size).windows)
        assert abs(tiles.estimate(disk.table, *size) / made - 1) < 0.25


def test_rings_too_fine_for_the_tables_are_refused() -> None:
    neighborhood = Neighborhood.window((1, 50000), (1, 3))
    with pytest.raises(ValueError, match="32-bit"):
        tiles.cut(neighborhood, 16, 32)
