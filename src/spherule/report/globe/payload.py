"""What the page's script reads: fields thinned to a size, codes, colors, notes."""

import base64
import dataclasses
import math
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid
from spherule.report.earth import coastline_numbers
from spherule.report.globe import encode
from spherule.report.globe.colors import color_maps
from spherule.train.scene import Globe, Image, Variable

ROOM = 3_400_000
"""Bytes of a globe, so that pages stay below 4 MB."""
AROUND = 200_000
"""Bytes of it that are no values: script, still picture, coasts."""
LEAST = 100_000
"""Bytes of deflated values that a globe gets on the fullest page."""
FEWEST = 24
"""Frames that are kept before fields are put on a coarser grid."""
TYPICAL = 0.8
"""Bytes of a deflated value of 12 bits."""
START = (30.0, 0.0)
"""Where the first look falls: latitude and longitude in degrees."""
SLIGHT = 0.15
"""A range that passes 0 by less than this share is not about 0, but undershoots it."""
USUAL = 0.995
"""The share of errors within the ends of their colors: one forecast may blow up at its end."""


@dataclass(frozen=True, eq=False)
class Stored:
    """A variable as it is stored: arrays (frames, points), and sources that are sums of them."""

    variable: Variable
    arrays: list[NDArray]
    sources: list[dict[str, Any]]

    @classmethod
    def of(cls, variable: Variable) -> "Stored":
        """Truth and errors rather than truth and models, so that small errors keep their digits;
        without truth the sources themselves.
        """
        names = list(variable.sources)
        if variable.truth is None or variable.classes:
            arrays = [variable.frames(name) for name in names]
            colors = _colors(variable, arrays)
            return cls(variable, arrays, [_source(n, [i], colors) for i, n in enumerate(names)])
        truth = variable.frames(variable.truth)
        others = [name for name in names if name != variable.truth]
        arrays = [truth, *(variable.frames(n).astype(np.float64) - truth for n in others)]
        colors, errors = _colors(variable, [truth]), _error_colors(arrays[1:])
        sources = [_source(n, [0, i], colors) for i, n in enumerate(others, 1)]
        sources.append(_source(variable.truth, [0], colors))
        named = [f"error of {n}" if len(others) > 1 else "error" for n in others]
        sources += [_source(n, [i], errors) for i, n in enumerate(named, 1)]
        return cls(variable, arrays, sources)

    def codes(self, array: NDArray, steps: int) -> encode.Codes:
        classes, grid = bool(self.variable.classes), self.variable.grid
        values = encode.close(array, grid, classes=classes)
        return (
            encode.Codes(values.astype(np.uint16), 0.0, 1.0)
            if classes
            else encode.quantize(values, steps)
        )

    def cost(self, steps: int, frames: int) -> float:
        """Bytes that so many frames would take, from a few of them."""
        row, total = encode.row_length(self.variable.grid), 0.0
        for array in self.arrays:
            few = array[:: -(-len(array) // 4)]
            taken = len(encode.pack(self.codes(few, steps).codes, row))
            total += taken / len(few) * min(frames, len(array))
        return total


def make_payload(globe: Globe, *, room: int = ROOM) -> dict[str, Any]:
    """The globe as plain values for JSON."""
    frames = len(globe.frames.labels)
    # As base64, deflated values take a third more.
    budget = max(0.75 * (room - AROUND) - _photograph_cost(globe.image) * frames, LEAST)
    globe, notes = _on_fitting_grids(globe, budget)
    stored = [Stored.of(variable) for variable in globe.variables]
    steps, stride = _thinning(stored, frames, budget)
    if stride > 1:
        notes.append(f"One of {stride} frames is shown, of {frames}: the page stays small.")
    notes.append(
        f"Values are quantized to {steps.bit_length()} bits: right to "
        f"1/{2 * steps} of the range of each field. Between grid points they are interpolated."
    )
    grids: dict[Grid, int] = {}
    variables = []
    for each in stored:
        grid = each.variable.grid
        row = encode.row_length(grid)
        variables.append(
            {
                "name": each.variable.name,
                "units": each.variable.units,
                "grid": grids.setdefault(grid, len(grids)),
                "classes": [[name, list(color)] for name, color in each.variable.classes],
                "fields": [each.codes(a[::stride], steps).payload(row) for a in each.arrays],
                "sources": each.sources,
            }
        )
    return {
        "title": globe.title,
        "notes": [*globe.notes, *notes],
        "inside": globe.inside,
        "coast": coastline_numbers() if globe.earth else None,
        "start": (0.0, 0.0) if globe.inside else START,
        "frames": dataclasses.asdict(globe.frames.every(stride)),
        "colors": {n: base64.b64encode(t.tobytes()).decode() for n, t in color_maps().items()},
        "variables": variables,
        "image": None if globe.image is None else _photograph(globe.image, stride, grids),
        "grids": [encode.rings(grid) for grid in grids],
    }


def _on_fitting_grids(globe: Globe, budget: float) -> tuple[Globe, list[str]]:
    """The globe with fields on coarser grids where even a few frames would be too many bytes."""
    fields = sum(len(v.sources) for v in globe.variables)
    points = budget / (TYPICAL * fields * min(FEWEST, len(globe.frames.labels)))
    rings = max(int(math.sqrt(points / 2)), 16)
    variables, notes = [], []
    for v in globe.variables:
        if v.grid.size > points and v.grid.nrings > rings:
            coarse = Grid.gauss(rings, 2 * rings)
            sources = {
                name: encode.coarsen(v.frames(name), v.grid, coarse, classes=bool(v.classes))
                for name in v.sources
            }
            sources = {n: u.reshape(-1, *coarse.shape) for n, u in sources.items()}
            notes.append(f"{v.name} is on {v.grid.name}, shown on {coarse.name}.")
            v = dataclasses.replace(v, grid=coarse, sources=sources)
        variables.append(v)
    return dataclasses.replace(globe, variables=variables), notes


def _thinning(stored: list[Stored], frames: int, budget: float) -> tuple[int, int]:
    """How many steps a code has, and which frames are kept: as many as fit."""
    for steps in encode.STEPS:
        cost = sum(each.cost(steps, frames) for each in stored)
        if cost <= budget:
            return steps, 1
    return steps, math.ceil(cost / budget)


def _source(name: str, of: list[int], colors: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "of": of, **colors}


def _colors(variable: Variable, arrays: list[NDArray]) -> dict[str, Any]:
    """A color map and its ends: diverging about 0 for what has a sign, else sequential."""
    if variable.classes:
        return {"colors": "classes", "limits": (0.0, float(len(variable.classes)))}
    if variable.limits is None:
        present = [a[np.isfinite(a)] for a in arrays]
        low = min((float(p.min()) for p in present if p.size), default=0.0)
        high = max((float(p.max()) for p in present if p.size), default=0.0)
    else:
        low, high = variable.limits
    if min(-low, high) > SLIGHT * max(-low, high):
        return {"colors": "diverging", "limits": (-max(-low, high), max(-low, high))}
    return {"colors": "sequential", "limits": (low, high if high > low else low + 1)}


def _error_colors(errors: list[NDArray]) -> dict[str, Any]:
    sizes = [np.abs(e[np.isfinite(e)]) for e in errors]
    worst = max((float(np.quantile(s, USUAL)) for s in sizes if s.size), default=0.0) or 1.0
    return {"colors": "error", "limits": (-worst, worst)}


def _photograph(image: Image, stride: int, grids: dict[Grid, int]) -> dict[str, Any]:
    """Red, green and blue one after the other, frame by frame."""
    return {
        "grid": grids.setdefault(image.grid, len(grids)),
        "frames": len(image.rgb[::stride]),
        "data": base64.b64encode(_pack_photograph(image, image.rgb[::stride])).decode(),
    }


def _photograph_cost(image: Image | None) -> int:
    """Bytes of a frame."""
    return 0 if image is None else len(_pack_photograph(image, image.rgb[:1]))


def _pack_photograph(image: Image, rgb: NDArray[np.uint8]) -> bytes:
    planes = np.moveaxis(rgb, -1, 1).reshape(-1, 3, image.grid.size).astype(np.float64)
    closed = np.stack([np.rint(encode.close(p, image.grid)).astype(np.uint8) for p in planes])
    # Modulo 2^8: nothing is lost.
    return zlib.compress(np.diff(closed, axis=-1, prepend=np.uint8(0)).tobytes(), 6)
