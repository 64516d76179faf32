"""Forecasts: what models say, what happened, and how far they are apart."""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike, NDArray

from spherule.grids import Grid
from spherule.report.globe.scene import Frames, Globe, Variable

TRUTH = "truth"


def forecast_globe(
    title: str,
    grid: Grid,
    variables: Sequence[str],
    units: Sequence[str],
    hours: ArrayLike,
    sources: Mapping[str, NDArray],
) -> Globe:
    """Fields (hours, variables, *grid.shape) in their own units, by the names of models and
    `truth`; errors against the truth are shown too.
    """
    shown = [
        Variable(
            name,
            grid,
            {source: fields[:, v] for source, fields in sources.items()},
            unit,
            TRUTH if TRUTH in sources else None,
        )
        for v, (name, unit) in enumerate(zip(variables, units, strict=True))
    ]
    return Globe(title, shown, Frames.hours(hours))
