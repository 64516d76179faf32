"""`import spherule.accessor` gives every xarray.DataArray `.spherule`: its grid, transforms, means
and pictures, from its coordinates latitude and longitude.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from spherule import checks, ops
from spherule.data.layout import Layout
from spherule.data.regrid import Method, on_grid, resampled
from spherule.data.times import NAMES, text
from spherule.grids import Grid
from spherule.grids.serial import as_grid
from spherule.optional import require

xr: Any = require("xarray", "spherule.accessor")


@xr.register_dataarray_accessor("spherule")
class SphereAccessor:
    """What a DataArray on a grid of the sphere can do."""

    def __init__(self, array: Any) -> None:
        self._array = array

    @cached_property
    def layout(self) -> Layout:
        return Layout.of(self._array.to_dataset(name="u"))

    @property
    def grid(self) -> Grid:
        """That the coordinates describe."""
        return self.layout.grid

    @checks.arguments
    def regrid(self, grid: Grid | str, method: Method = "bilinear") -> Any:
        """On another grid, with attributes and the other coordinates kept."""
        wanted, array = as_grid(grid), self._array
        like, _ = on_grid(array.to_dataset(name="u"), self.layout, wanted)
        values = resampled(self.layout.read(array), self.grid, wanted, method, str(array.name))
        return like["u"].copy(data=values).rename(array.name)

    @checks.arguments
    def sht(self, lmax: int | None = None) -> Any:
        """Complex coefficients along degree l and order m >= 0."""
        coeffs = self._coefficients(lmax)
        count = np.arange(coeffs.shape[-1])
        return self._others(coeffs.numpy(), ("l", "m"), {"l": count, "m": count})

    @checks.arguments
    def power_spectrum(self, lmax: int | None = None) -> Any:
        """Power of each degree."""
        power = ops.power_spectrum(self._coefficients(lmax)).numpy()
        return self._others(power, ("l",), {"l": np.arange(power.shape[-1])})

    def mean(self) -> Any:
        """Over the sphere by quadrature; points that are missing are left out."""
        u = self._fields()
        weights = np.asarray(self.grid.weights).reshape(self.grid.shape) * np.isfinite(u)
        space = tuple(range(-len(self.grid.shape), 0))
        with np.errstate(invalid="ignore"):
            mean = (np.nan_to_num(u) * weights).sum(space) / weights.sum(space)
        return self._others(mean, (), {})

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """A map of a single field, with coasts and a scale; `options` are those of
        `report.maps.draw_map`.
        """
        from spherule.report.figures import fitting_colors
        from spherule.report.maps import draw_map

        u = self._fields()
        if u.shape != self.grid.shape:
            raise ValueError(f"plot: expected one field, got dimensions {self._array.dims}")
        if ax is None:
            ax = require("matplotlib.pyplot", "a map").figure().add_subplot()
        low, high, colors = fitting_colors(u)
        drawn = draw_map(
            ax, u, self.grid, **{"limits": (low, high), "cmap": colors, "earth": True, **options}
        )
        units = self._array.attrs.get("units")
        label = str(self._array.name or "") + (f" ({units})" if units else "")
        ax.figure.colorbar(drawn, ax=ax, shrink=0.6, label=label)
        times = [self._array[name] for name in NAMES if name in self._array.coords]
        ax.set_title(next((text(t.values[()]) for t in times if t.ndim == 0), ""))
        return drawn

    @checks.arguments
    def globe(self, path: Path | str) -> Path:
        """Write a page with a globe to turn; another dimension, such as time, is its slider."""
        from spherule.report.globe import Frames, Globe, Variable, write_globe

        array, u = self._array, self._fields()
        others = [str(d) for d in array.dims if d not in self.layout.dims]
        if len(others) > 1:
            raise ValueError(f"globe: expected one dimension beside space, got {', '.join(others)}")
        name = str(array.name or "field")
        frames = Frames()
        if others:
            labels = array[others[0]].values if others[0] in array.coords else range(len(u))
            frames = Frames(tuple(text(label) for label in labels), others[0])
        units = str(array.attrs.get("units", ""))
        variable = Variable(name, self.grid, {"data": u.astype(np.float32)}, units)
        write_globe(Path(path), Globe(name, [variable], frames, earth=True))
        return Path(path)

    def _fields(self) -> Any:
        """(*others, *grid.shape) in float64."""
        return self.layout.read(self._array).astype(np.float64)

    def _coefficients(self, lmax: int | None) -> torch.Tensor:
        u = torch.from_numpy(self._fields())
        if missing := int(u.isnan().sum()):
            raise ValueError(f"{self._array.name}: {missing} missing values; fill them first")
        return ops.sht(u, self.grid, self.grid.lmax if lmax is None else lmax)

    def _others(self, values: Any, dims: tuple[str, ...], coordinates: dict[str, Any]) -> Any:
        """An array along what is not space, and along new dimensions."""
        array = self._array
        others = [d for d in array.dims if d not in self.layout.dims]
        kept = {n: c for n, c in array.coords.items() if not set(c.dims) & set(self.layout.dims)}
        return xr.DataArray(
            values, dims=(*others, *dims), coords={**kept, **coordinates}, name=array.name,
            attrs=array.attrs,
        )  # fmt: skip
