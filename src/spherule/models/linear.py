"""What a linear map can do: one matrix over channels a degree, found by least squares.

It is the baseline that a network must beat, and the skip that a network can start from.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spherule import checks
from spherule.distributed import whole
from spherule.grids import Grid
from spherule.models.base import Model
from spherule.models.config import ModelConfig
from spherule.nn import Harmonics, SpectralMix
from spherule.nn.checks import require_channels
from spherule.nn.spectral import default_lmax

Batches = Iterable[Sequence[Any]]
"""(input, target, ...) each, fields `(batch, channels, *grid.shape)`."""

# What the data leave open stays the identity. Far below any signal, and above the rounding of
# float32 fields.
_RIDGE = 1e-13


class LinearFit(NamedTuple):
    """The matrices, (lmax + 1, out_channels, in_channels), and the deviation of what they leave of
    each target channel.
    """

    weight: Tensor
    deviation: Tensor


@torch.no_grad()
@checks.arguments
def fit_linear(batches: Batches, grid: Grid, lmax: int) -> LinearFit:
    """Least squares for each degree, in float64, from one pass over batches of inputs and targets.

    The first targets are the first inputs some time later, in that order; further inputs are free.
    """
    harmonics = Harmonics(grid, lmax)
    degree = harmonics.degree
    # Orders m > 0 of a real field stand for -m too.
    both_signs = torch.full((degree + 1, 1), math.sqrt(2), dtype=torch.float64)
    both_signs[0] = 1
    area = torch.tensor(grid.weights / grid.weights.sum())
    samples, xx, xy, yy, energy = 0, *(torch.zeros(()) for _ in range(4))
    for batch in batches:
        if not isinstance(batch, Sequence) or len(batch) < 2:
            raise TypeError(f"batches: expected (input, target, ...), got {type(batch).__name__}")
        x, y = batch[:2]
        for u in (x, y):
            require_channels(harmonics, "batches", u, grid)
        inputs, targets = (harmonics.analyze(u.cpu().double()) * both_signs for u in (x, y))
        xx = xx + torch.einsum("bilmc,bjlmc->lij", inputs, inputs)
        xy = xy + torch.einsum("bilmc,bolmc->lio", inputs, targets)
        yy = yy + targets.square().sum((0, 2, 3, 4))
        energy = energy + (y.cpu().double().square() * area).flatten(2).sum((0, 2))
        samples += len(x)
    if samples == 0:
        raise ValueError("batches: expected at least one pair of input and target, got none")
    ridge = _RIDGE * xx.diagonal(dim1=1, dim2=2).mean(0).clamp(min=1e-200)
    identity = torch.eye(*xy.shape[1:], dtype=xy.dtype)
    a = torch.linalg.solve(xx + ridge.diag(), xy + ridge[:, None] * identity)
    left = yy - 2 * (a * xy).sum((0, 1)) + torch.einsum("lio,lij,ljo->o", a, xx, a)
    beyond = energy - yy / (4 * math.pi)
    variance = (left / (4 * math.pi) + beyond) / samples
    weight = torch.eye(*xy.shape[1:], dtype=xy.dtype).T.repeat(lmax + 1, 1, 1)
    weight[: degree + 1] = a.mT
    return LinearFit(weight, variance.clamp(min=0).sqrt())


@dataclass(frozen=True)
class LinearConfig(ModelConfig):
    """A matrix over channels for each degree."""

    lmax: int | None = None
    """The highest degree, beyond which the output has none; by default what the grid resolves."""

    def check(self) -> None:
        if self.lmax is not None:
            checks.integer("lmax", self.lmax, low=0)

    def resolved(self, grid: Grid) -> "LinearConfig":
        return replace(self, lmax=default_lmax(grid)) if self.lmax is None else self


class Linear(Model):
    """The baseline that is fitted rather than trained. Before that, it is persistence."""

    Config = LinearConfig
    config: LinearConfig

    def __init__(
        self, config: LinearConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        assert self.config.lmax is not None
        self.mix = SpectralMix(in_channels, out_channels, self.grid, self.config.lmax)

    def predict(self, x: Tensor) -> Tensor:
        return self.mix(x)

    def fit(self, batches: Batches) -> LinearFit:
        """Take the matrices that fit best."""
        return fit_mix(self.mix, batches)


def fit_mix(mix: SpectralMix, batches: Batches) -> LinearFit:
    """Give a layer the matrices that fit best."""
    fit = fit_linear(batches, whole(mix.harmonics.grid), mix.harmonics.lmax)
    if fit.weight.shape != mix.weight.shape:
        raise ValueError(
            f"batches: expected {mix.in_channels} channels and {mix.out_channels} of the target, "
            f"got {fit.weight.shape[2]} and {fit.weight.shape[1]}"
        )
    with torch.no_grad():
        mix.weight.copy_(fit.weight)
    return fit
