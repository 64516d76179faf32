"""Linear maps of fields by least squares, in float64, from one pass over inputs and targets.

The first targets are the first inputs some time later, in that order; further inputs are free.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from spherule import checks
from spherule.distributed import whole
from spherule.grids import Grid
from spherule.models.stability import steady_linear, steady_zonal
from spherule.nn import Harmonics, SpectralMix, ZonalMix
from spherule.nn.checks import require_channels
from spherule.nn.spectral import neighboring_degrees, order_pairs

Batches = Iterable[Sequence[Any]]
"""(input, target, ...) each, fields `(batch, channels, *grid.shape)`."""

# Of a channel's mean power: what has less is rounding of float32 fields, and explains nothing.
_ROUNDING = 1e-10
ENOUGH = 2
"""Samples for each number that an equation has to find."""


class LinearFit(NamedTuple):
    """A layer's weights, and the deviation of what they leave of each target channel."""

    weight: Tensor
    deviation: Tensor


@torch.no_grad()
@checks.arguments
def fit_linear(batches: Batches, grid: Grid, lmax: int) -> LinearFit:
    """A matrix over channels for each degree, (lmax + 1, out_channels, in_channels): the weights
    of `nn.SpectralMix`.
    """
    pairs = _Pairs(batches, grid, lmax)
    xx, xy = torch.zeros(()), torch.zeros(())
    for x, y in pairs:
        inputs, targets = (torch.view_as_real(u * pairs.both_signs.sqrt()) for u in (x, y))
        xx = xx + torch.einsum("bilmc,bjlmc->lij", inputs, inputs)
        xy = xy + torch.einsum("bilmc,bolmc->lio", inputs, targets)
    identity = torch.eye(*xy.shape[1:], dtype=xy.dtype)
    a = _solve(xx, xy, identity, xx.diagonal(dim1=1, dim2=2).mean(0))
    explained = 2 * (a * xy).sum((0, 1)) - torch.einsum("lio,lij,ljo->o", a, xx, a)
    weight = identity.T.repeat(lmax + 1, 1, 1)
    weight[: pairs.degree + 1] = a.mT
    return LinearFit(weight, pairs.deviation(explained))


@torch.no_grad()
@checks.arguments
def fit_zonal(batches: Batches, grid: Grid, lmax: int, reach: int = 3) -> LinearFit:
    """For each degree and order a complex matrix over channels and the degrees within `reach`: the
    weights of `nn.ZonalMix`.
    """
    checks.integer("reach", reach, low=0)
    pairs, taps = _Pairs(batches, grid, lmax), 2 * reach + 1
    xx, xy = torch.zeros(()), torch.zeros(())
    for x, y in pairs:
        near = torch.view_as_complex(
            neighboring_degrees(torch.view_as_real(x), reach).transpose(-1, -2).contiguous()
        )
        inputs = near.permute(2, 3, 0, 1, 4).flatten(3)  # degree, order, sample, what is near
        xx = xx + inputs.mH @ inputs
        xy = xy + inputs.mH @ y.permute(2, 3, 0, 1)
    unknown, out = xy.shape[-2:]
    if pairs.samples < ENOUGH * unknown:
        raise ValueError(
            f"batches: {pairs.samples} samples are too few for {unknown} numbers an equation; "
            f"expected {ENOUGH * unknown}, or a smaller reach than {reach}"
        )
    power = xx.diagonal(dim1=2, dim2=3).real.mean((0, 1)).unflatten(0, (-1, taps))
    identity = torch.zeros(unknown // taps, taps, out, dtype=xy.dtype)
    identity[:, reach] = torch.eye(unknown // taps, out, dtype=xy.dtype)
    identity = identity.flatten(0, 1)
    a = _solve(xx, xy, identity, power[:, reach].repeat_interleave(taps))
    share = (2 * (a.conj() * xy).sum(2) - (a.conj() * (xx @ a)).sum(2)).real
    explained = (share * pairs.both_signs[..., None]).sum((0, 1))
    rows = order_pairs(lmax).shape[1]
    weight = torch.zeros(rows, out, unknown // taps, taps, 2, dtype=torch.float64)
    weight[..., reach, 0] = torch.eye(out, unknown // taps)
    found = a.unflatten(2, (-1, taps)).permute(0, 1, 4, 2, 3)[tuple(order_pairs(pairs.degree))]
    weight[: len(found)] = torch.view_as_real(found.contiguous())
    return LinearFit(weight, pairs.deviation(explained))


def _solve(xx: Tensor, xy: Tensor, identity: Tensor, power: Tensor) -> Tensor:
    """The solution of xx a = xy that is the identity where the data leave it open: along inputs
    that are nothing but rounding beside the `power` that each has elsewhere.
    """
    unit = power.clamp(min=1e-200).rsqrt()
    energy, along = torch.linalg.eigh(unit[:, None] * xx * unit)
    along = unit[:, None].to(along.dtype) * along
    inverse = torch.where(energy > _ROUNDING, 1 / energy, 0.0)
    return identity + along @ (inverse[..., None] * (along.mH @ (xy - xx @ identity)))


class _Pairs:
    """Coefficients of inputs and targets, complex (batch, channels, degree, order), and what there
    is of the targets in all.
    """

    def __init__(self, batches: Batches, grid: Grid, lmax: int) -> None:
        self.batches, self.grid, self.harmonics = batches, grid, Harmonics(grid, lmax)
        self.degree = self.harmonics.degree
        # Orders m > 0 of a real field stand for -m too.
        self.both_signs = torch.full((self.degree + 1,), 2.0, dtype=torch.float64)
        self.both_signs[0] = 1
        self.samples = 0
        self.energy = self.beyond = torch.zeros(())

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        area = torch.tensor(self.grid.weights / self.grid.weights.sum())
        for batch in self.batches:
            if not isinstance(batch, Sequence) or len(batch) < 2:
                kind = type(batch).__name__
                raise TypeError(f"batches: expected (input, target, ...), got {kind}")
            x, y = batch[:2]
            for u in (x, y):
                require_channels(self.harmonics, "batches", u, self.grid)
                if not torch.isfinite(u).all():
                    raise ValueError("batches: expected finite fields, got NaN or infinity")
            x, y = (u.cpu().double() for u in (x, y))
            inputs, targets = (self.harmonics.analyze(u) for u in (x, y))
            # Not all at once: grids integrate squares of what they resolve approximately.
            rest = (y - self.harmonics.synthesize(targets)).square() * area
            self.samples += len(x)
            self.beyond = self.beyond + rest.flatten(2).sum((0, 2))
            energy = targets.square().sum(-1) * self.both_signs
            self.energy = self.energy + energy.sum((0, 2, 3))
            yield torch.view_as_complex(inputs), torch.view_as_complex(targets)
        if self.samples == 0:
            raise ValueError("batches: expected at least one pair of input and target, got none")

    def deviation(self, explained: Tensor) -> Tensor:
        """What is left of each channel where so much of the targets' energy is explained."""
        left = (self.energy - explained) / (4 * math.pi)
        variance = (left + self.beyond) / self.samples
        return variance.clamp(min=0).sqrt()


def fit_mix(mix: SpectralMix | ZonalMix, batches: Batches, *, steady: bool) -> LinearFit:
    """Give a layer the weights that fit best, or those near them of a map that does not grow. The
    deviation is that of the best.
    """
    grid, lmax = whole(mix.harmonics.grid), mix.harmonics.lmax
    if isinstance(mix, ZonalMix):
        fit, within = fit_zonal(batches, grid, lmax, mix.reach), steady_zonal
    else:
        fit, within = fit_linear(batches, grid, lmax), steady_linear
    if fit.weight.shape != mix.weight.shape:
        raise ValueError(
            f"batches: expected {mix.in_channels} channels and {mix.out_channels} of the target, "
            f"got {fit.weight.shape[2]} and {fit.weight.shape[1]}"
        )
    with torch.no_grad():
        fit = fit._replace(weight=within(fit.weight) if steady else fit.weight)
        mix.weight.copy_(fit.weight)
    return fit
