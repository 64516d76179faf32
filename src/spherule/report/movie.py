"""A simulation of shallow water as an animated picture."""

import io
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from spherule import checks
from spherule.files import write_whole
from spherule.grids import Grid
from spherule.optional import require
from spherule.pde import ShallowWater
from spherule.pde.initial_states import CASES, case_named, mountain
from spherule.report.maps import Projection, draw_map
from spherule.report.style import pyplot, save, styled

LMAX = 85
EVERY = 3 * 3600  # seconds between frames
SHORTEST = 3000
"""Milliseconds that a movie takes at least."""
# Where to look from: the jet circles the pole.
_VIEWS: dict[str, tuple[Projection, tuple[float, float]]] = {
    "galewsky": ("orthographic", (60.0, -90.0))
}


@styled
def draw_movie(
    path: Path, *, case: str = "galewsky", days: float = 6.0, lmax: int = LMAX, pixels: int = 360
) -> Iterator[float]:
    """Write the vorticity of a standard test as a GIF, a frame every three hours; yields the day
    of each frame as it is made.
    """
    if path.suffix.lower() != ".gif":
        raise ValueError(f"movie={str(path)!r}: expected a name that ends in .gif")
    if not days > 0:
        raise ValueError(f"days={days} must be positive")
    state = case_named(checks.choice("case", case, CASES))(lmax)
    require("PIL.Image", "a movie")
    grid = Grid.gauss(2 * lmax + 2, 4 * lmax + 4)
    solver = ShallowWater(
        grid,
        lmax=lmax,
        topography=mountain(lmax) if case == "williamson5" else None,
        damping_time=6 * 3600.0,
        dtype=torch.float32,
    )
    substeps = math.ceil(EVERY / (0.7 * solver.cfl_limit(state)))
    frames = round(days * 86400 / EVERY)
    state = state.to(torch.complex64)
    with torch.inference_mode():
        limit = float(solver.fields(state)[1].abs().max())
        images = [_frame(solver.fields(state)[1], grid, 0.0, case, limit, pixels)]
        yield 0.0
        run = solver.trajectory(state, EVERY / substeps, frames * substeps, every=substeps)
        for number, later in enumerate(run, start=1):
            day = number * EVERY / 86400
            images.append(_frame(solver.fields(later)[1], grid, day, case, limit, pixels))
            yield day
    write_gif(path, images, duration=100)


def write_gif(path: Path, frames: Sequence[io.BytesIO], *, duration: int) -> None:
    """Pictures (PNG), each seen for so many milliseconds, or longer where they are few."""
    Image = require("PIL.Image", "a movie")
    images = [Image.open(frame).convert("RGB") for frame in frames]
    # One palette for all, so that nothing flickers, and dithered, so that no stripes are seen.
    middle = images[len(images) // 2]
    wide = Image.new("RGB", (middle.width, 2 * middle.height))
    for i, image in enumerate((middle, images[-1])):
        wide.paste(image, (0, i * middle.height))
    palette = wide.quantize(255)
    first, *rest = (image.quantize(palette=palette, dither=Image.Dither.FLOYDSTEINBERG)
                    for image in images)  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    movie = io.BytesIO()
    first.save(
        movie, format="GIF", save_all=True, append_images=rest, loop=0,
        duration=max(duration, SHORTEST // len(images)),
    )  # fmt: skip
    write_whole(path, movie.getvalue())


def _frame(
    vorticity: torch.Tensor, grid: Grid, day: float, case: str, limit: float, pixels: int
) -> io.BytesIO:
    plt = pyplot()
    projection, center = _VIEWS.get(case, ("mollweide", (0.0, 0.0)))
    width = 1.0 if projection == "orthographic" else 1.8
    figure, ax = plt.subplots(figsize=(width * pixels / 100, 1.08 * pixels / 100))
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.92)
    draw_map(ax, vorticity, grid, projection=projection, center=center, limits=(-limit, limit))
    ax.set_title(f"{case}: vorticity, day {day:.2f}", fontsize=9)
    image = io.BytesIO()
    save(figure, image, dpi=100)
    return image
