"""Lines: losses over time, and what all figures of lines share."""

from collections.abc import Sequence
from typing import Any

from spherule.report.style import embedded, label, logarithmic, pyplot, run_style, styled


@styled
def draw_losses(titles: Sequence[str], journals: Sequence[list[dict[str, Any]]]) -> str:
    """Training loss of each step, and validation of each epoch."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(10, 4.2), layout="constrained")
    for k, (title, journal) in enumerate(zip(titles, journals, strict=True)):
        style = run_style(k)
        steps = [(r["step"], r["loss"]) for r in journal if "loss" in r]
        epochs = [
            (r["step"], r["validation"]["loss"]["mean"]) for r in journal if "validation" in r
        ]
        if steps:
            ax.plot(*zip(*steps, strict=True), color=style["color"], alpha=0.28, linewidth=0.9)
        if epochs:
            ax.plot(
                *zip(*epochs, strict=True),
                **style,
                marker="o",
                markersize=4,
                linewidth=1.8,
                label=label(title),
            )
    ax.set(xlabel="step", ylabel="loss")
    logarithmic(ax)
    low, high = ax.get_ylim()
    if high < 8 * low:  # powers of ten would say little
        ax.yaxis.set_major_locator(plt.MaxNLocator(6))
        ax.yaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(plt.NullFormatter())
    ax.set_title("Loss: each training step (faint), validation after each epoch (dots)")
    legend_below(figure, ax)
    ax.grid(alpha=0.25, which="both")
    return embedded(figure, "Training and validation loss against steps", vector=True)


def panels_of(panels: Sequence[str], *, height: float) -> tuple[Any, Any]:
    """A figure with an axis a panel, side by side."""
    figure, axes = pyplot().subplots(
        1,
        len(panels),
        figsize=(max(10, 3.6 * len(panels)), height),
        layout="constrained",
        squeeze=False,
    )
    return figure, axes[0]


def legend_below(figure: Any, ax: Any) -> None:
    """Of the whole figure, which grows with it."""
    handles, labels = ax.get_legend_handles_labels()
    if not handles:
        return
    width, height = figure.get_size_inches()
    # At this size, an inch has room for about 14 characters.
    columns = max(1, min(3, int(14 * width / (max(map(len, labels)) + 6))))
    rows = -(-len(labels) // columns)
    figure.set_size_inches(width, height + 0.21 * max(rows - 2, 0))
    figure.legend(
        handles, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
