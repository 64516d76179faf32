"""Optimizers, learning rates and averages of weights, with a state that can be kept."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw

from spherule.train.training_config import TrainingConfig


class Adam:
    """Adam or AdamW, by torch's own function: its classes import its compiler with the first of
    them, which takes seconds and 140 MB.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], settings: TrainingConfig) -> None:
        self.parameters = list(parameters)
        self.function = {"adam": adam, "adamw": adamw}[settings.optimizer]
        self.weight_decay = settings.weight_decay
        self.state: dict[int, dict[str, Tensor]] = {}

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Move all Parameters that have a gradient."""
        moved, gradients = {}, []
        for i, p in enumerate(self.parameters):
            if p.grad is None:
                continue
            moved[i] = p
            gradients.append(p.grad)
            if i not in self.state:
                moments = {"exp_avg": torch.zeros_like(p), "exp_avg_sq": torch.zeros_like(p)}
                self.state[i] = {"step": torch.tensor(0.0), **moments}
        state = [self.state[i] for i in moved]
        self.function(
            list(moved.values()),
            gradients,
            [s["exp_avg"] for s in state],
            [s["exp_avg_sq"] for s in state],
            [],
            [s["step"] for s in state],
            has_complex=any(p.is_complex() for p in moved.values()),
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def tensors(self) -> dict[str, Tensor]:
        """The state as named tensors."""
        return {f"{i}.{k}": t for i, values in self.state.items() for k, t in values.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """The inverse, for the same Parameters."""
        self.state = {}
        for name, tensor in tensors.items():
            number, key = name.split(".", 1)
            place = torch.device("cpu") if key == "step" else self.parameters[int(number)].device
            self.state.setdefault(int(number), {})[key] = tensor.to(place)


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
