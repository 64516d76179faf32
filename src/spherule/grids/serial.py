"""Grids as plain values: a name, or the rings themselves where there is none."""

from typing import Any, TypeAlias

from spherule import checks
from spherule.grids.grid import Grid

Plain: TypeAlias = str | dict[str, Any]
_RINGS = ("theta", "nphi", "phi0", "ring_weights")


def as_grid(grid: Grid | str) -> Grid:
    """A grid, which may be given by its name."""
    if not isinstance(grid, str):
        return checks.instance("grid", grid, Grid)
    try:
        return Grid.from_name(grid)
    except ValueError as error:
        raise ValueError(f"grid: {error}") from None


def grid_to_json(grid: Grid) -> Plain:
    """What JSON can hold of a grid, to the last bit."""
    if not grid.name.startswith("rings:"):
        return grid.name
    if grid.whole is not None:
        return {
            "whole": grid_to_json(grid.whole),
            "start": grid.start,
            "stop": grid.start + grid.nrings,
        }
    return {name: getattr(grid, name).tolist() for name in _RINGS}


def grid_from_json(value: Any) -> Grid:
    """The inverse."""
    if isinstance(value, dict):
        if value.keys() == {"whole", "start", "stop"}:
            return grid_from_json(value["whole"]).part(value["start"], value["stop"])
        if value.keys() != set(_RINGS):
            raise ValueError(f"grid: expected {', '.join(_RINGS)}, got {', '.join(value)}")
        return Grid.from_rings(**value, partial=True)  # checked when it was made
    return Grid.from_name(checks.instance("grid", value, str))
