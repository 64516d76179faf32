"""The paper's table: a row a run, mean and deviation over test samples."""

import html
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spherule.recipes.paper import (
    DEPTH,
    MODELS,
    PUBLISHED,
    SEGMENTATION,
    SHALLOW_WATER,
    SPHERE_UFORMER,
)
from spherule.report.style import page, printable
from spherule.runs.evaluation import evaluated
from spherule.train.task import Log

_SEEN, _WIDEST = 6, 30
"""Sentences before the rest is folded away; characters of a cell before it is wrapped."""


@dataclass(frozen=True)
class Cell:
    """What stands there, and what it is ranked by."""

    text: str
    value: float | None = None


@dataclass(frozen=True)
class ResultsTable:
    """Headings (an arrow says which way is better) and rows of cells."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str

    def markdown(self) -> str:
        lines = [
            self._line(self.headings),
            self._line("---" if i == 0 else "---:" for i in range(len(self.headings))),
        ]
        best = self.best()
        for row in self.rows:
            cells = (
                f"**{c.text}**" if c.value is not None and c.value == best[i] else c.text
                for i, c in enumerate(row)
            )
            lines.append(self._line(cells))
        return "\n".join([*lines, "", self.note])

    def html(self) -> str:
        best = self.best()
        head = "".join(f"<th>{html.escape(h)}</th>" for h in self.headings)
        body = ""
        for row in self.rows:
            cells = "".join(
                f"<td{_look(c, best[i])}>{html.escape(c.text)}</td>" for i, c in enumerate(row)
            )
            body += f"<tr>{cells}</tr>\n"
        return (
            f"<div class=scroll><table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
            f"</table></div>\n<p class=note>{html.escape(self.note)}</p>"
        )

    def best(self) -> list[float | None]:
        """The best value of each column, where there is something to choose from."""
        found: list[float | None] = []
        for i, heading in enumerate(self.headings):
            values = [row[i].value for row in self.rows]
            known = [v for v in values if v is not None]
            choose = {"↓": min, "↑": max}.get(heading[-1:])
            found.append(choose(known) if choose and len(known) > 1 else None)
        return found

    @staticmethod
    def _line(cells: Iterable[str]) -> str:
        """A row; what a title holds of bars and lines' ends is no part of the table."""
        texts = (re.sub(r"[\r\n]+", " ", printable(cell)).replace("|", "\\|") for cell in cells)
        return f"| {' | '.join(texts)} |"


def comparison_page(tables: Sequence[ResultsTable], bad: Sequence[str] = ()) -> str:
    """A page of its own; what is bad is said in red."""
    inner = "\n".join(table.html() for table in tables) + red(bad)
    return page("Comparison of runs", f"<h1>Comparison of runs</h1>\n{inner}")


def red(sentences: Sequence[str]) -> str:
    """Paragraphs that are seen; many are folded away but for the first."""
    lines = [f"<p class=bad>{html.escape(sentence)}</p>" for sentence in sentences]
    seen, more = "".join(lines[:_SEEN]), lines[_SEEN:]
    if not more:
        return seen
    return f"{seen}<details><summary>{len(more)} more like these</summary>{''.join(more)}</details>"


def _look(cell: Cell, best: float | None) -> str:
    """Its class: the best of a column, or a name so long that it takes several lines."""
    if cell.value is not None and cell.value == best:
        return " class=best"
    return " class=long" if len(cell.text) > _WIDEST else ""


def results_table(
    directories: Sequence[Path], *, paper: bool = False, device: str = "auto", log: Log = print
) -> ResultsTable:
    """The table of these runs, which are evaluated where they have not been. With `paper`, what the
    paper reports follows each row that it has.
    """
    if not directories:
        raise ValueError("give the directory of at least one run")
    results = evaluated(directories, device=device, log=log)
    columns = results[0]["columns"]
    for directory, result in zip(directories, results, strict=True):
        if result["columns"] != columns:
            raise ValueError(
                f"{directory} ({result['recipe']}) and {directories[0]} ({results[0]['recipe']}) "
                "are runs of different tasks: their metrics can't stand in one table"
            )
    headings = ("Model", "parameters", "training loss ↓", *columns.values())
    rows = []
    for directory, result in zip(directories, results, strict=True):
        training = result["training_loss"]
        rows.append(
            (
                Cell(result["title"].strip() or Path(directory).name),
                Cell(f"{result['parameters']:,}"),
                Cell("" if training is None else f"{training:.{_digits(training)}f}", training),
                *(_mean_and_deviation(result["test"][name]) for name in columns),
            )
        )
    table = _with_data(headings, rows, [result["measured_on"] for result in results])
    return _beside_paper(table, results) if paper else table


def _beside_paper(table: ResultsTable, results: list[dict[str, Any]]) -> ResultsTable:
    rows: list[tuple[Cell, ...]] = []
    for row, result in zip(table.rows, results, strict=True):
        rows.append(row)
        published = PUBLISHED.get(result["recipe"].partition(":")[0])
        if published is not None:
            known = [published.metrics.get(name) for name in result["columns"]]
            # Between the title and the numbers: parameters, and what it was measured on.
            between = [Cell("")] * (len(row) - len(known) - 2)
            metrics = [Cell("" if v is None else f"{v[0]:.3f} ± {v[1]:.3f}") for v in known]
            training = Cell(f"{published.training_loss:.3f}")
            rows.append((Cell("  in the paper"), *between, training, *metrics))
    note = (
        "Rows of the paper: its training and validation losses at its own size and data; docs/"
        "results.md says what is comparable."
    )
    return ResultsTable(table.headings, tuple(rows), f"{table.note} {note}")


def paper_tables() -> list[ResultsTable]:
    """What the paper reports: its three tables of results, and its overview of models."""
    tables = []
    for heading, table, columns in (
        ("Shallow water", SHALLOW_WATER, {"loss": "loss ↓", "l1": "L₁ ↓", "l2": "L₂ ↓"}),
        ("Segmentation", SEGMENTATION, {"loss": "loss ↓", "iou": "IoU ↑", "accuracy": "Acc ↑"}),
        ("Depth", DEPTH, {"loss": "loss ↓", "l1": "L₁ ↓", "sobolev": "W¹·¹ ↓"}),
    ):
        rows = [
            (
                Cell(name),
                Cell(f"{row.training_loss:.3f}", row.training_loss),
                *(Cell(f"{m:.3f} ± {s:.3f}", m) for m, s in row.metrics.values()),
            )
            for name, row in table.items()
        ]
        if heading == "Segmentation":
            others = [Cell(f"{value:.3f}") for value in SPHERE_UFORMER.values()]
            rows.append((Cell("SphereUFormer, 256x512"), Cell(""), Cell(""), *others))
        headings = (heading, "training loss ↓", *columns.values())
        tables.append(ResultsTable(headings, tuple(rows), "As published."))
    models = [
        (Cell(name), Cell(m.convolution), Cell(m.attention), Cell(f"{m.parameters:,}"))
        for name, m in MODELS.items()
    ]
    headings = ("Model", "encoder and decoder", "attention", "parameters")
    tables.append(ResultsTable(headings, tuple(models), "With 3 input channels and 1 output."))
    return tables


def _with_data(
    headings: tuple[str, ...], rows: list[tuple[Cell, ...]], measured: list[dict[str, Any]]
) -> ResultsTable:
    """Numbers over the same samples are compared; else a column says what each is over."""
    note = "Training loss: mean over the epoch of the best checkpoint. Others: mean ± deviation "
    first = measured[0]
    if all(data == first for data in measured):
        note += (
            f"over {first['samples']} test samples on {first['grid']}, integrated over the sphere. "
            "The best of each column is marked."
        )
        return ResultsTable(headings, tuple(rows), note)
    note += (
        "over test samples, integrated over the sphere. They are not all over the same samples, so "
        "no best is marked."
    )
    rows = [
        (row[0], Cell(f"{data['samples']} samples on {data['grid']}"), *map(_unranked, row[1:]))
        for row, data in zip(rows, measured, strict=True)
    ]
    return ResultsTable((headings[0], "measured on", *headings[1:]), tuple(rows), note)


def _unranked(cell: Cell) -> Cell:
    return Cell(cell.text)


def _mean_and_deviation(value: dict[str, float]) -> Cell:
    digits = _digits(value["mean"]) if abs(value["mean"]) < 0.1 else 3
    return Cell(f"{value['mean']:.{digits}f} ± {value['std']:.{digits}f}", value["mean"])


def _digits(value: float) -> int:
    """After the point: four, or as many as show two that count."""
    size = abs(value)
    return max(4, 1 - math.floor(math.log10(size))) if 1e-12 < size < math.inf else 4
