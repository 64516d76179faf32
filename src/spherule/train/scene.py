"""What a globe shows: variables on ring grids, frame by frame."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spherule.checks import instance
from spherule.grids import Grid

LONG = 120
"""Hours from which on people count days."""


@dataclass(frozen=True)
class Frames:
    """What the slider runs over: times, samples, or places to click at."""

    labels: tuple[str, ...] = ("",)
    name: str = "time"
    places: tuple[tuple[float, float], ...] = ()
    """Latitude and longitude of each frame in degrees, where a click chooses the nearest."""

    def __post_init__(self) -> None:
        if not self.labels:
            raise ValueError("labels: expected at least one frame")
        if self.places and len(self.places) != len(self.labels):
            raise ValueError(f"places: expected {len(self.labels)}, got {len(self.places)}")

    @classmethod
    def hours(cls, hours: ArrayLike) -> "Frames":
        """Hours from the start of a forecast, or days where they are many."""
        values = np.asarray(hours, dtype=np.float64)
        unit, each = ("d", 24) if values.max() >= LONG else ("h", 1)
        return cls(tuple(f"{round(value / each, 2):g} {unit}" for value in values))

    def every(self, stride: int) -> "Frames":
        """Each `stride`-th of them."""
        return Frames(self.labels[::stride], self.name, self.places[::stride])


@dataclass(frozen=True, eq=False)
class Variable:
    """A quantity on a grid, from one source or several: model, truth, ...

    Each source is `(frames, *grid.shape)`, or `grid.shape` for what stands still; NaN is drawn
    gray. Where `truth` names a source, the error of each other is shown too. With `classes`, names
    and colors, values are places in that list.
    """

    name: str
    grid: Grid
    sources: Mapping[str, NDArray]
    units: str = ""
    truth: str | None = None
    classes: Sequence[tuple[str, tuple[int, int, int]]] = ()
    limits: tuple[float, float] | None = None
    """Ends of the color map; by default the extremes."""

    def __post_init__(self) -> None:
        instance("grid", self.grid, Grid)
        if not self.sources:
            raise ValueError(f"{self.name}: expected at least one source")
        if self.truth is not None and self.truth not in self.sources:
            raise ValueError(f"truth={self.truth!r} is not one of {', '.join(self.sources)}")
        for source, values in self.sources.items():
            space = len(self.grid.shape)
            if values.ndim not in (space, space + 1) or values.shape[-space:] != self.grid.shape:
                wanted = ", ".join(map(str, self.grid.shape))
                raise ValueError(
                    f"{self.name}, {source}: expected (frames, {wanted}) or ({wanted}) on "
                    f"{self.grid!r}, got {values.shape}"
                )

    def frames(self, source: str) -> NDArray:
        """(frames, points), with one frame for what stands still."""
        return self.sources[source].reshape(-1, self.grid.size)


@dataclass(frozen=True, eq=False)
class Image:
    """A photograph on a grid, uint8 (frames, *grid.shape, 3), below what is drawn over it."""

    grid: Grid
    rgb: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if self.rgb.dtype != np.uint8 or self.rgb.shape[1:] != (*self.grid.shape, 3):
            raise ValueError(
                f"rgb: expected uint8 (frames, {', '.join(map(str, self.grid.shape))}, 3), got "
                f"{self.rgb.dtype} {self.rgb.shape}"
            )


@dataclass(frozen=True, eq=False)
class Globe:
    """A page's worth: variables that share their frames, seen from outside or, `inside`, from the
    center of the sphere.
    """

    title: str
    variables: Sequence[Variable]
    frames: Frames = field(default_factory=Frames)
    notes: Sequence[str] = ()
    """Sentences below the picture: what is shown, and what is not."""
    image: Image | None = None
    inside: bool = False
    earth: bool = False
    """Whether coasts belong there."""

    def __post_init__(self) -> None:
        if not self.variables:
            raise ValueError("variables: expected at least one")
        count = len(self.frames.labels)
        for variable in self.variables:
            for source in variable.sources:
                if len(variable.frames(source)) not in (1, count):
                    raise ValueError(
                        f"{variable.name}, {source}: expected {count} frames or one, got "
                        f"{len(variable.frames(source))}"
                    )
        if self.image is not None and len(self.image.rgb) not in (1, count):
            raise ValueError(f"image: expected {count} frames or one, got {len(self.image.rgb)}")


def forecast_globe(
    title: str,
    grid: Grid,
    variables: Sequence[str],
    units: Sequence[str],
    frames: Frames,
    sources: Mapping[str, NDArray],
    *,
    earth: bool = False,
) -> Globe:
    """Fields (frames, variables, *grid.shape) in their own units, by the names of models and
    `truth`; errors against the truth are shown too.
    """
    truth = "truth" if "truth" in sources else None
    shown = [
        Variable(name, grid, {s: fields[:, v] for s, fields in sources.items()}, unit, truth)
        for v, (name, unit) in enumerate(zip(variables, units, strict=True))
    ]
    return Globe(title, shown, frames, earth=earth)
