"""Shallow water of every age: samples that are windows along trajectories.

A forecast that follows itself meets states that no random start looks like. Simulating to each age
anew would cost days a sample, so a few trajectories are followed all the way, kept as coefficients,
and give many samples each, until newer ones take their place.
"""

import copy
import math
from collections import OrderedDict

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from spherule import checks
from spherule.data.shallow_water import (
    BLOCK,
    ShallowWaterConfig,
    ShallowWaterDataset,
    one_thread,
)
from spherule.data.statistics import Statistics
from spherule.distributed import Shards

RECENT = 8
"""Blocks of trajectories that samples are drawn from at any time."""
LEADS_A_SAMPLE = 6
"""How many leads are simulated for each sample."""


class AgedShallowWater(Dataset[tuple[Tensor, ...]]):
    """Pairs (input, target) of normalized fields, with `leads` > 1 more targets, of ages from 0
    to `days`, as many in each octave. Sample i of a seed is one tensor, bit by bit, for every
    i >= 0.
    """

    @checks.arguments
    def __init__(
        self,
        config: ShallowWaterConfig,
        *,
        days: float,
        seed: int = 0,
        statistics: Statistics | None = None,
        leads: int = 1,
    ) -> None:
        checks.number("days", days, above=0, high=1e9)
        self._starts = ShallowWaterDataset(config, seed=seed, statistics=statistics, leads=leads)
        self.grid, self.statistics = self._starts.grid, self._starts.statistics
        self.oldest = math.ceil(days * 86400 / config.lead)
        self.windows = BLOCK * max(self.oldest // LEADS_A_SAMPLE, 1)
        self._blocks: OrderedDict[int, Tensor] = OrderedDict()

    def on(self, shards: Shards) -> "AgedShallowWater":
        """The same samples, but for rounding, on a rank's own rings."""
        part = copy.copy(self)
        part.grid = shards.part
        return part

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        if index < 0:
            raise IndexError(f"index={index}: samples are counted from 0 and have no end")
        newest = index // self.windows
        draw = np.random.default_rng((self._starts.seed, index, 2))
        number = newest - int(draw.integers(min(RECENT, newest + 1)))
        place = int(draw.integers(BLOCK))
        # Evenly over the logarithm: a decaying flow is young for a short time, and looks different
        # then; drawn evenly, one state in a hundred would be new.
        age = int((self.oldest + 2) ** draw.random()) - 1
        window = self._block(number)[place, age : age + self._starts.leads + 1]
        with one_thread(), torch.inference_mode():
            fields = self._starts.solver.fields(window, self.grid)
        return tuple(self.statistics.normalize(fields.clone(), self.grid))

    def _block(self, number: int) -> Tensor:
        """Coefficients (trajectories, ages, ...) of a block."""
        if number not in self._blocks:
            leads = self.oldest + self._starts.leads
            self._blocks[number] = self._starts.trajectories(number, leads)
            while len(self._blocks) > RECENT:
                self._blocks.popitem(last=False)
        self._blocks.move_to_end(number)
        return self._blocks[number]
