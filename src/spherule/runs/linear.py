"""The linear map that a forecast stands beside."""

import numpy as np
import torch

from spherule.models import Linear, LinearConfig
from spherule.models.least_squares import ENOUGH
from spherule.tasks.fields import FieldTask
from spherule.train import ranks

REACH = 3
"""Degrees on either side that a zonal map finds each from."""
MEMORY = 2**28
"""Bytes of a zonal map's equations; where they need more, it is not tried."""
VALIDATION = 32
"""Samples that two maps are compared on, at most."""


def best_linear(task: FieldTask) -> tuple[Linear, str]:
    """With matrices per degree, or per degree and order if there are samples enough to fit them and
    they err less on validation data; the same on all ranks.
    """
    maps = {"per degree": Linear(LinearConfig(), task.grid, task.in_channels, task.out_channels)}
    if _zonal_fits(task, maps["per degree"].mix.harmonics.degree):
        config = LinearConfig(reach=REACH)
        maps["per degree and order"] = Linear(
            config, task.grid, task.in_channels, task.out_channels
        )
    for linear in maps.values():
        if ranks.is_first():
            linear.fit(task.fitting_batches(linear.fitting_samples))
        ranks.agree(linear)
    errors = {kind: _error(task, linear) for kind, linear in maps.items()} if len(maps) > 1 else {}
    best = ranks.from_first(min(errors or maps, key=lambda kind: errors.get(kind, 0.0)))
    return maps[best], best


def _zonal_fits(task: FieldTask, degree: int) -> bool:
    unknown = task.in_channels * (2 * REACH + 1)
    size = np.dtype(np.complex128).itemsize * (unknown * (degree + 1)) ** 2
    return size <= MEMORY and (task.endless or task.samples >= ENOUGH * unknown)


@torch.no_grad()
def _error(task: FieldTask, linear: Linear) -> float:
    """On validation samples, squared, summed."""
    area = torch.tensor(task.grid.weights).reshape(task.grid.shape)
    total = 0.0
    for number in range(min(VALIDATION, task.validation_samples)):
        state, target, *_ = task.validation[number]
        error = (task.step(linear, state[None])[0] - target).nan_to_num(0.0).double()
        total += float((error.square() * area).sum())
    return total
