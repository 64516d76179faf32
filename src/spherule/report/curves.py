"""Lines: losses over time, error by latitude, spectra."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spherule.grids import Grid
from spherule.report.style import RUN_COLOURS, embedded, pyplot


def draw_losses(titles: Sequence[str], journals: Sequence[list[dict[str, Any]]]) -> str:
    """Training loss of each step, and validation of each epoch."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(10, 4.2), layout="constrained")
    for title, journal, colour in zip(titles, journals, RUN_COLOURS, strict=False):
        steps = [(r["step"], r["loss"]) for r in journal if "loss" in r]
        epochs = [
            (r["step"], r["validation"]["loss"]["mean"]) for r in journal if "validation" in r
        ]
        if steps:
            ax.plot(*zip(*steps, strict=True), color=colour, alpha=0.28, linewidth=0.9)
        if epochs:
            ax.plot(
                *zip(*epochs, strict=True),
                "o-",
                color=colour,
                markersize=4,
                linewidth=1.8,
                label=title,
            )
    ax.set(xlabel="step", ylabel="loss", yscale="log")
    low, high = ax.get_ylim()
    if high < 8 * low:  # powers of ten would say little
        ax.yaxis.set_major_locator(plt.MaxNLocator(6))
        ax.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(plt.NullFormatter())
    ax.set_title("Loss: each training step (faint), validation after each epoch (dots)")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25, which="both")
    return embedded(figure, "Training and validation loss against steps", vector=True)


def draw_by_latitude(
    titles: Sequence[str],
    grid: Grid,
    errors: Sequence[NDArray[np.float64]],
    panels: Sequence[str],
    *,
    ylabel: str,
) -> str:
    """Errors (panels, rings) of each run against latitude."""
    plt = pyplot()
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(max(10, 3.6 * len(panels)), 3.8),
        layout="constrained",
        squeeze=False,
    )
    latitude = 90 - np.degrees(grid.theta)
    for i, (ax, panel) in enumerate(zip(axes[0], panels, strict=True)):
        for title, error, colour in zip(titles, errors, RUN_COLOURS, strict=False):
            ax.plot(latitude, error[i], color=colour, linewidth=1.8, label=title)
        ax.set(xlim=(-90, 90), xticks=(-90, -45, 0, 45, 90), xlabel="latitude (degrees)")
        ax.set_ylim(bottom=0)
        ax.set_title(panel)
        ax.grid(alpha=0.25)
    axes[0][0].set_ylabel(ylabel)
    _legend(figure, axes[0][0])
    return embedded(figure, f"{ylabel} against latitude", vector=True)


def draw_spectra(
    titles: Sequence[str],
    truth: NDArray[np.float64],
    predictions: Sequence[NDArray[np.float64]],
    errors: Sequence[NDArray[np.float64]],
    panels: Sequence[str],
) -> str:
    """Power of each degree (panels, degrees): truth, predictions, and their errors."""
    plt = pyplot()
    figure, axes = plt.subplots(
        1,
        len(panels),
        figsize=(max(10, 3.6 * len(panels)), 3.9),
        layout="constrained",
        squeeze=False,
    )
    degree = np.arange(1, truth.shape[1])
    for i, (ax, panel) in enumerate(zip(axes[0], panels, strict=True)):
        ax.loglog(degree, truth[i, 1:], color="0.15", linewidth=2.4, label="truth")
        for title, power, error, colour in zip(
            titles, predictions, errors, RUN_COLOURS, strict=False
        ):
            ax.loglog(degree, power[i, 1:], color=colour, linewidth=1.5, label=title)
            ax.loglog(
                degree, error[i, 1:], "--", color=colour, linewidth=1.2, label=f"error of {title}"
            )
        top = truth[i, 1:].max()
        ax.set_ylim(top * 1e-8, top * 4)
        ax.set_xlabel("degree ℓ")
        ax.set_title(panel)
        ax.grid(alpha=0.25)
    axes[0][0].set_ylabel("power (squared deviations)")
    _legend(figure, axes[0][0])
    return embedded(figure, "Power spectra of truth, predictions and errors", vector=True)


def _legend(figure: Any, ax: Any) -> None:
    """Of the whole figure, below it."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
