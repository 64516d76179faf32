"""A contact sheet of procedural rooms."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from spherule.data.panoramas import COLORS
from spherule.geometry.rotations import about_y
from spherule.report.figures import color_legend
from spherule.report.style import pyplot, save, styled
from spherule.rooms import CLASSES, Scene, render, room

TILT = 35.0


@styled
def plot_rooms(
    path: Path,
    indices: Sequence[int],
    *,
    more: Sequence[int] = (),
    seed: int = 0,
    size: str = "256x512",
) -> None:
    """Draw one column a room: colors, labels, depth, and colors of a tilted camera; below, the
    colors of more rooms.
    """
    plt = pyplot()
    if not indices:
        raise ValueError("indices: expected at least one room")
    count, wide = len(indices), 4.4
    rows = 4 + -(-len(more) // count)
    figure, axes = plt.subplots(
        rows, count, figsize=(wide * count, 2.3 * rows + 0.4), layout="constrained", squeeze=False
    )
    colors = np.array(COLORS, dtype=np.uint8)
    for column, index in zip(axes.T, indices, strict=True):
        scene = room(seed, index)
        level = render(scene, size)
        tilted = render(scene, size, rotation=about_y(np.radians(TILT)))
        for ax, image in zip(column, (level.rgb, colors[level.label]), strict=False):
            ax.imshow(image, interpolation="antialiased")
        drawn = column[2].imshow(level.depth, cmap="viridis_r", vmin=0, vmax=6)
        column[3].imshow(tilted.rgb, interpolation="antialiased")
        column[0].set_title(_title(scene), fontsize=11)
    for ax, index in zip(axes[4:].flat, more, strict=False):
        scene = room(seed, index)
        ax.imshow(render(scene, size).rgb, interpolation="antialiased")
        ax.set_title(_title(scene), fontsize=11)
    for ax in axes.flat:
        ax.set_axis_off()
    bar = figure.colorbar(drawn, ax=axes[2], shrink=0.9, aspect=14, pad=0.01, extend="max")
    bar.set_label("depth, meters")
    names = ("colors", "labels", "depth", f"tilted by {TILT:.0f}°", *["more rooms"] * (rows - 4))
    for ax, text in zip(axes[:, 0], names, strict=True):
        ax.text(-0.03, 0.5, text, rotation=90, ha="right", va="center", transform=ax.transAxes)
    names_of_colors = list(zip(CLASSES, COLORS, strict=True))
    color_legend(figure, names_of_colors, columns=min(len(CLASSES), 4 * count))
    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure, path, dpi=85)


def _title(scene: Scene) -> str:
    return f"{scene.kind}, {' x '.join(f'{side:.1f}' for side in scene.size)} m"
