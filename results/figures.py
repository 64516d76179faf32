"""Figures of docs/results.md.

    python results/figures.py rollouts docs/images/rollouts.png results/rollouts-small.json
    python results/figures.py spectra docs/images/spectra.png results/rollouts-small.json
    python results/figures.py comparison docs/images/comparison.png pretrained/swe-*-local
    python results/figures.py rooms docs/images/rooms-results.png runs/seg-s2 runs/seg-r2

The first two draw what `results/rollouts.py` wrote, the others what trained runs make of held-out
samples.
"""

import argparse
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from spherule.data.panoramas import COLORS as COLORS_OF_CLASSES
from spherule.report.maps import draw_map, smooth
from spherule.runs import Run

COLORS = ("#0b5394", "#6fa8dc", "#cc7a00", "#38761d", "#a61c00", "#674ea7")
SHADES = ("#9fc5e8", "#6fa8dc", "#3d85c6", "#0b5394")
VIEW = (60.0, 20.0)
CLASS_COLORS = np.array(COLORS_OF_CLASSES) / 255
SAMPLES = (0, 5)
DEEPEST = 8.0
"""Meters."""


def rollouts(target: Path, sources: list[Path]) -> None:
    """Error, correlation and variance over the days."""
    rows = json.loads(sources[0].read_text())
    variables = next(iter(rows.values()))["variables"]
    figure, axes = plt.subplots(3, 3, figsize=(11, 8.4), sharex=True, layout="constrained")
    for v, name in enumerate(variables):
        error, correlation, ratio = axes[:, v]
        for color, row in zip(COLORS, rows.values(), strict=False):
            days = np.arange(1, len(row["error"]) + 1)
            style = {"color": color, "label": row["title"]}
            error.plot(days, _finite(row["error"])[:, v], **style)
            correlation.plot(days, _finite(row["correlation"])[:, v], **style)
            ratio.plot(days, (_finite(row["model"]) / _finite(row["truth"]))[:, v], **style)
        still = np.array(next(iter(rows.values()))["persistence"])[:, v]
        error.plot(np.arange(1, len(still) + 1), still, color="#999", ls=":", label="persistence")
        error.set(title=name, yscale="log", ylim=(0.01, 5))
        error.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        correlation.set(ylim=(-0.1, 1.02))
        ratio.axhspan(0.5, 2, color="#eee", zorder=0)
        ratio.set(yscale="log", ylim=(0.25, 16), xlabel="days")
        ratio.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16], ["¼", "½", "1", "2", "4", "8", "16"])
        for ax in (error, correlation, ratio):
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("error, deviations")
    axes[1, 0].set_ylabel("correlation with the solver")
    axes[2, 0].set_ylabel("variance over the solver's")
    _legend_below(figure, axes[0, 0])
    figure.savefig(target, dpi=130)


def spectra(target: Path, sources: list[Path]) -> None:
    """Of the first row: its spectra over the solver's by day; of all, what becomes of noise."""
    rows = json.loads(sources[0].read_text())
    first = next(iter(rows.values()))
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for v, name in enumerate(first["variables"]):
        power, gain = axes[:, v]
        for shade, (day, both) in zip(SHADES, first["spectra"].items(), strict=True):
            model, truth = (np.array(both[key])[v] for key in ("model", "truth"))
            known = truth > 1e-4 * truth.max()
            power.plot(
                np.flatnonzero(known), (model / truth)[known], color=shade, label=f"day {day}"
            )
        for color, row in zip(COLORS, rows.values(), strict=False):
            if "gain" in row:  # not kept of all
                gain.plot(_finite(row["gain"])[v], color=color, label=row["title"])
        power.axhline(1, color="#999", lw=0.8, zorder=0)
        gain.axhline(1, color="#999", lw=0.8, zorder=0)
        power.set(title=name, yscale="log", ylim=(0.5, 8))
        power.set_yticks([0.5, 1, 2, 4, 8], ["½", "1", "2", "4", "8"])
        power.minorticks_off()
        gain.set(xlabel="degree", xlim=(0, 40), yscale="log", ylim=(1e-2, 10))
        for ax in (power, gain):
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("power over the solver's")
    axes[0, 0].legend(frameon=False)
    axes[1, 0].set_ylabel("gain of noise in one lead")
    _legend_below(figure, axes[1, 0])
    figure.savefig(target, dpi=130)


@torch.no_grad()
def comparison(target: Path, sources: list[Path]) -> None:
    """Geopotential of one lead ahead on the sphere, and errors of forecasts on a scale for each."""
    runs = [Run.open(path) for path in sources]
    task = runs[0].task()
    state, truth = (u[None] for u in task.test[0][:2])
    fields = [task.step(run.model.eval(), state) for run in runs]
    panels = [("input", state), ("the solver, two hours later", truth)]
    panels += [
        (run.config.title.partition(", small")[0], u) for run, u in zip(runs, fields, strict=True)
    ]
    figure, axes = plt.subplots(
        2, len(panels), figsize=(2.5 * len(panels), 5.4), layout="constrained"
    )
    limit = float(truth[0, 0].abs().max())
    for (above, below), (title, u) in zip(axes.T, panels, strict=True):
        drawn = _globe(above, u[0, 0].numpy(), task.grid, limit, "RdBu_r")
        above.set_title(title, fontsize=9)
        if u is state or u is truth:
            below.set_axis_off()
            continue
        error = (u - truth)[0, 0].numpy()
        most = float(np.abs(error).max())
        of_error = _globe(below, error, task.grid, most, "PuOr_r")
        below.set_title(f"its error, at most {most:.2g}", fontsize=9)
        figure.colorbar(of_error, ax=below, orientation="horizontal", shrink=0.7, aspect=25)
    scale = figure.colorbar(
        drawn, ax=axes[1, :2], orientation="horizontal", shrink=0.7, aspect=25, location="top"
    )
    scale.set_label("geopotential, deviations", fontsize=9)
    figure.savefig(target, dpi=130)


@torch.no_grad()
def rooms(target: Path, sources: list[Path]) -> None:
    """Panoramas that no model has seen, on the sphere from outside: a row for each, with the image,
    the truth and what runs make of it. Runs of a task, and of cameras held alike, share rows.
    """
    rows: dict[tuple[str, float, int], list[tuple[str, np.ndarray]]] = {}
    for run in map(Run.open, sources):
        task, model = run.task(), run.model.eval()
        for sample in SAMPLES:
            batch = {name: torch.as_tensor(x)[None] for name, x in task.test[sample].items()}
            output, photograph = model(batch["image"])[0], task.photographs(batch)[0] / 255
            if task.out_channels > 1:
                truth, found = (CLASS_COLORS[x] for x in (batch["label"][0], output.argmax(0)))
            else:
                scale = task.statistics
                meters = output[0] * scale.depth_std + scale.depth_mean
                truth, found = (
                    plt.get_cmap("viridis_r")(x.numpy() / DEEPEST)[..., :3]
                    for x in (batch["depth"][0], meters)
                )
            known = run.config.task
            row = rows.setdefault(
                (known.title, known.tilt, sample), [("image", photograph), ("truth", truth)]
            )
            row.append((run.config.title.partition(", small")[0], found))
    columns = max(map(len, rows.values()))
    figure, axes = plt.subplots(
        len(rows), columns, figsize=(2.3 * columns, 2.4 * len(rows)), layout="constrained"
    )
    for (*_, sample), panels, line in zip(rows, rows.values(), np.atleast_2d(axes), strict=True):
        for ax, (title, colors) in zip(line, panels, strict=True):
            draw_map(ax, colors, task.grid, projection="orthographic", center=(25.0, 40.0))
            if sample == SAMPLES[0]:
                ax.set_title(title, fontsize=9)
    figure.savefig(target, dpi=100)


def _globe(ax: plt.Axes, u: np.ndarray, grid: object, limit: float, colors: str) -> object:
    return draw_map(
        ax,
        *smooth(u, grid),
        projection="orthographic",
        center=VIEW,
        limits=(-limit, limit),
        cmap=colors,
    )


def _finite(values: list) -> np.ndarray:
    """What blew up is not drawn."""
    numbers = np.array(values, dtype=float)
    return np.where(np.isfinite(numbers), numbers, np.nan)


def _legend_below(figure: plt.Figure, ax: plt.Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = {f.__name__: f for f in (rollouts, spectra, comparison, rooms)}
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("target", type=Path)
    parser.add_argument("sources", type=Path, nargs="+")
    options = parser.parse_args()
    kinds[options.kind](options.target, options.sources)
