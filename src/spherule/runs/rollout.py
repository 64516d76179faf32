"""A model following its own predictions, beside what really happened, and beside doing nothing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks
from spherule.data import Statistics
from spherule.data.times import span
from spherule.distributed import Shards, gathered, power_spectrum, summed, whole
from spherule.grids import Grid
from spherule.objectives import l2
from spherule.runs.run import Run
from spherule.train import ranks
from spherule.train.batches import first_samples, on_shards, to_device
from spherule.train.task import Log


@dataclass(frozen=True, eq=False)
class Rollout:
    """Errors and spectra of forecasts that are started from test samples."""

    title: str
    grid: Grid
    variables: tuple[str, ...]
    units: tuple[str, ...]
    leads: int
    """That were asked for."""
    hours: NDArray[np.float64]
    """Of each prediction, from the first."""
    model_error: NDArray[np.float64]
    """(leads, variables): root mean square over the sphere, in deviations, mean over samples; NaN
    where the truth is missing.
    """
    persistence_error: NDArray[np.float64]
    """The same, of the first state standing still."""
    spectra: dict[str, NDArray[np.float64]]
    """`model` and `truth`: power of each degree (leads, variables, degrees), mean over samples."""
    frames: dict[str, NDArray[np.float32]]
    """`model` and `truth`: the first sample (leads + 1, variables, *shape), in deviations."""
    statistics: Statistics
    """That make them physical."""
    earth: bool = False
    """Whether coasts belong on maps of it."""


@torch.no_grad()
@checks.arguments
def roll_out(
    run: Run, hours: float, *, samples: int = 4, device: str = "auto", log: Log = print
) -> Rollout:
    """Follow some test samples, or as many as there are, for so many hours, or as far as the test
    data go. It ends early, with what there is, should the model's fields cease to be finite, and is
    an error if they never were.
    Processes under torchrun share each sample.
    """
    checks.integer("samples", samples, low=1)
    checks.number("hours", hours, above=0)
    where = ranks.choose_device(device)
    with ranks.process_group(where):
        return _rolled_out(run, hours, samples, where, log)


def _rolled_out(run: Run, hours: float, samples: int, where: torch.device, log: Log) -> Rollout:
    if not run.is_forecast:
        raise ValueError(f"{run.directory.path}: {run.name} is no forecast; nothing to roll out")
    model = run.model.to(where).eval()
    task, model = ranks.spread_both(run.task(), model, ranks.whole_mesh(where))
    leads = round(hours * 3600 / task.lead)
    if leads < 1:
        raise ValueError(f"hours={hours}: the model's lead is {span(task.lead)}")
    longest = task.longest()
    if longest is not None and leads > longest:
        log(
            f"note: the test data can be followed for {span(longest * task.lead)}, not for "
            f"{span(hours * 3600)}; the rollout ends there"
        )
        leads = longest
    dataset, place = task.trajectories(leads), task.grid
    if isinstance(place, Shards):
        dataset = on_shards(dataset, place)
    present = samples if task.endless else min(samples, len(dataset))
    start, *truth = to_device(first_samples(dataset, present), where)
    state, predictions = start, []
    for _ in range(leads):
        prediction = task.step(model, state)
        if summed((~prediction.isfinite()).sum(), place):
            break
        predictions.append(prediction)
        state = task.following(prediction, state)
    if not predictions:
        raise FloatingPointError(f"{run.config.title}: the first prediction is not finite already")
    truth = truth[: len(predictions)]

    def error(forecast: Tensor, target: Tensor) -> Tensor:
        known = target.isfinite()
        channels = zip(*(u.split(1, dim=1) for u in (forecast, target, known)), strict=True)
        errors = torch.stack([l2(f, t, place, mask=k) for f, t, k in channels], dim=1)
        return errors.sum(0) / (summed(known.flatten(2).sum(-1), place) > 0).sum(0)

    def spectrum(state: Tensor, known: Tensor) -> Tensor:
        seen = torch.where(known.isfinite(), state.double(), 0.0)
        return power_spectrum(seen, place, grid.lmax).mean(0)

    def first(states: list[Tensor]) -> NDArray[np.float32]:
        return gathered(torch.stack([s[0] for s in states]).float(), place).cpu().numpy()

    grid, pairs = whole(place), list(zip(predictions, truth, strict=True))
    return Rollout(
        title=run.config.title,
        grid=grid,
        variables=task.variables,
        units=task.units,
        leads=leads,
        hours=np.arange(1, len(pairs) + 1) * task.lead / 3600,
        model_error=_rows([error(p, t) for p, t in pairs]),
        persistence_error=_rows([error(start.nan_to_num(0.0), t) for _, t in pairs]),
        spectra={
            "model": _rows([spectrum(p, t) for p, t in pairs]),
            "truth": _rows([spectrum(t, t) for _, t in pairs]),
        },
        frames={
            "model": first([start, *(task.following(p, start) for p in predictions)]),
            "truth": first([start, *truth]),
        },
        statistics=task.statistics,
        earth=task.earth,
    )


def _rows(tensors: list[Tensor]) -> NDArray[np.float64]:
    return torch.stack(tensors).double().cpu().numpy()
