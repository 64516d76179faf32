"""`spherule regrid`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro


@dataclass(frozen=True)
class Regrid:
    """Bring a file's fields onto another grid, a few at a time."""

    input: tyro.conf.Positional[Path]
    """NetCDF, Zarr or GRIB, also several as a quoted pattern."""
    output: tyro.conf.Positional[Path]
    """A name that ends in .nc or .zarr."""
    grid: str
    """Such as O96, H64, N320, gauss:64x128 or clenshaw_curtis:181x360."""
    method: Literal["bilinear", "nearest", "conservative", "spectral"] = "bilinear"
    """conservative averages over cells and keeps the mean; spectral goes by harmonics."""
    repair: bool = False
    """Leave out a last column that repeats the first, and take rows without the poles as rings."""

    def run(self) -> None:
        from spherule.data.regrid import regrid
        from spherule.grids import Grid

        grid = Grid.from_name(self.grid)
        regrid(self.input, self.output, grid, method=self.method, repair=self.repair)
        print(f"wrote {self.output}: {grid!r}")
