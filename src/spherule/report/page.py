"""One self-contained page about runs of one task."""

import html
import json
import platform
from collections.abc import Sequence
from pathlib import Path

import torch

import spherule
from spherule.files import write_whole
from spherule.recipes.command import train_command
from spherule.report.curves import draw_losses
from spherule.report.figures import draw_sections
from spherule.report.score_table import markup
from spherule.report.style import page, section, styled
from spherule.report.table import results_table
from spherule.runs import Run
from spherule.runs.scores import scored
from spherule.train.figures import Section
from spherule.train.ranks import choose_device
from spherule.train.task import Log, Trained

LARGEST = 3_900_000
"""Bytes of a page; more, and it opens slowly and does not fit into a mail."""


@styled
def write_report(
    out: Path,
    directories: Sequence[Path],
    *,
    more: Sequence[Section] = (),
    device: str = "auto",
    log: Log = print,
) -> None:
    """Evaluate the runs where that has not been done, draw, and write the page, with what `more`
    there is to see.
    """
    runs = require_one_task(directories)
    table = results_table(directories, device=device, log=log)
    titles = [run.config.title.strip() or run.directory.path.name for run in runs]
    if len(set(titles)) < len(titles):
        titles = [f"{t} ({run.directory.path.name})" for t, run in zip(titles, runs, strict=True)]
    where = choose_device(device)
    models = [
        Trained(title, run.model.to(where), run.task(log), where)
        for title, run in zip(titles, runs, strict=True)
    ]
    heading = runs[0].config.task.title
    grids = dict.fromkeys(trained.task.grid.name for trained in models)
    journals = [run.directory.records() for run in runs]
    before = [
        f"<h1>{html.escape(heading)}</h1>",
        f'<p class="lead">{html.escape(" · ".join(titles))}, trained and measured on '
        f"{html.escape(' and '.join(grids))}.</p>",
        section(
            "Results", "The paper's columns, on samples that no model was trained on.", table.html()
        ),
        *_scores(titles, runs, device, log),
        section("Training", "", draw_losses(titles, journals)),
    ]
    after = [
        section(
            "How it was made",
            "",
            *(_provenance(t, run) for t, run in zip(titles, runs, strict=True)),
        ),
        f"<footer>spherule {spherule.__version__}, torch {torch.__version__}, "
        f"python {platform.python_version()}, {torch.get_num_threads()} threads.</footer>",
    ]
    room = LARGEST - sum(map(len, before + after))
    parts = draw_sections([*models[0].task.sections(models), *more], room=room)
    body = "\n".join(before + parts + after)
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, page(heading, body) + "\n")


def _scores(titles: Sequence[str], runs: Sequence[Run], device: str, log: Log) -> list[str]:
    """Of forecasts."""
    scores = scored(runs, device=device, log=log)
    if not scores:
        return []
    text = "In the variables' own units, beside forecasts that cost nothing."
    return [section("Scores", text, markup(titles, scores))]


def require_one_task(directories: Sequence[Path]) -> list[Run]:
    """The runs, which must be of one kind of task."""
    if not directories:
        raise ValueError("give the directory of at least one run")
    runs = [Run.open(directory) for directory in directories]
    for run in runs[1:]:
        if run.config.task.name != runs[0].config.task.name:
            raise ValueError(
                f"{run.directory.path} ({run.config.task.title}) and {runs[0].directory.path} "
                f"({runs[0].config.task.title}) are runs of different tasks"
            )
    return runs


def _provenance(title: str, run: Run) -> str:
    config = html.escape(json.dumps(run.config.to_dict(), indent=2))
    command = html.escape(train_command(run.config, run.directory.path.name))
    built = html.escape(
        f"{type(run.model).__name__} on {run.model.grid.name}, {run.model.in_channels} channels "
        f"in, {run.model.out_channels} out"
    )
    return (
        f"<p>{html.escape(title)}, step {run.checkpoint.step}:</p><pre>{command}</pre>"
        f"<details><summary>{built}; its config, for spherule train --config</summary>"
        f"<pre>{config}</pre></details>"
    )
