"""Evaluation on test samples, kept beside the run."""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import torch

from spherule.train.journal import read_journal
from spherule.train.measure import measure
from spherule.train.problem import Problem
from spherule.train.run import EVALUATION, Run


def evaluate(
    run: Run, problem: Problem, *, samples: int | None = None, batch: int = 4
) -> dict[str, Any]:
    """Measure a run's model on test samples, write `evaluation.json`, and return what it says."""
    epochs = {r["step"]: r for r in read_journal(run.directory) if "validation" in r}
    epoch = epochs.get(run.checkpoint.step, {})
    values = measure(problem, run.model, "test", samples=samples, batch=batch).compute()
    result = {
        "recipe": run.name,
        "title": run.config.title,
        "model": type(run.model).__name__,
        "parameters": sum(p.numel() for p in run.model.parameters()),
        "grid": run.model.grid.name,
        "step": run.checkpoint.step,
        "torch": torch.__version__,
        "training_loss": epoch.get("training_loss"),
        "validation_loss": epoch.get("validation", {}).get("loss"),
        "columns": dict(problem.columns),
        "test": {name: dataclasses.asdict(value) for name, value in values.items()},
    }
    new = run.directory / f"{EVALUATION}.new"
    new.write_text(json.dumps(result, indent=2) + "\n")
    os.replace(new, run.directory / EVALUATION)
    return result


def evaluated(directory: Path) -> dict[str, Any]:
    """What an evaluation of this run found; it is made if there is none of the best checkpoint."""
    run = Run.open(directory)
    path = directory / EVALUATION
    if path.exists():
        result: dict[str, Any] = json.loads(path.read_text())
        if result.get("step") == run.checkpoint.step:
            return result
    return evaluate(run, run.data())
