"""Shallow water as training data: random states and what they become, made on the fly, endless.

Sample i of a seed is one tensor, bit by bit, however it is reached: samples are made in blocks,
aligned and of fixed size, because the rounding of a matrix product depends on its size, and on one
thread, because it depends on that too. Parallel are the workers of a DataLoader.
"""

import copy
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.utils.data import Dataset

from spherule import checks
from spherule.data.statistics import Statistics
from spherule.distributed import Shards
from spherule.grids import Grid
from spherule.grids.serial import as_grid
from spherule.pde.initial_states import Preset, preset_named, random_states
from spherule.pde.shallow_water import ShallowWater

BLOCK = 4
"""Samples that are made together; batches whose size is a multiple of it waste nothing."""
STATISTICS_SAMPLES = 32


@dataclass(frozen=True)
class ShallowWaterConfig:
    """What a sample is."""

    grid: str = "gauss:128x256"
    """Name of the grid: gauss:128x256, H64, O96, ..."""
    lmax: int | None = None
    """Truncation of the solver; by default a third of the grid's rings."""
    lead: float = 3600.0
    """From input to target, seconds."""
    step: float = 150.0
    """Of the solver, seconds; divides the lead."""
    preset: Literal["public", "paper"] = "public"
    """Deviations of height and wind: those of the paper's text, or of its public code."""
    mean_depth: float | None = None
    """Meters; by default the preset's."""
    damping_time: float | None = None
    """E-folding time of the highest degree under hyperdiffusion, seconds; by default none."""

    def __post_init__(self) -> None:
        checks.config(self)
        grid = as_grid(self.grid)
        if self.lmax is not None:
            checks.integer("lmax", self.lmax, low=1, high=grid.lmax)
        if not self.step > 0 or not math.isfinite(self.step):
            raise ValueError(f"step={self.step} must be positive (seconds)")
        whole = 0 < self.lead < 2**53 * self.step  # else no step has a number of its own
        if not whole or abs(self.steps * self.step - self.lead) > 1e-9 * self.lead:
            raise ValueError(
                f"lead={self.lead} s must be a positive multiple of step={self.step} s"
            )
        if self.mean_depth is not None and not self.mean_depth > 0:
            raise ValueError(f"mean_depth={self.mean_depth} must be positive (meters)")
        if self.damping_time is not None:
            checks.number("damping_time", self.damping_time, above=0)

    @property
    def steps(self) -> int:
        return round(self.lead / self.step)

    @property
    def states(self) -> Preset:
        """The preset, with this mean depth."""
        preset = preset_named(self.preset)
        return preset if self.mean_depth is None else replace(preset, mean_depth=self.mean_depth)

    def solver(self) -> ShallowWater:
        """What integrates the states, in float32."""
        return ShallowWater(
            Grid.from_name(self.grid),
            lmax=self.lmax,
            damping_time=self.damping_time,
            dtype=torch.float32,
        )

    def resolved(self) -> dict[str, Any]:
        """All fields, defaults worked out: what a store remembers."""
        lmax = Grid.from_name(self.grid).nrings // 3 if self.lmax is None else self.lmax
        return {**asdict(self), "lmax": lmax, "mean_depth": self.states.mean_depth}


class ShallowWaterDataset(Dataset[tuple[Tensor, ...]]):
    """Pairs (input, target) of normalized fields `(3, *grid.shape)`, for every index >= 0; with
    `leads` > 1 more targets follow, a lead apart.

    It has no length: give a DataLoader `batch_sampler=ConsecutiveBatches(size, start)`, or take a
    `Subset`. Statistics come from a fixed set of samples of no seed's stream.
    """

    @checks.arguments
    def __init__(
        self,
        config: ShallowWaterConfig | None = None,
        *,
        seed: int = 0,
        statistics: Statistics | None = None,
        leads: int = 1,
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed={seed} must be >= 0")
        if statistics is not None and len(statistics.mean) != 3:
            raise ValueError(
                f"statistics: expected those of 3 variables, got {len(statistics.mean)}"
            )
        if leads < 1:
            raise ValueError(f"leads={leads} must be at least 1")
        self.config = config or ShallowWaterConfig()
        self.seed = seed
        self.leads = leads
        self.grid = Grid.from_name(self.config.grid)
        self.solver = self.config.solver()
        self._last: tuple[int, Tensor] | None = None
        self._draw(0, 0)  # bad configurations are refused here, not in a worker
        self.statistics = self._measure() if statistics is None else statistics

    def on(self, shards: Shards) -> "ShallowWaterDataset":
        """The same samples, but for rounding, on a rank's own rings: the states are followed as
        coefficients, which are of the whole sphere.
        """
        part = copy.copy(self)
        part.grid, part._last = shards.part, None
        return part

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        index = operator.index(index)
        if index < 0:
            raise IndexError(f"index={index}: samples are counted from 0 and have no end")
        number, place = divmod(index, BLOCK)
        if self._last is None or self._last[0] != number:
            self._last = number, self.block(number)
        return tuple(self.statistics.normalize(self._last[1][place], self.grid))

    def __getitems__(self, indices: Sequence[int]) -> list[tuple[Tensor, ...]]:
        """For DataLoader: block by block, in the order asked for."""
        pairs = {i: self[i] for i in sorted(set(indices))}
        return [pairs[i] for i in indices]

    def block(self, number: int) -> Float[Tensor, "block times 3 *points"]:
        """Samples number * BLOCK and following in physical units, input and targets."""
        return self._make(0, number, self.leads)

    def trajectories(self, number: int, leads: int) -> Shaped[Tensor, "block times ..."]:
        """The coefficients of a block's samples, followed for so many leads."""
        with one_thread(), torch.inference_mode():
            return self._follow(0, number, leads)

    def _make(self, stream: int, number: int, leads: int) -> Tensor:
        with one_thread(), torch.inference_mode():
            fields = self.solver.fields(self._follow(stream, number, leads), self.grid)
        return fields.clone()  # out of inference mode

    def _follow(self, stream: int, number: int, leads: int) -> Tensor:
        start = self._draw(stream, number).to(torch.complex64)
        every = self.config.steps
        run = self.solver.trajectory(start, self.config.step, leads * every, every=every)
        return torch.stack([start, *run], dim=1)

    def _draw(self, stream: int, number: int) -> Tensor:
        seed = np.random.SeedSequence(self.seed if stream == 0 else 0, spawn_key=(stream, number))
        generator = torch.Generator().manual_seed(int(seed.generate_state(1, np.uint64)[0]) >> 1)
        return random_states(
            self.solver.lmax, BLOCK, preset=self.config.states, generator=generator
        )

    def _measure(self) -> Statistics:
        blocks = range(STATISTICS_SAMPLES // BLOCK)
        inputs = torch.cat([self._make(1, k, 1)[:, 0] for k in blocks]).double().flatten(2)
        weights = torch.tensor(self.grid.weights / self.grid.weights.sum()).flatten() / len(inputs)
        mean = (inputs * weights).sum((0, 2))
        variance = ((inputs - mean[:, None]) ** 2 * weights).sum((0, 2))
        return Statistics(tuple(mean.tolist()), tuple(variance.sqrt().tolist()))


class ConsecutiveBatches:
    """Endless batches of consecutive indices; to resume, start where the last run ended."""

    @checks.arguments
    def __init__(self, size: int, start: int = 0) -> None:
        if size < 1 or start < 0:
            raise ValueError(f"size={size} must be at least 1 and start={start} >= 0")
        self.size, self.start = size, start

    def __iter__(self) -> Iterator[list[int]]:
        for first in itertools.count(self.start, self.size):
            yield list(range(first, first + self.size))


@contextmanager
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
