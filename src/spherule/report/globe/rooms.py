"""Panoramas from the inside: look around in the room, with labels or depth over it."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from spherule.data.panoramas import CLASSES, COLOURS
from spherule.grids import Grid
from spherule.report.globe.forecasts import TRUTH
from spherule.report.globe.scene import Frames, Globe, Image, Variable


def room_globe(
    title: str,
    grid: Grid,
    rgb: NDArray[np.uint8],
    *,
    labels: Mapping[str, NDArray] | None = None,
    depth: Mapping[str, NDArray] | None = None,
    names: Sequence[str] = (),
) -> Globe:
    """Photographs (samples, nlat, nlon, 3) with what is known of each pixel, by source: `truth` and
    models. Labels are places in `data.CLASSES`, depth is in metres, NaN where there is none.
    """
    classes = tuple(zip(CLASSES, COLOURS, strict=True))
    variables = []
    if labels:
        variables.append(Variable("label", grid, labels, classes=classes))
    if depth:
        truth = TRUTH if TRUTH in depth else None
        variables.append(Variable("depth", grid, depth, "m", truth))
    frames = Frames(tuple(names) or tuple(f"room {i + 1}" for i in range(len(rgb))), "room")
    return Globe(title, variables, frames, image=Image(grid, rgb), inside=True)
