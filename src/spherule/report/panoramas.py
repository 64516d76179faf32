"""What a report shows of panoramas: examples, error by latitude, classes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spherule import objectives
from spherule.models import Model
from spherule.report.classes import class_colours, class_legend
from spherule.report.curves import draw_by_latitude
from spherule.report.style import RUN_COLOURS, embedded, pyplot, section
from spherule.train.measure import first_samples
from spherule.train.panoramas import DepthProblem, PanoramaProblem, SegmentationProblem

EXAMPLES, SAMPLES = 3, 16


@torch.no_grad()
def panorama_sections(
    problem: PanoramaProblem, titles: Sequence[str], models: Sequence[Model]
) -> list[str]:
    """The sections of the page."""
    count = min(SAMPLES, problem.test_samples)
    batch = first_samples(problem.test, count)
    outputs = [m.eval()(batch["image"]) for m in models]
    if isinstance(problem, SegmentationProblem):
        return _segmentation(problem, titles, batch, [o.argmax(1) for o in outputs])
    assert isinstance(problem, DepthProblem)
    return _depth(problem, titles, batch, [o[:, 0] for o in outputs])


def _segmentation(
    problem: SegmentationProblem, titles: Sequence[str], batch: Any, found: list[torch.Tensor]
) -> list[str]:
    label, classes = batch["label"], problem.classes
    wrong = [(f != label).double() for f in found]
    colours = class_colours()
    columns = [("image", _photographs(problem, batch))]
    columns += [("truth", colours[label.numpy()])]
    columns += [(t, colours[f.numpy()]) for t, f in zip(titles, found, strict=True)]
    matrices = [
        objectives.confusion(f, label, len(classes), problem.grid).sum(0).numpy() for f in found
    ]
    return [
        section(
            "Examples",
            "Panoramas that no model has seen, as latitude and longitude.",
            _examples(columns, legend=classes),
        ),
        section(
            "Error by latitude",
            f"Share of each ring that is labelled wrongly, over {len(label)} test samples.",
            draw_by_latitude(
                titles, problem.grid, [_ring_means(problem, w)[None] for w in wrong],
                ["wrong labels"], ylabel="share of the ring",
            ),
        ),
        section("Classes", "Intersection over union of each class, by area.",
                _classes(titles, classes, matrices)),
    ]  # fmt: skip


def _depth(
    problem: DepthProblem, titles: Sequence[str], batch: Any, found: list[torch.Tensor]
) -> list[str]:
    mean, std = problem.statistics.depth_mean, problem.statistics.depth_std
    metres = [f * std + mean for f in found]
    _, mask = problem.target(batch)
    truth = batch["depth"].masked_fill(~batch["valid"], torch.nan)
    errors = [(m - truth).masked_fill(~mask, torch.nan) for m in metres]
    rings = [_ring_means(problem, e.abs().double())[None] for e in errors]
    high = float(np.nanquantile(truth.numpy(), 0.99))
    worst = max(float(np.nanquantile(e.abs().numpy(), 0.99)) for e in errors)
    columns: list[tuple[str, Any]] = [("image", _photographs(problem, batch))]
    columns += [("truth (m)", truth.numpy())]
    columns += [(f"{t} (m)", m.numpy()) for t, m in zip(titles, metres, strict=True)]
    columns += [(f"error of {t} (m)", e.numpy()) for t, e in zip(titles, errors, strict=True)]
    return [
        section(
            "Examples",
            "Panoramas that no model has seen. Where there is no depth, or the poles are left out, "
            "errors are blank.",
            _examples(columns, depth=high, error=worst),
        ),
        section(
            "Error by latitude",
            f"Mean absolute error along each ring, over {len(truth)} test samples.",
            draw_by_latitude(titles, problem.grid, rings, ["depth"], ylabel="error (m)"),
        ),
    ]


def _photographs(problem: PanoramaProblem, batch: Any) -> NDArray[np.float32]:
    mean, std = (
        torch.tensor(v)[:, None, None]
        for v in (problem.statistics.rgb_mean, problem.statistics.rgb_std)
    )
    images: NDArray[np.float32] = (
        (batch["image"] * std + mean).clamp(0, 1).permute(0, 2, 3, 1).numpy()
    )
    return images


def _examples(
    columns: list[tuple[str, Any]],
    *,
    legend: Sequence[str] = (),
    depth: float | None = None,
    error: float | None = None,
) -> str:
    plt = pyplot()
    rows = min(EXAMPLES, len(columns[0][1]))
    height = 1.55 * rows + (1.1 if legend or depth else 0.3)
    figure, axes = plt.subplots(
        rows,
        len(columns),
        figsize=(3.1 * len(columns), height),
        layout="constrained",
        squeeze=False,
    )
    drawn: dict[str, Any] = {}
    for j, (title, values) in enumerate(columns):
        kind = "error" if title.startswith("error") else "depth"
        for i in range(rows):
            ax = axes[i, j]
            if values[i].ndim == 3:
                ax.imshow(values[i], interpolation="nearest")
            else:
                limits = {"error": (-(error or 1), error or 1), "depth": (0, depth)}[kind]
                cmap = {"error": "PuOr_r", "depth": "viridis_r"}[kind]
                drawn[kind] = ax.imshow(
                    values[i], interpolation="nearest", cmap=cmap, vmin=limits[0], vmax=limits[1]
                )
                ax.set_facecolor("0.9")
            ax.set(xticks=[], yticks=[])
            for spine in ax.spines.values():
                spine.set_visible(False)
        axes[0, j].set_title(title.replace("error of ", "error of\n"), fontsize=10)
    if legend:
        class_legend(figure, legend)
    for kind, label in (("depth", "depth (m)"), ("error", "error (m)")):
        if kind in drawn:
            own = [j for j, (t, v) in enumerate(columns)
                   if v[0].ndim == 2 and t.startswith("error") == (kind == "error")]  # fmt: skip
            figure.colorbar(drawn[kind], ax=axes[:, own], location="bottom", shrink=0.7,
                            aspect=30, label=label)  # fmt: skip
    return embedded(figure, "Examples: image, truth and predictions")


def _ring_means(problem: PanoramaProblem, values: torch.Tensor) -> NDArray[np.float64]:
    """Mean over samples and each ring; where there is nothing, NaN."""
    flat = values.flatten(1).numpy()
    starts = problem.grid.ringstart
    there = np.add.reduceat(np.isfinite(flat), starts, axis=1).sum(0)
    total = np.add.reduceat(np.nan_to_num(flat), starts, axis=1).sum(0)
    return np.where(there > 0, total / np.maximum(there, 1), np.nan)


def _classes(
    titles: Sequence[str], classes: Sequence[str], matrices: Sequence[NDArray[Any]]
) -> str:
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(10, 3.8), layout="constrained")
    width = 0.8 / len(titles)
    there = np.flatnonzero(matrices[0].sum(1) > 0)
    for k, (title, matrix) in enumerate(zip(titles, matrices, strict=True)):
        hit = np.diag(matrix)
        union = matrix.sum(0) + matrix.sum(1) - hit
        iou = (hit / np.maximum(union, 1e-300))[there]
        ax.bar(np.arange(there.size) + (k + 0.5) * width - 0.4, iou, width,
               color=RUN_COLOURS[k % len(RUN_COLOURS)], label=title)  # fmt: skip
    ax.set_xticks(np.arange(there.size), [classes[int(c)] for c in there], rotation=30, ha="right")
    ax.set(ylim=(0, 1), ylabel="IoU")
    ax.legend(frameon=False)
    ax.grid(alpha=0.25, axis="y")
    return embedded(figure, "Intersection over union of each class", vector=True)
