"""Forecasts of many days beside the solver's, from held-out states of a shallow water run.

    python results/rollouts.py runs/a runs/b ... --days 30 --out results/rollouts-small.json

Of each day and variable: the error in deviations, the correlation with the truth (of what differs
from the mean over the sphere), and the variance of model and truth, at its end and on average over
its leads (waves make it swing within a day). Spectra on some days. And what
the model makes of noise: the gain of each degree over one lead. Persistence stands beside them.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from spherule import ops
from spherule.grids import Grid
from spherule.runs import Run
from spherule.train.batches import first_samples

SPECTRA_ON = (1, 5, 10, 30)
NOISE = 0.01
"""In deviations, all degrees of the model's grid alike."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--states", type=int, default=8)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text()) if options.out.exists() else {}
    for path in options.runs:
        rows[path.name] = follow(Run.open(path), options.days, options.states)
        options.out.write_text(json.dumps(rows) + "\n")


@torch.no_grad()
def follow(run: Run, days: int, states: int) -> dict[str, object]:
    task, model = run.task(), run.model.eval()
    grid = task.grid
    a_day = round(86400 / task.lead)
    start, *truth = first_samples(task.trajectories(days * a_day), states)
    result: dict[str, list] = {
        key: []
        for key in (
            "error",
            "persistence",
            "correlation",
            "model",
            "truth",
            "model_day",
            "truth_day",
        )
    }
    day_of: dict[str, list[Tensor]] = {"model_day": [], "truth_day": []}
    spectra = {}
    state = start
    for lead, target in enumerate(truth, 1):
        state = task.step(model, state)
        day_of["model_day"].append(variance(state, grid).mean(0))
        day_of["truth_day"].append(variance(target, grid).mean(0))
        if lead % a_day:
            continue
        for key, leads in day_of.items():
            result[key].append(torch.stack(leads).mean(0).tolist())
            leads.clear()
        day = lead // a_day
        result["error"].append(variance(state - target, grid, mean=True).sqrt().mean(0).tolist())
        result["persistence"].append(
            variance(start - target, grid, mean=True).sqrt().mean(0).tolist()
        )
        result["correlation"].append(correlation(state, target, grid).mean(0).tolist())
        result["model"].append(variance(state, grid).mean(0).tolist())
        result["truth"].append(variance(target, grid).mean(0).tolist())
        if day in SPECTRA_ON:
            spectra[day] = {"model": spectrum(state, grid), "truth": spectrum(target, grid)}
        ratio = np.array(result["model"][-1]) / result["truth"][-1]
        error = np.round(result["error"][-1], 3)
        print(f"{run.name} day {day}: error {error}, variance x {ratio.round(3)}", flush=True)
    return {
        "title": run.config.title,
        "variables": list(task.variables),
        "lead": task.lead,
        "states": states,
        **result,
        "spectra": spectra,
        "gain": gain(task, model, start),
    }


def variance(u: Tensor, grid: Grid, *, mean: bool = False) -> Tensor:
    """Over the sphere; with `mean`, about 0."""
    u = u if mean else u - average(u, grid)
    return average(u**2, grid).flatten(2).squeeze(-1)


def correlation(u: Tensor, v: Tensor, grid: Grid) -> Tensor:
    u, v = u - average(u, grid), v - average(v, grid)
    norms = average(u**2, grid) * average(v**2, grid)
    return (average(u * v, grid) / norms.sqrt()).flatten(2).squeeze(-1)


def average(u: Tensor, grid: Grid) -> Tensor:
    weights = torch.from_numpy(grid.weights).to(u)
    dims = tuple(range(-weights.ndim, 0))
    return (u * weights).sum(dims, keepdim=True) / weights.sum()


def spectrum(u: Tensor, grid: Grid) -> list:
    power = ops.power_spectrum(ops.sht(u.double(), grid, grid.lmax)).mean(0)
    return [[float(f"{p:.4g}") for p in variable] for variable in power]


def gain(task: object, model: torch.nn.Module, state: Tensor) -> list:
    """Of each variable and degree: deviation of the noise a lead later over that of the noise."""
    grid = task.grid
    torch.manual_seed(0)
    power = torch.ones(grid.lmax + 1, dtype=torch.float64)
    power *= NOISE**2 * 4 * torch.pi / (2 * torch.arange(grid.lmax + 1) + 1).sum()
    noise = ops.random_field(power, grid, state.shape[:2]).to(state)
    difference = task.step(model, state + noise) - task.step(model, state)
    before, after = (np.array(spectrum(u, grid)) for u in (noise, difference))
    return np.sqrt(after / before).round(4).tolist()


if __name__ == "__main__":
    main()
