"""What needs no training, on the test samples of a shallow water recipe: persistence, the mean, and
the exact linear propagator, which is the solver itself at a vanishing amplitude.

    python results/baselines.py swe/s2-transformer-local:small results/baselines-small.json
"""

import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from spherule import ops, recipes
from spherule.objectives import Average
from spherule.pde import ShallowWater
from spherule.tasks import ShallowWaterTask, ShallowWaterTaskConfig

AMPLITUDE = 1e-6
"""Small enough that what is quadratic in it vanishes, large enough for float64."""


class Persistence(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x)


class LinearPropagator(nn.Module):
    """The solver about a state of rest, with rotation and damping."""

    def __init__(self, task: ShallowWaterTask) -> None:
        super().__init__()
        config = task.data
        self.task, self.config = task, config
        self.solver = ShallowWater(task.grid, lmax=config.lmax, damping_time=config.damping_time)

    def forward(self, x: Tensor) -> Tensor:
        grid, statistics = self.task.grid, self.task.statistics
        fields = statistics.denormalize(x.double(), grid)
        coeffs = ops.sht(fields, grid, self.solver.lmax)
        rest = torch.zeros_like(coeffs)
        rest[..., 0, 0, 0] = coeffs[..., 0, 0, 0]  # the mean geopotential
        start = rest + AMPLITUDE * (coeffs - rest)
        end = self.solver.advance(start, self.config.step, self.config.steps)
        later = ops.isht(rest + (end - rest) / AMPLITUDE, grid)
        return statistics.normalize(later, grid).to(x)


def main(recipe: str, out: Path) -> None:
    config = recipes.get(recipe).task
    assert isinstance(config, ShallowWaterTaskConfig)
    task = config.open(0)
    models = {"persistence": Persistence(), "mean": Mean(), "exact linear": LinearPropagator(task)}
    rows = {}
    for name, model in models.items():
        average = Average()
        for i in range(task.test_samples):
            batch = [u[None] for u in task.test[i]]
            average.update(task.metrics(model, batch))
        rows[name] = {metric: asdict(value) for metric, value in average.compute().items()}
        print(name, {metric: round(value["mean"], 6) for metric, value in rows[name].items()})
    result = {"recipe": recipe, "measured_on": task.test_data(), "rows": rows}
    out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
