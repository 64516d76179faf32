"""Points per ring of the reduced Gaussian grids: ECMWF's original N and octahedral O grids."""

from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray


def octahedral(n: int) -> NDArray[np.int64]:
    """20, 24, 28, ... points from the pole to the equator and back, 2n rings."""
    north = 20 + 4 * np.arange(n)
    return np.concatenate([north, north[::-1]])


def original(n: int) -> NDArray[np.int64]:
    """The published table of N{n}, 2n rings."""
    if n not in published():
        known = ", ".join(f"N{k}" for k in published())
        raise ValueError(
            f"n={n}: there is no published reduced Gaussian grid N{n}; there are {known}. "
            f"Octahedral grids exist for every n: Grid.octahedral({n})"
        )
    north = published()[n]
    return np.concatenate([north, north[::-1]])


@cache
def published() -> dict[int, NDArray[np.int64]]:
    """The northern halves of all published N grids, by n."""
    tables = {}
    for line in (files(__package__) / "reduced_gaussian.txt").read_text().splitlines():
        if not line.startswith("#"):
            n, runs = line.split(":")
            pairs = [tuple(map(int, f"{run}x1".split("x")[:2])) for run in runs.split()]
            points, repeats = zip(*pairs, strict=True)
            tables[int(n)] = np.repeat(points, repeats)
    return tables
