"""What a report shows of forecasts: maps, error by latitude, spectra."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spherule import ops
from spherule.grids import Grid
from spherule.models import Model
from spherule.report.curves import draw_by_latitude, draw_spectra
from spherule.report.maps import Projection, draw_map, smooth
from spherule.report.style import embedded, pyplot, section
from spherule.train.fields import FieldProblem
from spherule.train.measure import first_samples

SAMPLES = 8
VIEWS: tuple[tuple[Projection, tuple[float, float], str], ...] = (
    ("orthographic", (65.0, 20.0), "seen from above the north"),
    ("mollweide", (0.0, 0.0), "the whole sphere, Mollweide"),
)


@dataclass(frozen=True, eq=False)
class Seen:
    """Some test samples in deviations: (samples, variables, *shape)."""

    inputs: torch.Tensor
    truth: torch.Tensor
    predictions: list[torch.Tensor]


@torch.no_grad()
def look(problem: FieldProblem, models: Sequence[Model]) -> Seen:
    """The predictions of all models for the first test samples."""
    count = min(SAMPLES, problem.test_samples)
    inputs, truth, *_ = first_samples(problem.test, count)
    predictions = [problem.step(m.eval(), inputs) for m in models]
    return Seen(inputs.nan_to_num(0.0), truth.nan_to_num(0.0), predictions)


def field_sections(
    problem: FieldProblem, titles: Sequence[str], models: Sequence[Model]
) -> list[str]:
    """The sections of the page."""
    seen = look(problem, models)
    errors = torch.stack(
        [(p - seen.truth).square().flatten(2).mean((0, 2)) for p in seen.predictions]
    )
    # First what sets the models apart most.
    order = (errors.amin(0) / errors.amax(0)).argsort(stable=True).tolist()
    first, *others = [_maps(problem, titles, seen, v) for v in order]
    more = (
        [f"<details><summary>The other variables</summary>{''.join(others)}</details>"]
        if others
        else []
    )
    names = [name.replace("_", " ") for name in problem.variables]
    rings = [_by_ring(p - seen.truth, problem.grid) for p in seen.predictions]
    hours = problem.lead / 3600
    return [
        section(
            "Maps",
            f"One test sample, {hours:g} h ahead: the input, the truth, and for each model its "
            "prediction with the error below it. All errors share one scale.",
            first,
            *more,
        ),
        section(
            "Error by latitude",
            f"Root mean square along each ring, over {len(seen.truth)} test samples, in deviations "
            "of each variable. A planar model takes the poles for the edges of an image.",
            draw_by_latitude(titles, problem.grid, rings, names, ylabel="error (deviations)"),
        ),
        section(
            "Spectra",
            "Power at each degree of the spherical harmonics. A prediction that follows the truth "
            "keeps its detail; where the error meets the truth, that scale is not predicted.",
            draw_spectra(
                titles,
                _power(seen.truth, problem.grid),
                [_power(p, problem.grid) for p in seen.predictions],
                [_power(p - seen.truth, problem.grid) for p in seen.predictions],
                names,
            ),
        ),
    ]


def _maps(problem: FieldProblem, titles: Sequence[str], seen: Seen, variable: int) -> str:
    name, unit = problem.variables[variable], problem.units[variable]

    def physical(u: torch.Tensor) -> NDArray[Any]:
        return problem.statistics.denormalise(u, problem.grid)[variable].numpy()

    inputs, truth = physical(seen.inputs[0]), physical(seen.truth[0])
    predictions = [physical(p[0]) for p in seen.predictions]
    errors = [p - truth for p in predictions]
    low, high = float(truth.min()), float(truth.max())
    if low < 0 < high:
        low, high = -max(-low, high), max(-low, high)
    worst = max(float(np.abs(e).max()) for e in errors) or 1.0
    hours, markup = problem.lead / 3600, ""
    for projection, centre, words in VIEWS:
        plt = pyplot()
        wide = projection == "mollweide"
        columns = 1 + len(predictions)
        cell = (4.4, 2.35) if wide else (3.5, 3.5)
        figure, axes = plt.subplots(
            2, columns, figsize=(cell[0] * columns + 1, 2 * cell[1] + 0.9), layout="constrained"
        )
        tops = [("input", inputs), *((t, p) for t, p in zip(titles, predictions, strict=True))]
        bottoms = [
            ("truth", truth),
            *((f"error of {t}", e) for t, e in zip(titles, errors, strict=True)),
        ]
        drawn: dict[str, Any] = {}
        for row, cells in enumerate((tops, bottoms)):
            for column, (title, u) in enumerate(cells):
                kind = "error" if row and column else "field"
                limits = (-worst, worst) if kind == "error" else (low, high)
                ax = axes[row, column]
                drawn[kind] = draw_map(
                    ax,
                    *smooth(u, problem.grid),
                    projection=projection,
                    centre=centre,
                    limits=limits,
                    cmap="PuOr_r" if kind == "error" else "RdBu_r",
                )
                ax.set_title(title, fontsize=11)
        label = f"{name} ({unit})" if unit else name
        figure.colorbar(drawn["field"], ax=axes[0, :], shrink=0.85, label=label)
        figure.colorbar(drawn["error"], ax=axes[1, :], shrink=0.85, label=f"error of {label}")
        figure.suptitle(f"{name}, {hours:g} h ahead, {words}", fontsize=13)
        markup += embedded(figure, f"Maps of {name}: input, truth, predictions and errors, {words}")
    return markup


def _by_ring(error: torch.Tensor, grid: Grid) -> NDArray[np.float64]:
    """Root mean square over samples and each ring: (variables, rings)."""
    squares = (error.double() ** 2).flatten(2).mean(0).numpy()
    return np.sqrt(np.add.reduceat(squares, grid.ringstart, axis=1) / grid.nphi)


def _power(u: torch.Tensor, grid: Grid) -> NDArray[np.float64]:
    lmax = grid.lmax
    return ops.power_spectrum(ops.sht(u.double(), grid, lmax)).mean(0).numpy()
