"""One random field on several grids, with its spectrum: a first look."""

from pathlib import Path

import numpy as np
import torch

from spherule import ops
from spherule.grids import Grid
from spherule.report.maps import draw_map
from spherule.report.style import logarithmic, pyplot, save, styled

GRIDS = ("gauss:24x48", "clenshaw_curtis:25x48", "H12", "O16")
LMAX = 90
MEASURED = 23  # what all four can resolve


@styled
def draw_gallery(path: Path, *, seed: int = 0) -> Path:
    """Draw the figure and return where it is."""
    plt = pyplot()
    spectrum = ops.matern_spectrum(LMAX, length=0.25, smoothness=0.9)
    coeffs = ops.random_coeffs(spectrum, generator=torch.Generator().manual_seed(seed))
    figure = plt.figure(figsize=(13, 8.6), layout="constrained")
    figure.suptitle(
        "One Gaussian random field (Matérn, correlation length 0.25 rad) on ring grids", fontsize=15
    )
    (top,), (bottom,) = figure.subfigures(2, 1, squeeze=False, height_ratios=(1, 1.15))
    for ax, name in zip(top.subplots(1, len(GRIDS)), GRIDS, strict=True):
        grid = Grid.from_name(name)
        drawn = draw_map(
            ax,
            ops.isht(coeffs, grid),
            grid,
            projection="orthographic",
            center=(50, 20),
            limits=(-3, 3),
        )
        ax.set_title(f"{name}\n{grid.size} points, {grid.nrings} rings", fontsize=11)
    whole, degrees = bottom.subplots(1, 2, width_ratios=(1.5, 1))
    fine = Grid.gauss(360, 720)
    drawn = draw_map(whole, ops.isht(coeffs, fine), fine, limits=(-3, 3), pixels=1400)
    whole.set_title("the whole sphere: gauss:360x720, Mollweide", fontsize=11)
    bottom.colorbar(
        drawn, ax=whole, orientation="horizontal", shrink=0.6, pad=0.03, label="standard deviations"
    )
    degree = np.arange(1, LMAX + 1)
    degrees.plot(degree, spectrum[1:], color="0.2", linewidth=2, label="given Cₗ")
    low = coeffs[: MEASURED + 1, : MEASURED + 1]
    for size, name in enumerate(GRIDS):
        grid = Grid.from_name(name)
        measured = ops.sht(ops.isht(low, grid), grid, MEASURED, iterations=0 if grid.regular else 3)
        degrees.plot(
            degree[:MEASURED],
            ops.power_spectrum(measured)[1:],
            "o",
            fillstyle="none",
            markersize=4 + 3 * size,
            label=f"measured on {name}",
        )
    logarithmic(degrees, x=True)
    degrees.set(xlabel="degree ℓ", ylabel="power Cₗ")
    degrees.set_title(f"its spectrum; degrees up to {MEASURED} analyzed on each grid", fontsize=11)
    degrees.legend(frameon=False, fontsize=9)
    degrees.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, dpi=130)
    return path
