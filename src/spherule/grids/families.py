"""The families of grids: their names, and the rings of each member."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spherule import checks
from spherule.grids import healpix, quadrature, reduced
from spherule.grids.rings import MOST_POINTS, Rings

# A kilometer between rings.
_MOST_RINGS = 2**15


class _Regular(NamedTuple):
    """The rule in theta, and the fewest rings it makes sense with."""

    rule: Callable[[int], quadrature.Rule]
    least: int


_REGULAR = {
    "gauss": _Regular(quadrature.gauss, 1),
    "equiangular": _Regular(quadrature.equiangular, 2),
    "clenshaw_curtis": _Regular(quadrature.clenshaw_curtis, 2),
    "fejer": _Regular(quadrature.fejer, 1),
    "lobatto": _Regular(quadrature.lobatto, 2),
}
REGULAR_FAMILIES = tuple(_REGULAR)

_REGULAR_NAME = re.compile(r"([a-z_]+):([0-9]+)x([0-9]+)(?:@([0-9]*\.?[0-9]+(?:e-[0-9]+)?))?")
_REDUCED_NAME = re.compile(r"([HONF])([0-9]+)")


@dataclass(frozen=True)
class Member:
    """One grid of a family: a regular one with `(nlat, nlon)`, or H, O, N with one size."""

    family: str
    sizes: tuple[int, ...]
    offset: float = 0.0

    @property
    def name(self) -> str:
        if self.family not in _REGULAR:
            return f"{self.family}{self.sizes[0]}"
        suffix = f"@{float(self.offset)!r}" if self.offset else ""
        return f"{self.family}:{self.sizes[0]}x{self.sizes[1]}{suffix}"

    def rings(self) -> Rings:
        """Checked: sizes that the family does not have are refused."""
        if self.family in _REGULAR:
            nlat, nlon = self.sizes
            return _regular_rings(self.family, nlat, nlon, self.offset)
        return _REDUCED[self.family](*self.sizes)

    def coarser(self) -> "Member | None":
        """Half the resolution in the same family, if there is one; N grids become O grids."""
        halves = tuple((n + 1) // 2 for n in self.sizes)
        least = _REGULAR[self.family].least if self.family in _REGULAR else 1
        if halves == self.sizes or halves[0] < least:
            return None
        return Member("O" if self.family == "N" else self.family, halves, self.offset)


def parse(name: str) -> Member:
    """The member of a name such as gauss:64x128, fejer:180x360@0.5, H64, O96, N320, F90."""
    if regular := _REGULAR_NAME.fullmatch(name):
        family, nlat, nlon, offset = regular.groups()
        if family in _REGULAR:
            return Member(family, (int(nlat), int(nlon)), float(offset or 0))
    if short := _REDUCED_NAME.fullmatch(name):
        family, n = short[1], int(short[2])
        return Member("gauss", (2 * n, 4 * n)) if family == "F" else Member(family, (n,))
    expected = ", ".join(f"{family}:64x128" for family in _REGULAR)
    raise ValueError(
        f"name={name!r} is not a grid; expected one of {expected}, "
        "H64 (HEALPix), O96 (octahedral), N320 (reduced Gaussian), F90 (full Gaussian)"
    )


def _regular_rings(family: str, nlat: int, nlon: int, offset: float) -> Rings:
    rule, least = _REGULAR[family]
    nlat = checks.integer("nlat", nlat, low=least, high=_MOST_RINGS)
    nlon = checks.integer("nlon", nlon, low=1, high=MOST_POINTS // nlat)
    if not 0 <= offset < 1:
        raise ValueError(f"offset={offset} must be in [0, 1): a part of a cell in longitude")
    theta, weights = rule(nlat)
    cell = 2 * np.pi / nlon
    return Rings(theta, np.full(nlat, nlon), np.full(nlat, offset * cell), weights * cell)


def _healpix_rings(nside: int) -> Rings:
    nside = checks.integer("nside", nside, low=1, high=_MOST_RINGS // 4)
    theta, nphi, phi0 = healpix.rings(nside)
    return Rings(theta, nphi, phi0, np.full(theta.size, np.pi / (3 * nside**2)))


def _octahedral_rings(n: int) -> Rings:
    n = checks.integer("n", n, low=1, high=_MOST_RINGS // 2)
    return _gaussian(reduced.octahedral(n))


def _original_rings(n: int) -> Rings:
    return _gaussian(reduced.original(checks.integer("n", n, low=1)))


def _gaussian(nphi: NDArray[np.int64]) -> Rings:
    theta, weights = quadrature.gauss(nphi.size)
    return Rings(theta, nphi, np.zeros(nphi.size), weights * 2 * np.pi / nphi)


_REDUCED: dict[str, Callable[[int], Rings]] = {
    "H": _healpix_rings,
    "O": _octahedral_rings,
    "N": _original_rings,
}
