"""How each figure that a task hands over is drawn, as markup for a page."""

import html
from collections.abc import Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from spherule.report.curves import legend_below, panels_of
from spherule.report.globe import globe_section
from spherule.report.globe.payload import ROOM, SLIGHT
from spherule.report.maps import Projection, draw_map, smooth
from spherule.report.style import (
    bar_style,
    embedded,
    error_style,
    label,
    logarithmic,
    pyplot,
    run_style,
    section,
    styled,
)
from spherule.train.figures import (
    Bars,
    ByLatitude,
    ColorScale,
    Figure,
    Folded,
    Images,
    Maps,
    Section,
    Spectra,
)
from spherule.train.scene import Globe

VIEWS: tuple[tuple[Projection, tuple[float, float], str], ...] = (
    ("orthographic", (65.0, 20.0), "seen from above the north"),
    ("mollweide", (0.0, 0.0), "the whole sphere, Mollweide"),
)


COLUMNS = 5
"""Of maps or images, side by side."""
FOLDED = 1_000_000
"""Bytes of what is folded away; what would be beyond is left out."""


@styled
def draw_sections(parts: Sequence[Section], *, room: int) -> list[str]:
    """Sections of a page with their figures; globes share what pictures leave of so many bytes."""
    figures = [figure for part in parts for figure in part.figures]
    drawn = {id(figure): draw(figure) for figure in figures if not isinstance(figure, Globe)}
    globes = [figure for figure in figures if isinstance(figure, Globe)]
    left = room - sum(map(len, drawn.values()))
    for count, globe in zip(range(len(globes), 0, -1), globes, strict=True):
        drawn[id(globe)] = globe_section(globe, room=min(left // count, ROOM))
        left -= len(drawn[id(globe)])
    return [
        section(part.title, html.escape(part.text), *(drawn[id(f)] for f in part.figures))
        for part in parts
    ]


@singledispatch
def draw(figure: Figure) -> str:
    """Markup of a figure."""
    raise TypeError(f"figure: nothing draws a {type(figure).__name__}")


@draw.register
def _(figure: Folded) -> str:
    inner, shown = "", 0
    for inside in figure.figures:
        if len(inner) > FOLDED:
            break
        inner, shown = inner + draw(inside), shown + 1
    if left_out := len(figure.figures) - shown:
        inner += f"<p class=note>{left_out} more are left out: the page stays small.</p>"
    return f"<details><summary>{html.escape(figure.summary)}</summary>{inner}</details>"


@draw.register
def _(figure: Maps) -> str:
    fields, errors = (
        [p.values for row in figure.rows for p in row if p.kind == kind]
        for kind in ("field", "error")
    )
    # Predictions may go astray; the scale is that of what is known.
    truth = figure.rows[-1][0].values
    worst = max((float(np.nanmax(np.abs(e))) for e in errors), default=0.0) or 1.0
    scales = {"field": fitting_colors(truth), "error": (-worst, worst, "PuOr_r")}
    assert fields
    return "".join(_maps(part, scales, *view) for view in VIEWS for part in _beside(figure))


def _beside(figure: Maps) -> list[Maps]:
    """Of many columns a few each, so that they stay large enough to see."""
    starts = range(0, max(map(len, figure.rows)), COLUMNS)
    parts = ([row[start : start + COLUMNS] for row in figure.rows] for start in starts)
    return [replace(figure, rows=[row for row in part if row]) for part in parts]


def fitting_colors(values: np.ndarray) -> tuple[float, float, str]:
    """Limits and a color map: diverging about 0 for what has either sign, else sequential."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    most = max(-low, high)
    if min(-low, high) > SLIGHT * most:
        return -most, most, "RdBu_r"
    return low, high, "viridis"


def _maps(
    figure: Maps,
    scales: dict[str, tuple[float, float, str]],
    projection: Projection,
    center: tuple[float, float],
    words: str,
) -> str:
    plt = pyplot()
    rows, columns = len(figure.rows), max(map(len, figure.rows))
    cell = (4.4, 2.35) if projection == "mollweide" else (3.5, 3.5)
    drawing, axes = plt.subplots(
        rows,
        columns,
        figsize=(cell[0] * columns + 1, rows * cell[1] + 0.9),
        layout="constrained",
        squeeze=False,
    )
    for row, panels in zip(axes, figure.rows, strict=True):
        drawn: dict[str, Any] = {}
        for ax, panel in zip(row, panels, strict=False):
            low, high, colors = scales[panel.kind]
            drawn[panel.kind] = draw_map(
                ax,
                *smooth(panel.values, figure.grid),
                projection=projection,
                center=center,
                limits=(low, high),
                cmap=colors,
                earth=figure.earth,
            )
            ax.set_title(label(panel.title, 46), fontsize=11)
        kind = panels[-1].kind
        words_of = {"field": figure.label, "error": f"error of {figure.label}"}
        drawing.colorbar(drawn[kind], ax=row, shrink=0.85, label=label(words_of[kind]))
    drawing.suptitle(label(f"{figure.title}, {words}", 100), fontsize=13)
    return embedded(drawing, f"Maps of {figure.title}: {words}")


@draw.register
def _(figure: ByLatitude) -> str:
    drawing, axes = panels_of(figure.panels, height=3.8)
    for i, (ax, panel) in enumerate(zip(axes, figure.panels, strict=True)):
        for k, curve in enumerate(figure.curves):
            latitude = 90 - np.degrees(curve.grid.theta)
            ax.plot(
                latitude, curve.values[i], **run_style(k), linewidth=1.8, label=label(curve.title)
            )
        ax.set(xlim=(-90, 90), xticks=(-90, -45, 0, 45, 90), xlabel="latitude (degrees)")
        ax.set_ylim(bottom=0)
        ax.set_title(label(panel, 40))
        ax.grid(alpha=0.25)
    axes[0].set_ylabel(figure.ylabel)
    legend_below(drawing, axes[0])
    return embedded(drawing, f"{figure.ylabel} against latitude", vector=True)


@draw.register
def _(figure: Spectra) -> str:
    drawing, axes = panels_of(figure.panels, height=3.9)
    for i, (ax, panel) in enumerate(zip(axes, figure.panels, strict=True)):
        top = 0.0
        truths: list[Any] = []
        for k, curve in enumerate(figure.curves):
            degree = np.arange(1, curve.truth.shape[1])
            if not any(np.array_equal(curve.truth, truth) for truth in truths):
                name = label(f"truth of {curve.title}" if truths else "truth")
                shade = str(0.15 + 0.3 * len(truths) % 0.6)
                ax.plot(degree, curve.truth[i, 1:], color=shade, linewidth=2.4, label=name)
                truths.append(curve.truth)
            name = label(curve.title)
            ax.plot(degree, curve.prediction[i, 1:], **run_style(k), linewidth=1.5, label=name)
            name = label(f"error of {curve.title}")
            ax.plot(degree, curve.error[i, 1:], **error_style(k), linewidth=1.2, label=name)
            top = max(top, curve.truth[i, 1:].max())
        logarithmic(ax, x=True)
        ax.set_ylim(top * 1e-8, top * 4)
        ax.set_xlabel("degree ℓ")
        ax.set_title(label(panel, 40))
        ax.grid(alpha=0.25)
    axes[0].set_ylabel("power")
    legend_below(drawing, axes[0])
    return embedded(drawing, "Power spectra of truth, predictions and errors", vector=True)


@draw.register
def _(figure: Images) -> str:
    starts = range(0, len(figure.columns), COLUMNS)
    parts = (figure.columns[start : start + COLUMNS] for start in starts)
    return "".join(_images(replace(figure, columns=part)) for part in parts)


def _images(figure: Images) -> str:
    plt = pyplot()
    rows = max(len(column.images) for column in figure.columns)
    height = 1.55 * rows + (1.1 if figure.legend or figure.scales else 0.3)
    drawing, axes = plt.subplots(
        rows,
        len(figure.columns),
        figsize=(3.1 * len(figure.columns), height),
        layout="constrained",
        squeeze=False,
    )
    drawn: dict[str, Any] = {}
    for column, own in zip(figure.columns, axes.T, strict=True):
        for ax, image in zip(own, column.images, strict=False):
            if column.scale:
                drawn[column.scale] = _numbers(ax, image, figure.scales[column.scale])
            else:
                ax.imshow(image, interpolation="nearest")
        own[0].set_title(label(column.title, 40), fontsize=10)
    for ax in axes.flat:
        ax.set(xticks=[], yticks=[])
        for spine in ax.spines.values():
            spine.set_visible(False)
    if figure.legend:
        color_legend(drawing, figure.legend)
    for name, picture in drawn.items():
        own = axes[:, [j for j, column in enumerate(figure.columns) if column.scale == name]]
        drawing.colorbar(picture, ax=own, location="bottom", shrink=0.7, aspect=30,
                         label=figure.scales[name].label)  # fmt: skip
    return embedded(drawing, "Examples: image, truth and predictions")


def _numbers(ax: Any, image: Any, scale: ColorScale) -> Any:
    ax.set_facecolor("0.9")
    return ax.imshow(
        image, interpolation="nearest", cmap=scale.colors, vmin=scale.low, vmax=scale.high
    )


@draw.register
def _(figure: Bars) -> str:
    plt = pyplot()
    drawing, ax = plt.subplots(figsize=(10, 3.8), layout="constrained")
    count, places = len(figure.values), np.arange(len(figure.categories))
    width = 0.8 / count
    for k, (title, values) in enumerate(figure.values.items()):
        place, name = places + (k + 0.5) * width - 0.4, label(title)
        ax.bar(place, values, width, **bar_style(k), edgecolor="white", linewidth=0, label=name)
    ax.set_xticks(places, [label(c, 30) for c in figure.categories], rotation=30, ha="right")
    ax.set(ylim=(0, 1), ylabel=figure.ylabel)
    legend_below(drawing, ax)
    ax.grid(alpha=0.25, axis="y")
    return embedded(drawing, f"{figure.ylabel} of each class", vector=True)


def color_legend(drawing: Any, names: Any, *, columns: int = 7) -> None:
    """Name colors (red, green, blue from 0 to 255) below a figure."""
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=tuple(c / 255 for c in color), edgecolor="0.6", label=name)
        for name, color in names
    ]
    drawing.legend(
        handles=patches, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
