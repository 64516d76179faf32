"""Scores of forecasts in their variables' own units, beside what costs nothing."""

from collections.abc import Sequence

from spherule.report.table import Cell, ResultsTable, red
from spherule.runs.scores import Scores

HEADINGS = ("Variable", "forecast", "RMSE ↓", "bias", "ACC ↑", "detail")
NOTE = (
    "RMSE, bias and ACC over the test samples, weighted by area; ACC against the climatology of "
    "the training data. Detail: power in the upper half of the degrees as a part of the truth's."
)


def score_table(titles: Sequence[str], scores: Sequence[Scores]) -> ResultsTable:
    """A row for each variable and forecast; persistence and the like stand once where all were
    measured on the same samples, which the RMSE of persistence tells.
    """
    rows: list[tuple[Cell, ...]] = []
    first = scores[0]
    alike = all(
        (s.rmse[1] == first.rmse[1]).all() for s in scores if s.rmse.shape == first.rmse.shape
    )
    for v, (name, unit) in enumerate(zip(first.variables, first.units, strict=True)):
        label = f"{name} ({unit})" if unit else name
        lines = [(title, s, 0) for title, s in zip(titles, scores, strict=True)]
        for title, s in zip(titles, scores, strict=True) if not alike else [("", first)]:
            of = f" of {title}" if title else ""
            lines += [(f"{s.forecasts[f]}{of}", s, f) for f in range(1, len(s.forecasts))]
        for i, (title, s, f) in enumerate(lines):
            values = (s.rmse[f, v], s.bias[f, v], s.acc[f, v], s.spectra[f, v])
            cells = (Cell("" if value != value else f"{value:.4g}") for value in values)
            rows.append((Cell(label if i == 0 else ""), Cell(title), *cells))
    return ResultsTable(HEADINGS, tuple(rows), NOTE)


def warnings(titles: Sequence[str], scores: Sequence[Scores]) -> list[str]:
    """A sentence for each variable in which a model loses to something free."""
    several = len(titles) > 1
    return [
        f"{title}: {sentence}" if several else sentence
        for title, s in zip(titles, scores, strict=True)
        for sentence in s.losses()
    ]


def markup(titles: Sequence[str], scores: Sequence[Scores]) -> str:
    """The table for a page, and in red what a model is not good at."""
    return score_table(titles, scores).html() + red(warnings(titles, scores))
