"""A rollout to look at: error growth, energy spectra, an animation, and the numbers."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spherule.data.times import span
from spherule.files import write_json
from spherule.report.figures import fitting_colors
from spherule.report.globe import write_globe
from spherule.report.maps import draw_map, smooth
from spherule.report.movie import write_gif
from spherule.report.style import logarithmic, pyplot, run_style, save, styled
from spherule.runs.rollout import Rollout
from spherule.train.figures import Section
from spherule.train.scene import LONG, Frames, Globe, forecast_globe

LONGEST_MOVIE = 61
"""Frames; of longer rollouts, each second, third ... lead is drawn."""


@styled
def draw_rollout(rollout: Rollout, directory: Path) -> list[Path]:
    """Write the figures, the GIF and `rollout.json`; returns where they are."""
    directory.mkdir(parents=True, exist_ok=True)
    names = ("growth.png", "spectra.png", "rollout.gif", "rollout.json", "globe.html")
    paths = [directory / name for name in names]
    _growth(paths[0], rollout)
    _spectra(paths[1], rollout)
    _movie(paths[2], rollout)
    numbers = {
        "title": rollout.title,
        "variables": list(rollout.variables),
        "hours": rollout.hours.tolist(),
        **{
            name: [[None if np.isnan(e) else float(e) for e in lead] for lead in errors]
            for name, errors in (
                ("model_error", rollout.model_error),
                ("persistence_error", rollout.persistence_error),
            )
        },
    }
    write_json(paths[3], numbers)
    write_globe(paths[4], rollout_globe(rollout))
    return paths


def rollout_section(rollout: Rollout, *, every: float) -> Section:
    """For a page: a globe with a frame after so many hours each, and how errors grow."""
    leads = [lead for lead in (24, 120, rollout.hours[-1]) if lead in rollout.hours]
    rows = [int(np.flatnonzero(rollout.hours == lead)[0]) for lead in leads]
    growth = "; ".join(
        f"{name.replace('_', ' ')} "
        + ", ".join(f"{rollout.model_error[row, v]:.2g}" for row in rows)
        + " (standing still: "
        + ", ".join(f"{rollout.persistence_error[row, v]:.2g}" for row in rows)
        + ")"
        for v, name in enumerate(rollout.variables)
    )
    text = (
        f"{rollout.title}: {span(3600 * rollout.hours[-1])} ahead on {rollout.grid.name}, each "
        "prediction made from the one before, beside the truth from the same held-out state. "
        f"Errors after {', '.join(span(3600 * lead) for lead in leads)}, in deviations: {growth}."
    )
    stride = max(round(every / rollout.hours[0]), 1)
    return Section("Forecast", text, [rollout_globe(rollout, stride)])


def rollout_globe(rollout: Rollout, stride: int = 1) -> Globe:
    """The first sample, each `stride`-th lead, in the variables' own units."""
    frames = {source: u[::stride] for source, u in physical_frames(rollout).items()}
    return forecast_globe(
        rollout.title, rollout.grid, rollout.variables, rollout.units,
        Frames.hours([0.0, *rollout.hours][::stride]), frames, earth=rollout.earth,
    )  # fmt: skip


def physical_frames(rollout: Rollout) -> dict[str, NDArray[np.float32]]:
    """The first sample in the variables' own units."""
    return {
        source: rollout.statistics.denormalize(torch.from_numpy(u), rollout.grid).numpy()
        for source, u in rollout.frames.items()
    }


def _labels(rollout: Rollout, power: str = "") -> list[str]:
    """Variables with their units."""
    return [
        f"{name} ({power}{unit})" if unit else name
        for name, unit in zip(rollout.variables, rollout.units, strict=True)
    ]


def _growth(path: Path, rollout: Rollout) -> None:
    plt = pyplot()
    count = len(rollout.variables)
    figure, axes = plt.subplots(
        1, count, figsize=(max(4.2 * count, 7), 4), layout="constrained", squeeze=False
    )
    unit, each = ("days", 24) if rollout.hours[-1] >= LONG else ("hours", 1)
    times = rollout.hours / each
    std = rollout.statistics.std
    for i, (ax, label) in enumerate(zip(axes[0], _labels(rollout), strict=True)):
        model, still = (std[i] * e[:, i] for e in (rollout.model_error, rollout.persistence_error))
        # A single lead is a point, which a line without markers would not show.
        ax.plot(times, model, marker="o", markersize=3, label="model", **run_style(0))
        ax.plot(times, still, "--", marker=".", color="0.35", label="persistence")
        # A forecast that goes astray leaves the picture; persistence does not.
        highest = 1.5 * _most(still) or std[i]
        ax.set_ylim(0, min(2 * highest, max(1.1 * _most(model), highest)))
        ax.set_xlim(0, 1.04 * times[-1])
        ax.set(xlabel=unit, title=label)
        ax.grid(alpha=0.25)
    axes[0][0].set_ylabel("root mean square error")
    axes[0][0].legend(frameon=False)
    figure.suptitle(f"{rollout.title}: error of forecasts that follow themselves")
    save(figure, path, dpi=130)


def _spectra(path: Path, rollout: Rollout) -> None:
    plt = pyplot()
    count = len(rollout.variables)
    figure, axes = plt.subplots(
        1, count, figsize=(max(4.2 * count, 7), 4), layout="constrained", squeeze=False
    )
    when = Frames.hours(rollout.hours).labels
    chosen = sorted({0, rollout.hours.size // 2, rollout.hours.size - 1})
    shades = plt.get_cmap("viridis")(np.linspace(0.1, 0.8, len(chosen)))
    degree = np.arange(1, rollout.spectra["truth"].shape[2])
    std = rollout.statistics.std
    for i, (ax, label) in enumerate(zip(axes[0], _labels(rollout, "squares of "), strict=True)):
        for lead, shade in zip(chosen, shades, strict=True):
            truth, model = (
                std[i] ** 2 * rollout.spectra[k][lead, i, 1:] for k in ("truth", "model")
            )
            ax.plot(degree, truth, color=shade, linewidth=3.5, alpha=0.35)
            ax.plot(degree, model, color=shade, label=when[lead])
        logarithmic(ax, x=True)
        top = std[i] ** 2 * (_most(rollout.spectra["truth"][:, i]) or 1.0)
        ax.set_ylim(top * 1e-8, top * 10)
        ax.set(xlabel="degree ℓ", title=label)
        ax.grid(alpha=0.25)
    axes[0][0].set_ylabel("power")
    axes[0][0].legend(frameon=False, title="thick: truth, thin: model")
    figure.suptitle(f"{rollout.title}: spectra")
    save(figure, path, dpi=130)


def _most(values: NDArray[np.floating]) -> float:
    """The highest, of those that are not missing; 0 where all are."""
    return float(np.nan_to_num(values).max())


def _movie(path: Path, rollout: Rollout) -> None:
    names = list(rollout.variables)
    v = names.index("vorticity") if "vorticity" in names else 0
    fields = {source: u[:, v] for source, u in physical_frames(rollout).items()}
    colors = fitting_colors(fields["truth"])
    worst = _most(np.abs(fields["model"] - fields["truth"])) or 1.0
    unit = f" ({rollout.units[v]})" if rollout.units[v] else ""
    when = Frames.hours([0.0, *rollout.hours]).labels
    frames = []
    for number, label in list(enumerate(when))[:: -(-len(when) // LONGEST_MOVIE)]:
        model, truth = fields["model"][number], fields["truth"][number]
        panels = [("model", model, colors), ("truth", truth, colors)]
        panels.append(("model − truth", model - truth, (-worst, worst, "PuOr_r")))
        frames.append(_frame(panels, rollout, f"{names[v]}{unit}", f"{names[v]}, {label}"))
    write_gif(path, frames, duration=150)


def _frame(panels: list[Any], rollout: Rollout, label: str, title: str) -> io.BytesIO:
    plt = pyplot()
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
    for ax, (name, u, (low, high, colors)) in zip(axes, panels, strict=True):
        drawn = draw_map(
            ax, *smooth(u, rollout.grid), projection="orthographic", center=(45.0, 20.0),
            pixels=420, limits=(low, high), cmap=colors, earth=rollout.earth,
        )  # fmt: skip
        ax.set_title(name)
        if name != "model":
            what = label if name == "truth" else f"error of {label}"
            figure.colorbar(drawn, ax=ax, shrink=0.8, label=what)
    figure.suptitle(title)
    image = io.BytesIO()
    save(figure, image, dpi=80)
    return image
