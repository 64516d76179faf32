"""Optimizers, learning rates and averages of weights, with a state that can be kept."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from spherule.train.training_config import TrainingConfig


def make_optimizer(model: nn.Module, settings: TrainingConfig) -> torch.optim.Optimizer:
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
    return kinds[settings.optimizer](
        model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )


class Schedule:
    """The learning rate of each step."""

    def __init__(self, settings: TrainingConfig, steps: int) -> None:
        self.settings, self.steps = settings, steps
        self.factor, self.best, self.waited = 1.0, math.inf, 0

    def rate(self, step: int) -> float:
        """The rate of a step, counted from 0."""
        rate = self.settings.learning_rate * self.factor
        if step < self.settings.warmup:
            rate *= (step + 1) / self.settings.warmup
        if self.settings.schedule == "cosine":
            rate *= 0.5 * (1 + math.cos(math.pi * min(step / self.steps, 1.0)))
        return rate

    def observe(self, validation: float) -> None:
        """A plateau: a tenth of the rate when validation has been no better for `patience`
        epochs.
        """
        if validation < self.best * (1 - 1e-4):
            self.best, self.waited = validation, 0
            return
        self.waited += 1
        if self.settings.schedule == "plateau" and self.waited > self.settings.patience:
            self.factor, self.waited = self.factor * 0.1, 0

    def state(self) -> dict[str, float]:
        return {"factor": self.factor, "best": self.best, "waited": self.waited}

    def restore(self, state: dict[str, float]) -> None:
        self.factor, self.best = state["factor"], state["best"]
        self.waited = int(state["waited"])


class MovingAverage:
    """The exponential moving average of a model's Parameters. Decay 0 is the Parameters
    themselves.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model, self.decay = model, decay
        self.average = {n: p.detach().clone() for n, p in model.named_parameters()} if decay else {}

    @torch.no_grad()
    def update(self, step: int) -> None:
        # The first steps count more, else the random start would be remembered for long.
        decay = min(self.decay, (step + 1) / (step + 10))
        for name, parameter in self.model.named_parameters():
            if self.decay:
                self.average[name].lerp_(parameter, 1 - decay)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within, the model has the averaged weights."""
        kept = self._exchange(self.average)
        try:
            yield
        finally:
            self._exchange(kept)

    @torch.no_grad()
    def _exchange(self, values: dict[str, Tensor]) -> dict[str, Tensor]:
        kept = {}
        for name, parameter in self.model.named_parameters():
            if name in values:
                kept[name] = parameter.clone()
                parameter.copy_(values[name])
        return kept


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors."""
    state = optimizer.state_dict()["state"]
    return {f"{i}.{k}": t for i, values in state.items() for k, t in values.items()}


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """The inverse, into an optimizer of the same Parameters."""
    state: dict[int, dict[str, Any]] = {}
    for name, tensor in tensors.items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = tensor
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})
