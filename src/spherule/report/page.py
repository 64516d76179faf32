"""One self-contained page about runs of one task."""

import html
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path

import torch

import spherule
from spherule.report.curves import draw_losses
from spherule.report.fields import field_sections
from spherule.report.panoramas import panorama_sections
from spherule.report.style import page, section
from spherule.report.table import results_table
from spherule.train import Run
from spherule.train.fields import FieldProblem
from spherule.train.journal import read_journal
from spherule.train.panoramas import PanoramaProblem

_TASKS = {
    "swe": "Shallow water on the rotating sphere",
    "seg": "Segmentation of panoramas",
    "depth": "Depth of panoramas",
    "forecast": "Forecast",
}


def write_report(out: Path, directories: Sequence[Path]) -> None:
    """Evaluate the runs where that has not been done, draw, and write the page."""
    table = results_table(directories)
    runs = [Run.open(directory) for directory in directories]
    titles = [run.config.title for run in runs]
    if len(set(titles)) < len(titles):
        titles = [f"{t} ({run.directory.name})" for t, run in zip(titles, runs, strict=True)]
    problem = runs[0].data()
    models = [run.model for run in runs]
    if isinstance(problem, FieldProblem):
        details = field_sections(problem, titles, models)
    else:
        assert isinstance(problem, PanoramaProblem)
        details = panorama_sections(problem, titles, models)
    heading = _TASKS.get(runs[0].name.partition("/")[0], "Run")
    journals = [read_journal(directory) for directory in directories]
    body = [
        f"<h1>{heading}</h1>",
        f'<p class="lead">{html.escape(" · ".join(titles))}, trained and measured on '
        f"{html.escape(problem.grid.name)}.</p>",
        section(
            "Results", "The paper's columns, on samples that no model was trained on.", table.html()
        ),
        section("Training", "", draw_losses(titles, journals)),
        *details,
        section(
            "How it was made",
            "",
            *(_provenance(t, run) for t, run in zip(titles, runs, strict=True)),
        ),
        f"<footer>spherule {spherule.__version__}, torch {torch.__version__}, "
        f"python {platform.python_version()}, {torch.get_num_threads()} threads.</footer>",
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    new = out.with_name(out.name + ".new")
    new.write_text(page(heading, "\n".join(body)) + "\n", encoding="utf-8")
    os.replace(new, out)


def _provenance(title: str, run: Run) -> str:
    config = html.escape(json.dumps(run.config.to_dict(), indent=2))
    command = html.escape(f"spherule train {run.name} --out {run.directory.name}")
    return (
        f"<details><summary>{html.escape(title)}: {command}, step {run.checkpoint.step}</summary>"
        f"<pre>{config}</pre></details>"
    )
