"""A model following its own predictions, beside what really happened, and beside doing nothing."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import ops
from spherule.models import Model
from spherule.objectives import l2
from spherule.train.fields import FieldProblem
from spherule.train.measure import first_samples


@dataclass(frozen=True, eq=False)
class Rollout:
    """Errors and spectra of forecasts that are started from test samples."""

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


@torch.no_grad()
def roll_out(problem: FieldProblem, model: Model, leads: int, *, samples: int = 4) -> Rollout:
    """Follow some test samples, or as many as there are, for so many leads. It ends early, with
    what there is, should the model's fields cease to be finite.
    """
    model.eval()
    dataset = problem.followed(leads)
    there = samples if problem.endless else min(samples, len(dataset))
    start, *truth = first_samples(dataset, there)
    state, predictions = start, []
    for _ in range(leads):
        state = problem.step(model, state)
        if not state.isfinite().all():
            break
        predictions.append(state)
    truth = [t.nan_to_num(0.0) for t in truth[: len(predictions)]]
    start = start.nan_to_num(0.0)

    def error(forecast: Tensor, target: Tensor) -> Tensor:
        channels = [l2(f[:, None], t[:, None], problem.grid).mean()
                    for f, t in zip(forecast.unbind(1), target.unbind(1), strict=True)]  # fmt: skip
        return torch.stack(channels)

    pairs = list(zip(predictions, truth, strict=True))
    return Rollout(
        hours=np.arange(1, len(pairs) + 1) * problem.lead / 3600,
        model_error=_rows([error(p, t) for p, t in pairs]),
        persistence_error=_rows([error(start, t) for _, t in pairs]),
        spectra={
            "model": _rows([_spectrum(p, problem) for p, _ in pairs]),
            "truth": _rows([_spectrum(t, problem) for _, t in pairs]),
        },
        frames={
            "model": _rows([start[0], *(p[0] for p, _ in pairs)]).astype(np.float32),
            "truth": _rows([start[0], *(t[0] for _, t in pairs)]).astype(np.float32),
        },
    )


def _spectrum(state: Tensor, problem: FieldProblem) -> Tensor:
    coeffs = ops.sht(state.double(), problem.grid, problem.grid.lmax)
    return ops.power_spectrum(coeffs).mean(0)


def _rows(tensors: list[Tensor]) -> NDArray[np.float64]:
    return torch.stack(tensors).double().numpy() if tensors else np.zeros((0,))
