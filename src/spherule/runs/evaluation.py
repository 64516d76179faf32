"""Evaluation on test samples, kept beside the run with what it was measured on."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from spherule import checks
from spherule.files import read_json, write_json
from spherule.runs.run import Run
from spherule.train import ranks
from spherule.train.measure import measure
from spherule.train.task import Log, Task

KEYS: dict[str, type] = {
    "step": int,
    "columns": dict,
    "test": dict,
    "measured_on": dict,
    "title": str,
    "recipe": str,
    "parameters": int,
    "torch": str,
}
"""What is kept of an evaluation, and is of use in tables."""


@checks.arguments
def evaluate(
    run: Run,
    task: Task | None = None,
    *,
    samples: int | None = None,
    batch: int = 4,
    device: str = "auto",
    log: Log = print,
) -> dict[str, Any]:
    """Measure a run's model on test samples, keep the numbers beside it, and return them.

    Processes under torchrun share each sample.
    """
    where = ranks.choose_device(device)
    epochs = {r["step"]: r for r in run.directory.records() if "validation" in r}
    epoch = epochs.get(run.checkpoint.step, {})
    with ranks.process_group(where) as (rank, _):
        task = run.task(log) if task is None else task
        task, model = ranks.spread_both(task, run.model.to(where), ranks.whole_mesh(where))
        measured = measure(task, model, "test", samples=samples, batch=batch, device=where)
    values = measured.compute()
    result = {
        "recipe": run.name,
        "title": run.config.title,
        "task": run.config.task.name,
        "model": type(model).__name__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "step": run.checkpoint.step,
        "torch": torch.__version__,
        "training_loss": epoch.get("training_loss"),
        "validation_loss": epoch.get("validation", {}).get("loss"),
        "columns": dict(task.columns),
        "measured_on": {
            "grid": task.grid.name,
            "samples": task.test_samples if samples is None else samples,
            **task.test_data(),
        },
        "test": {name: dataclasses.asdict(value) for name, value in values.items()},
    }
    if rank != 0:
        return result
    try:
        write_json(run.directory.evaluation, result)
        log(f"over {values['loss'].count} samples; wrote {run.directory.evaluation}")
    except OSError as error:
        log(f"note: the evaluation is not kept: {error}")
    return result


@checks.arguments
def evaluated(
    directories: Sequence[Path | str], *, device: str = "auto", log: Log = print
) -> list[dict[str, Any]]:
    """What evaluations of these runs say. Those that are missing, of another checkpoint than the
    best, or over another number of samples than the rest, are made anew.
    """
    runs = [Run.open(directory) for directory in directories]
    kept = [kept_evaluation(run) for run in runs]
    counts = {result["measured_on"]["samples"] for result in kept if result}
    if None in kept or len(counts) > 1:
        # All by default, so that numbers over more samples or fewer don't stand side by side.
        kept = [
            result if result and _by_default(run, result) else None
            for run, result in zip(runs, kept, strict=True)
        ]
    return [
        result or evaluate(run, device=device, log=log)
        for run, result in zip(runs, kept, strict=True)
    ]


def kept_evaluation(run: Run) -> dict[str, Any] | None:
    """What an evaluation of this checkpoint has kept; None: it can be made again."""
    try:
        result = read_json(run.directory.evaluation, **KEYS)
        tested, measured = result["test"], result["measured_on"]
        numbers = [tested[name][part] for name in result["columns"] for part in ("mean", "std")]
        numbers += [x for x in (result["training_loss"],) if x is not None]
        whole = all(type(x) is float for x in numbers)
        whole = whole and all(type(x) is str for x in result["columns"].values())
        whole = whole and type(measured["samples"]) is int and type(measured["grid"]) is str
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # of 0.1.0, or damaged
        return None
    return result if whole and result["step"] == run.checkpoint.step else None


def _by_default(run: Run, result: dict[str, Any]) -> bool:
    return bool(result["measured_on"]["samples"] == run.task().test_samples)
