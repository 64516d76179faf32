"""Scores of forecasts in their variables' own units, beside what costs nothing."""

import itertools
from collections.abc import Sequence

from spherule.report.table import Cell, ResultsTable, red
from spherule.runs.scores import Scores

HEADINGS = ("Variable", "forecast", "RMSE ↓", "bias", "ACC ↑", "detail")
NOTE = (
    "RMSE, bias and ACC over the test samples, weighted by area; ACC against the climatology of "
    "the training data. Detail: power in the upper half of the degrees as a part of the truth's."
)


def score_table(titles: Sequence[str], scores: Sequence[Scores]) -> ResultsTable:
    """A row for each variable and each forecast of it; persistence and the like stand once where
    all were measured on the same samples, which the RMSE of persistence tells.
    """
    rows: list[tuple[Cell, ...]] = []
    columns = [list(zip(s.variables, s.units, strict=True)) for s in scores]
    for variable in dict.fromkeys(itertools.chain.from_iterable(columns)):
        runs = [
            (title, s, of.index(variable))
            for title, s, of in zip(titles, scores, columns, strict=True)
            if variable in of
        ]
        alike = len({float(s.rmse[1, v]) for _, s, v in runs}) == 1
        lines = [(title, s, 0, v) for title, s, v in runs]
        for title, s, v in runs[:1] if alike else runs:
            of_run = "" if alike else f" of {title}"
            lines += [(f"{s.forecasts[f]}{of_run}", s, f, v) for f in range(1, len(s.forecasts))]
        name, unit = variable
        label = f"{name} ({unit})" if unit else name
        for title, s, f, v in lines:
            values = (s.rmse[f, v], s.bias[f, v], s.acc[f, v], s.spectra[f, v])
            cells = (Cell("" if value != value else f"{value:.4g}") for value in values)
            rows.append((Cell(label), Cell(title), *cells))
            label = ""
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
