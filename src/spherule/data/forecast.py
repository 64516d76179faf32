"""Users' own fields as samples: states, and states a lead later."""

import copy
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from spherule.data.field_files import Source, choose, member_axis, named, open_fields
from spherule.data.layout import Layout
from spherule.data.statistics import Statistics
from spherule.data.times import Lead, length, smallest_step, span, text, time_axis
from spherule.distributed import Shards
from spherule.grids import Grid

if TYPE_CHECKING:
    import xarray as xr

STATISTICS_TIMES = 256
"""Of how many training times, evenly spread, mean and deviation are taken."""


class ForecastDataset(Dataset[tuple[Tensor, ...]]):
    """Pairs (state, state a lead later) of a user's variables, normalized, as float32 (variables,
    *grid.shape); with `leads` > 1 more targets follow. Members of an ensemble are samples each.

    `part` is the range of the time axis that targets lie in, from a fraction to a fraction. A
    missing value is an error that names variable, time and count, or, with `missing="mask"`, stays
    NaN for the loss to leave out. With `grid`, fields are brought onto another grid than the data's
    own; `repair` is that of `Grid.match`.
    """

    def __init__(
        self,
        source: Source,
        variables: Sequence[str],
        *,
        static: Sequence[str] = (),
        lead: str = "6h",
        leads: int = 1,
        part: tuple[float, float] = (0.0, 1.0),
        missing: Literal["refuse", "mask"] = "refuse",
        grid: Grid | None = None,
        repair: bool = False,
        statistics: Statistics | None = None,
        static_statistics: Statistics | None = None,
    ) -> None:
        self.source, self.name, self.missing = source, named(source), missing
        self._opened: tuple[int, Any] | None = None
        self.lead = Lead.parse(lead)
        self._names = tuple(variables)
        data = self._data
        self.variables = tuple(map(str, data.data_vars))
        self.layout = Layout.of(data, repair=repair, target=grid)
        self.grid = self.layout.grid
        axis = time_axis(data, self.name)
        self.times, self._along = axis.values, str(axis.dims[0])
        self._member = self._require_dimensions(data)
        self._members = data.sizes[self._member] if self._member else 1
        self._sequences = self._follow(leads, part)
        self.units = tuple(str(data[name].attrs.get("units", "")) for name in self.variables)
        self.static, self.static_statistics = read_static(
            open_fields(source), self.layout, static, self.name, static_statistics
        )
        self.statistics = self._measure() if statistics is None else statistics

    def on(self, shards: Shards) -> "ForecastDataset":
        """The same samples, of which only a rank's own rings are read."""
        part = copy.copy(self)
        part.layout = self.layout.part(shards.rings)
        part.grid = part.layout.grid
        part.static = None if self.static is None else shards.scatter(self.static)
        return part

    @property
    def seconds(self) -> float:
        """Of the lead, in the mean."""
        return self.lead.seconds(self.times)

    @property
    def _data(self) -> Any:
        """The variables, opened by each process for itself: HDF5 must not be read through a
        fork.
        """
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = os.getpid(), choose(open_fields(self.source), self._names, self.name)
        return self._opened[1]

    def __len__(self) -> int:
        return len(self._sequences) * self._members

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={index}: {self.name} has {len(self)} samples in this part")
        index %= len(self)
        places, member = self._sequences[index // self._members], index % self._members
        states = [torch.from_numpy(self.state(t, member)) for t in places]
        return tuple(self.statistics.normalize(state, self.grid) for state in states)

    @property
    def length(self) -> float:
        """Seconds from the first input to the last target."""
        return length(self.times[[self._sequences[0][0], self._sequences[-1][-1]]])

    def time(self, index: int, lead: int = 0) -> Any:
        """When the input of a sample is, or the target of a lead."""
        return self.times[self._sequences[index // self._members][lead]]

    def state(self, position: int, member: int = 0) -> NDArray[np.float32]:
        """All variables at a place of the time axis, in their own units."""
        at = self._data.isel({self._along: position})
        if self._member:
            at = at.isel({self._member: member})
        fields = np.stack(
            [self.layout.read(at[name]).reshape(self.grid.shape) for name in self.variables]
        )
        if self.missing == "refuse" and not np.isfinite(fields).all():
            for name, field in zip(self.variables, fields, strict=True):
                if bad := int(np.count_nonzero(np.isnan(field))):
                    raise ValueError(
                        f"{self.name}: {name} has {bad} missing values of {field.size} at "
                        f"{text(self.times[position])}; fill them, or leave them out of loss and "
                        "metrics with --missing mask"
                    )
        return fields

    def _require_dimensions(self, data: "xr.Dataset") -> str | None:
        """The ensemble's dimension, if there is one; beside time and space there is no other."""
        members = {member_axis(data[name]) for name in self.variables}
        member = members.pop() if len(members) == 1 else None
        for name in self.variables:
            sizes = data[name].sizes
            if self._along not in sizes:
                raise ValueError(
                    f"{self.name}: {name} has no time ({self._along}); give it with --static"
                )
            known = (self._along, member, *self.layout.dims)
            if others := [f"{d} ({n})" for d, n in sizes.items() if d not in known and n > 1]:
                raise ValueError(
                    f"{self.name}: {name} has dimensions beside time and space: "
                    f"{', '.join(others)}; choose one of each first"
                )
        return member

    def _follow(self, leads: int, part: tuple[float, float]) -> list[tuple[int, ...]]:
        """Places of the time axis that lie a lead apart, all but the first within the part."""
        first, last = (round(fraction * self.times.size) for fraction in part)
        places = self._inside(leads, part)
        if not len(places):
            step = span(smallest_step(self.times))
            raise ValueError(
                f"{self.name}: none of times {first} to {last - 1} follow others by "
                f"lead={self.lead}, {leads} in a row; the smallest step is {step}"
            )
        return [tuple(row) for row in places.tolist()]

    def longest(self, part: tuple[float, float]) -> int:
        """How many leads some sample of a part can be followed."""
        first, last = (round(fraction * self.times.size) for fraction in part)
        after = self.lead.places(self.times, 1)[:, 1].tolist()
        leads = [0] * len(after)
        for i in reversed(range(len(after))):  # targets come after their inputs
            if first <= after[i] < last:
                leads[i] = 1 + leads[after[i]]
        return max(leads, default=0)

    def _inside(self, leads: int, part: tuple[float, float]) -> NDArray[np.int64]:
        first, last = (round(fraction * self.times.size) for fraction in part)
        places = self.lead.places(self.times, leads)
        # All targets lie in the part; the input may come before, as it does when one forecasts.
        targets = places[:, 1:]
        inside = (places[:, 0] >= 0) & ((targets >= first) & (targets < last)).all(1)
        return places[inside]

    def _measure(self) -> Statistics:
        """Mean and deviation over the sphere, of the inputs of this part."""
        starts = [(times[0], m) for times in self._sequences for m in range(self._members)]
        chosen = starts[:: max(len(starts) // STATISTICS_TIMES, 1)]
        weights = (self.grid.weights / self.grid.weights.sum()).reshape(self.grid.shape)
        moments = np.zeros((3, len(self.variables)))
        space = tuple(range(1, 1 + len(self.grid.shape)))
        first = np.full(len(self.variables), np.nan)
        for place in chosen:
            fields = self.state(*place).astype(np.float64)
            there = np.isfinite(fields)
            # Deviations from the first values that are there, so that a large mean takes no digits.
            count = there.sum(space)
            mean = np.where(there, fields, 0.0).sum(space) / np.maximum(count, 1)
            first = np.where(np.isnan(first) & (count > 0), mean, first)
            around = first.reshape(-1, *[1] * len(self.grid.shape))
            fields = np.where(there, fields - around, 0.0)
            for power in range(3):
                moments[power] += (weights * there * fields**power).sum(space)
        for name, total in zip(self.variables, moments[0], strict=True):
            if total == 0:
                raise ValueError(f"{self.name}: {name} has no values in the training part")
        mean = moments[1] / moments[0]
        std = np.sqrt(np.maximum(moments[2] / moments[0] - mean**2, 0.0))
        for name, deviation in zip(self.variables, std, strict=True):
            if not deviation > 0:
                raise ValueError(f"{self.name}: {name} is the same everywhere in the training part")
        return Statistics(tuple((first + mean).tolist()), tuple(std.tolist()))


def read_static(
    data: "xr.Dataset",
    layout: Layout,
    names: Sequence[str],
    source: object,
    statistics: Statistics | None = None,
) -> tuple[Tensor | None, Statistics]:
    """Fields without time (names, *shape) in deviations from a mean over the sphere, and these:
    what is given, as a trained model needs it, or the fields' own.
    """
    if not names:
        return None, Statistics((), ())
    data = choose(data, names, source)
    grid, fields = layout.grid, []
    for name, variable in data.data_vars.items():
        sizes = {d: n for d, n in variable.sizes.items() if d not in layout.dims}
        several = (
            layout.read(variable.isel(dict(zip(sizes, index, strict=True))))
            for index in np.ndindex(*sizes.values())
        )
        field = next(several).astype(np.float64)
        if not all(_alike(field, other) for other in several):
            others = ", ".join(f"{d} ({n})" for d, n in sizes.items())
            raise ValueError(
                f"{source}: --static {name} varies along {others}; predict it with --variables, or "
                "take one field of it"
            )
        if bad := int(np.count_nonzero(np.isnan(field))):
            raise ValueError(
                f"{source}: {name} must be a whole field, got {bad} missing values of {field.size}"
            )
        fields.append(field)
    if statistics is None:
        weights = grid.weights / grid.weights.sum()
        mean = [float((weights * field).sum()) for field in fields]
        std = [
            float(np.sqrt((weights * (field - m) ** 2).sum()))
            for field, m in zip(fields, mean, strict=True)
        ]
        statistics = Statistics(tuple(mean), tuple(s if s > 0 else 1.0 for s in std))
    stacked = torch.tensor(np.stack(fields), dtype=torch.float64)
    return statistics.normalize(stacked, grid).float(), statistics


def _alike(a: NDArray, b: NDArray) -> bool:
    """The same but for the packing of integers."""
    spread = float(np.nanmax(a) - np.nanmin(a)) if np.isfinite(a).any() else 0.0
    return bool(np.allclose(a, b, rtol=0, atol=1e-3 * spread, equal_nan=True))
