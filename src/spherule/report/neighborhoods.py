"""Pictures of neighborhoods: which keys a query attends to, and with what weights."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from spherule.geometry import Neighborhood
from spherule.geometry.interpolation import nearest_points
from spherule.grids import Grid
from spherule.report.maps import draw_map, facing
from spherule.report.style import pyplot, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


def draw_neighborhood(
    ax: "Axes",
    neighborhood: Neighborhood,
    query_grid: Grid,
    key_grid: Grid,
    at: tuple[float, float],
    *,
    radius: float,
) -> "AxesImage":
    """The keys of the query nearest to `at` (latitude, longitude in degrees) as cells of the globe.

    Colors are weights relative to the largest; dots are the key grid's points, the star is the
    query. The view reaches `radius` radians around it.
    """
    query = query_at(query_grid, at)
    here = query_grid.xyz[query]
    center = (
        float(np.degrees(np.arcsin(np.clip(here[2], -1, 1)))),
        float(np.degrees(np.arctan2(here[1], here[0]))),
    )
    keys, weights = neighborhood.indices(query), neighborhood.weights(query)
    values = np.full(key_grid.size, np.nan)
    values[keys] = weights / weights.max()
    drawn = draw_map(
        ax,
        values.reshape(key_grid.shape),
        key_grid,
        projection="orthographic",
        center=center,
        limits=(0, 1),
        cmap="YlGnBu",
        pixels=2000,
    )
    turned = key_grid.xyz @ facing(*center).T
    near = turned[turned[:, 0] > 0]
    ax.scatter(near[:, 1], near[:, 2], s=2.5, color="0.6", linewidths=0, zorder=2)
    members = turned[keys]
    ax.scatter(
        members[:, 1], members[:, 2], s=7, color="white", edgecolors="0.2", linewidths=0.5, zorder=3
    )
    ax.plot(0, 0, "*", color="tab:red", markersize=11, markeredgecolor="white", zorder=4)
    side = min(np.sin(min(radius, np.pi / 2)), 1.0) * 1.02
    ax.set(xlim=(-side, side), ylim=(-side, side))
    return drawn


def query_at(grid: Grid, at: tuple[float, float]) -> int:
    """The point of the grid nearest to a latitude and longitude in degrees."""
    latitude, longitude = at
    if not -90 <= latitude <= 90:
        raise ValueError(f"at={at}: the latitude must be in [-90, 90] degrees")
    theta, phi = np.radians([90.0 - latitude]), np.radians([float(longitude)])
    return int(nearest_points(grid, theta, phi)[0])


@styled
def plot_neighborhood(
    path: Path, grid: Grid, cutoff: float, at: tuple[float, float], *, edge_width: float = 0.0
) -> str:
    """Draw one disk on the globe, weighted by quadrature, into a file, and say what it holds."""
    plt = pyplot()
    neighborhood = Neighborhood.disk(grid, grid, cutoff, edge_width=edge_width)
    figure, (globe, near) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    outer = neighborhood.cutoff + neighborhood.edge_width / 2
    draw_neighborhood(globe, neighborhood, grid, grid, at, radius=np.pi / 2)
    drawn = draw_neighborhood(near, neighborhood, grid, grid, at, radius=1.5 * outer)
    figure.colorbar(drawn, ax=near, shrink=0.8, label="weight of a key, relative to the largest")
    keys = neighborhood.indices(query_at(grid, at))
    edge = f", edge {edge_width:g} rad wide" if edge_width else ""
    place = f"{abs(at[0]):g}°{'NS'[at[0] < 0]} {abs(at[1]):g}°{'EW'[at[1] < 0]}"
    figure.suptitle(
        f"{grid.name}: {keys.size} keys within {cutoff:g} rad of {place}{edge}", fontsize=14
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, dpi=130)
    counts = neighborhood.counts()
    return f"{keys.size} keys here; {counts.min()} to {counts.max()} over the grid"


@styled
def plot_panels(path: Path) -> None:
    """The paper's comparison near a pole: a planar window, a disk without weights, with weights,
    and with a soft edge.
    """
    plt = pyplot()
    grid, at = Grid.gauss(48, 96), (78.0, 20.0)
    cutoff = grid.cutoff(7)
    panels = [
        ("planar 7x7 window", Neighborhood.window((48, 96), (7, 7))),
        ("geodesic disk, unweighted", Neighborhood.disk(grid, grid, cutoff, weighted=False)),
        ("quadrature weights", Neighborhood.disk(grid, grid, cutoff)),
        ("and a soft edge", Neighborhood.disk(grid, grid, cutoff, edge_width=grid.spacing)),
    ]
    figure, axes = plt.subplots(1, 4, figsize=(15, 4.4), layout="constrained")
    for ax, (title, neighborhood) in zip(axes, panels, strict=True):
        drawn = draw_neighborhood(ax, neighborhood, grid, grid, at, radius=1.7 * cutoff)
        ax.set_title(title, fontsize=13)
    figure.colorbar(drawn, ax=axes, shrink=0.8, label="weight, relative to the largest")
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, dpi=110)
