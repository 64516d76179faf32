"""The basis of DISCO filters around an output point: hats, linear in distance and in azimuth."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spherule.geometry import great_circles

Ints = NDArray[np.int64]
Reals = NDArray[np.float64]

# Below this a hat is 0: points on its rim must not count by an accident of rounding.
_NOTHING = 1e-9


@dataclass(frozen=True)
class Hats:
    """One hat in the center, then `angles` of them at each of `radii` distances, cutoff / (radii +
    1) apart.
    """

    cutoff: float
    radii: int
    angles: int

    def evaluate(self, distance: Reals, azimuth: Reals) -> tuple[Ints, Ints, Reals]:
        """The hats that are not 0 at points: (point, hat, value). At most four cover a point: two
        distances, two azimuths.
        """
        rho = distance * ((self.radii + 1) / self.cutoff)
        sector = azimuth * (self.angles / (2 * math.pi))
        inner, west = np.floor(rho), np.floor(sector)
        points: list[NDArray] = []
        hats: list[NDArray] = []
        values: list[NDArray] = []
        for ring, height in ((inner, 1 - (rho - inner)), (inner + 1, rho - inner)):
            for spoke, share in ((west, 1 - (sector - west)), (west + 1, sector - west)):
                # The center, and every ring of an isotropic basis, is one hat all round.
                round_ = (ring == 0) | (self.angles == 1)
                value = height * np.where(round_, spoke == west, share)
                hat = np.where(ring == 0, 0, 1 + (ring - 1) * self.angles + spoke % self.angles)
                point = np.flatnonzero((value > _NOTHING) & (ring <= self.radii))
                points.append(point)
                hats.append(hat[point].astype(np.int64))
                values.append(value[point])
        return np.concatenate(points), np.concatenate(hats), np.concatenate(values)

    def nearest(self, hat: int, distance: Reals, azimuth: Reals) -> NDArray[np.bool_]:
        """Which of some points lie nearest to the middle of a hat: a point, or of an isotropic one
        a circle. All that are equally near, so that the choice has the symmetries of the grid.
        """
        ring, spoke = divmod(hat - 1, self.angles) if hat else (-1, 0)
        middle = (ring + 1) * self.cutoff / (self.radii + 1)
        turn = 0.0 if self.angles == 1 else azimuth - spoke * 2 * math.pi / self.angles
        away = great_circles.distance(middle, distance, turn)
        return away <= away.min() + _NOTHING
