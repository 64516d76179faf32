"""`spherule plot`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from spherule.grids import Grid


@dataclass(frozen=True)
class PlotNeighborhood:
    """Draw the disk of keys around a point on the globe, with their weights."""

    cutoff: float
    """Radius of the disk in radians."""
    grid: str = "O32"
    """Name of the grid: gauss:64x128, H32, O32, N80 ..."""
    at: str = "60,30"
    """Latitude and longitude of the query in degrees."""
    edge_width: float = 0.0
    """Width of the soft edge in radians."""
    out: Path = Path("neighborhood.png")
    """The picture."""

    def run(self) -> None:
        from spherule.report.neighborhoods import plot_neighborhood

        summary = plot_neighborhood(
            self.out,
            Grid.from_name(self.grid),
            self.cutoff,
            _place(self.at),
            edge_width=self.edge_width,
        )
        print(f"wrote {self.out}: {summary}")


@dataclass(frozen=True)
class PlotPanels:
    """Draw the paper's comparison near a pole: planar window, disk, weights, soft edge."""

    out: Path = Path("panels.png")
    """The picture."""

    def run(self) -> None:
        from spherule.report.neighborhoods import plot_panels

        plot_panels(self.out)
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class PlotRooms:
    """Draw procedural rooms: colors, labels, depth, and the view of a tilted camera."""

    rooms: tuple[int, ...] = (18, 14, 9, 29)
    """Which rooms of the seed, side by side."""
    more: tuple[int, ...] = (0, 12, 6, 10, 23, 20, 24, 25)
    """Rooms of which only the colors are shown, below."""
    seed: int = 0
    """Seed of the rooms."""
    size: str = "256x512"
    """Rows and columns of each panorama."""
    out: Path = Path("rooms.png")
    """The picture."""

    def run(self) -> None:
        from spherule.report.rooms import plot_rooms

        plot_rooms(self.out, self.rooms, more=self.more, seed=self.seed, size=self.size)
        print(f"wrote {self.out}")


@dataclass(frozen=True)
class PlotGrids:
    """Draw one random field on several grids, with its spectrum."""

    out: Path = Path("grids.png")
    """The picture."""
    seed: int = 0
    """Seed of the random field."""

    def run(self) -> None:
        from spherule.report.gallery import draw_gallery

        print(f"wrote {draw_gallery(self.out, seed=self.seed)}")


@dataclass(frozen=True)
class Plot:
    """Pictures of the geometry and of data."""

    what: (
        Annotated[PlotNeighborhood, tyro.conf.subcommand("neighborhood", prefix_name=False)]
        | Annotated[PlotPanels, tyro.conf.subcommand("panels", prefix_name=False)]
        | Annotated[PlotGrids, tyro.conf.subcommand("grids", prefix_name=False)]
        | Annotated[PlotRooms, tyro.conf.subcommand("rooms", prefix_name=False)]
    ) = field()

    def run(self) -> None:
        self.what.run()


def _place(text: str) -> tuple[float, float]:
    try:
        latitude, longitude = (float(number) for number in text.split(","))
    except ValueError:
        raise ValueError(
            f"--at {text!r}: expected latitude,longitude in degrees, such as 60,30"
        ) from None
    return latitude, longitude
