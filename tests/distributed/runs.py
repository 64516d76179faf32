"""What tests have ranks do with runs. All four share each sample."""

from pathlib import Path
from typing import Any

import numpy as np

from spherule.data.shallow_water import ShallowWaterDataset
from spherule.distributed import Shards
from spherule.runs import Run, evaluate, predict, roll_out, score, train
from spherule.train import RunConfig
from tests.tiny import silent


def trained(mesh: Any, config: RunConfig, directory: Path) -> None:
    train(config, directory, log=silent)


def measured(mesh: Any, directory: Path) -> dict[str, Any]:
    """All numbers that commands show of a forecast."""
    run = Run.open(directory)
    result = evaluate(run, samples=2, log=silent)
    scores = score(run, samples=2)
    rollout = roll_out(run, 3.0, samples=2, log=silent)
    return {
        "count": result["test"]["loss"]["count"],
        **{name: np.array(value["mean"]) for name, value in result["test"].items()},
        **{name: getattr(scores, name) for name in ("rmse", "bias", "acc", "spectra")},
        **{f"rollout {name}": getattr(rollout, name) for name in ("hours", "model_error")},
        **{f"spectra {name}": values for name, values in rollout.spectra.items()},
        **{f"frames {name}": values for name, values in rollout.frames.items()},
        "persistence": rollout.persistence_error,
    }


def judged(mesh: Any, directory: Path) -> dict[str, Any]:
    """Metrics of panoramas."""
    result = evaluate(Run.open(directory), log=silent)
    return {name: (value["mean"], value["count"]) for name, value in result["test"].items()}


def predicted(mesh: Any, directory: Path, source: Path, target: Path, steps: int) -> None:
    predict(Run.open(directory), source, target, steps=steps, log=silent)


def made(mesh: Any, config: Any) -> float:
    """How far a rank's part of a sample is from that of the whole."""
    whole = ShallowWaterDataset(config, seed=3, leads=2)
    shards = Shards(whole.grid, mesh)
    part = whole.on(shards)[5]
    return max(
        (a - shards.scatter(b)).abs().max().item() for a, b in zip(part, whole[5], strict=True)
    )
