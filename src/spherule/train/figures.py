"""What a report shows, as values: a task says what there is to see, the report draws it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid
from spherule.train.scene import Globe


@dataclass(frozen=True, eq=False)
class Panel:
    """One field `(*grid.shape)` of a map; all of a kind share one color scale."""

    title: str
    values: NDArray
    kind: Literal["field", "error"] = "field"


@dataclass(frozen=True, eq=False)
class Maps:
    """Rows of maps of one variable, each on two views of the sphere."""

    title: str
    label: str
    """Of the color bar: what it is and in which units."""
    grid: Grid
    rows: Sequence[Sequence[Panel]]
    earth: bool = False
    """Whether coasts belong there."""


@dataclass(frozen=True, eq=False)
class RingCurve:
    """Values (panels, rings) against the latitudes of a grid."""

    title: str
    grid: Grid
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ByLatitude:
    """Curves against latitude, a panel a variable."""

    panels: Sequence[str]
    curves: Sequence[RingCurve]
    ylabel: str


@dataclass(frozen=True, eq=False)
class SpectralCurves:
    """Power of each degree (panels, degrees): the truth, a prediction, and its error."""

    title: str
    truth: NDArray[np.float64]
    prediction: NDArray[np.float64]
    error: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Spectra:
    """Power spectra, a panel a variable."""

    panels: Sequence[str]
    curves: Sequence[SpectralCurves]


@dataclass(frozen=True, eq=False)
class ImageColumn:
    """Images (samples, rows, columns) of numbers, or (samples, rows, columns, 3) of colors."""

    title: str
    images: NDArray
    scale: str = ""
    """Which of the figure's scales; none for colors."""


@dataclass(frozen=True, eq=False)
class ColorScale:
    """Limits, color map and label of numbers drawn as colors."""

    low: float
    high: float
    colors: str
    label: str


@dataclass(frozen=True, eq=False)
class Images:
    """Samples in rows, what is seen of them in columns."""

    columns: Sequence[ImageColumn]
    scales: dict[str, ColorScale]
    legend: Sequence[tuple[str, tuple[int, int, int]]] = ()
    """Names of colors (red, green, blue from 0 to 255)."""


@dataclass(frozen=True, eq=False)
class Bars:
    """A value from 0 to 1 of each category, for each model."""

    categories: Sequence[str]
    values: dict[str, NDArray[np.float64]]
    ylabel: str


@dataclass(frozen=True, eq=False)
class Folded:
    """Figures that are seen when they are asked for."""

    summary: str
    figures: Sequence["Figure"]


Figure: TypeAlias = Maps | ByLatitude | Spectra | Images | Bars | Globe | Folded


@dataclass(frozen=True, eq=False)
class Section:
    """A part of a page."""

    title: str
    text: str
    figures: Sequence[Figure]
