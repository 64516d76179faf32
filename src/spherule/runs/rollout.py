"""A model following its own predictions, beside what really happened, and beside doing nothing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks, ops
from spherule.data import Statistics
from spherule.data.times import span
from spherule.grids import Grid
from spherule.objectives import l2
from spherule.runs.run import Run
from spherule.train.batches import first_samples, to_device
from spherule.train.ranks import choose_device
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
    """(leads, variables): root mean square over the sphere, in deviations, mean over samples."""
    persistence_error: NDArray[np.float64]
    """The same, of the first state standing still."""
    spectra: dict[str, NDArray[np.float64]]
    """`model` and `truth`: power of each degree (leads, variables, degrees), mean over samples."""
    frames: dict[str, NDArray[np.float32]]
    """`model` and `truth`: the first sample (leads + 1, variables, *shape), in deviations."""
    statistics: Statistics
    """That make them physical."""


@torch.no_grad()
@checks.arguments
def roll_out(
    run: Run, hours: float, *, samples: int = 4, device: str = "auto", log: Log = print
) -> Rollout:
    """Follow some test samples, or as many as there are, for so many hours, or as far as the test
    data go. It ends early, with what there is, should the model's fields cease to be finite.
    """
    checks.integer("samples", samples, low=1)
    checks.number("hours", hours, above=0)
    where = choose_device(device)
    task, model = run.task(), run.model.to(where).eval()
    if not task.lead:
        raise ValueError(f"{run.directory.path}: {run.name} is no forecast; nothing to roll out")
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
    dataset = task.trajectories(leads)
    present = samples if task.endless else min(samples, len(dataset))
    start, *truth = to_device(first_samples(dataset, present), where)
    state, predictions = start, []
    for _ in range(leads):
        state = task.step(model, state)
        if not state.isfinite().all():
            break
        predictions.append(state)
    truth = [t.nan_to_num(0.0) for t in truth[: len(predictions)]]
    start = start.nan_to_num(0.0)
    grid = task.grid

    def error(forecast: Tensor, target: Tensor) -> Tensor:
        channels = [l2(f[:, None], t[:, None], grid).mean()
                    for f, t in zip(forecast.unbind(1), target.unbind(1), strict=True)]  # fmt: skip
        return torch.stack(channels)

    def spectrum(state: Tensor) -> Tensor:
        return ops.power_spectrum(ops.sht(state.double(), grid, grid.lmax)).mean(0)

    pairs = list(zip(predictions, truth, strict=True))
    return Rollout(
        title=run.config.title,
        grid=grid,
        variables=task.variables,
        units=task.units,
        leads=leads,
        hours=np.arange(1, len(pairs) + 1) * task.lead / 3600,
        model_error=_rows([error(p, t) for p, t in pairs]),
        persistence_error=_rows([error(start, t) for _, t in pairs]),
        spectra={
            "model": _rows([spectrum(p) for p, _ in pairs]),
            "truth": _rows([spectrum(t) for _, t in pairs]),
        },
        frames={
            "model": _rows([start[0], *(p[0] for p, _ in pairs)]).astype(np.float32),
            "truth": _rows([start[0], *(t[0] for _, t in pairs)]).astype(np.float32),
        },
        statistics=task.statistics,
    )


def _rows(tensors: list[Tensor]) -> NDArray[np.float64]:
    return torch.stack(tensors).double().cpu().numpy() if tensors else np.zeros((0,))
