"""What a report shows of forecasts of fields."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import ops
from spherule.data.times import span
from spherule.train.batches import first_samples, to_device
from spherule.train.figures import (
    ByLatitude,
    Folded,
    Maps,
    Panel,
    RingCurve,
    Section,
    Spectra,
    SpectralCurves,
)
from spherule.train.scene import Frames, Globe, forecast_globe
from spherule.train.task import Trained

SHOWN = 8
"""Test samples that errors by latitude and spectra are averaged over."""


def field_sections(models: Sequence[Trained]) -> list[Section]:
    """A globe, maps, error by latitude, spectra."""
    task = models[0].task
    for other in models[1:]:
        if other.task.variables != task.variables:
            raise ValueError(
                f"{other.title} forecasts {', '.join(other.task.variables)}, {models[0].title} "
                f"{', '.join(task.variables)}: they can't stand on one page"
            )
    shown = [_Shown.of(trained) for trained in models]
    names = [name.replace("_", " ") for name in task.variables]
    labels, squared = (
        [
            f"{name} ({form.format(unit)})" if unit else name
            for name, unit in zip(names, task.units, strict=True)
        ]
        for form in ("{}", "squares of {}")
    )
    ahead = span(task.lead)
    return [
        Section(
            "Globe",
            f"Test samples, {ahead} ahead, to turn: predictions, truth and errors in the "
            "variables' own units, sample by sample.",
            [_globe(group) for group in _groups(shown)],
        ),
        Section(
            "Maps",
            f"One test sample, {ahead} ahead: the input, the truth, and for each model its "
            "prediction with the error below it. All errors share one scale.",
            _all_maps(shown),
        ),
        Section(
            "Error by latitude",
            f"Root mean square along each ring, over {len(shown[0].truth)} test samples, in "
            "the variables' own units. A planar model takes the poles for the edges of an image.",
            [
                ByLatitude(
                    labels,
                    [RingCurve(s.title, s.task.grid, s.by_ring()) for s in shown],
                    "error",
                )
            ],
        ),
        Section(
            "Spectra",
            "Power at each degree of the spherical harmonics. A prediction that follows the "
            "truth keeps its detail; where the error meets the truth, that scale is not "
            "predicted.",
            [Spectra(squared, [s.spectra() for s in shown])],
        ),
    ]


@dataclass(frozen=True, eq=False)
class _Shown:
    """Some test samples in deviations, (samples, variables, *shape), and what a model makes of
    them.
    """

    title: str
    task: Any
    """A FieldTask."""
    inputs: Tensor
    truth: Tensor
    prediction: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, trained: Trained) -> "_Shown":
        task = trained.task
        batch = first_samples(task.test, min(SHOWN, task.test_samples))
        inputs, truth, *_ = to_device(batch, trained.device)
        prediction = task.step(trained.model.eval(), inputs)
        prediction = prediction.masked_fill(truth.isnan(), torch.nan)
        return cls(trained.title, task, *(u.cpu() for u in (inputs, truth, prediction)))

    @property
    def error(self) -> Tensor:
        return self.prediction - self.truth

    def by_ring(self) -> NDArray[np.float64]:
        """Root mean square over samples and each ring, in own units: (variables, rings)."""
        error = self.error.double().flatten(2)
        grid = self.task.grid
        sums, counts = (
            np.add.reduceat(u.sum(0).numpy(), grid.ringstart, axis=1)
            for u in (error.square().nan_to_num(0.0), error.isfinite().double())
        )
        squares = np.divide(sums, counts, where=counts > 0, out=np.full_like(sums, np.nan))
        return self._std * np.sqrt(squares)

    def spectra(self) -> SpectralCurves:
        grid = self.task.grid
        power = [
            self._std**2
            * ops.power_spectrum(ops.sht(u.double().nan_to_num(0.0), grid, grid.lmax))
            .mean(0)
            .numpy()
            for u in (self.truth, self.prediction, self.error)
        ]
        return SpectralCurves(self.title, *power)

    @property
    def _std(self) -> NDArray[np.float64]:
        return np.array(self.task.statistics.std)[:, None]

    def physical(self, u: Tensor, variable: int) -> NDArray[Any]:
        """The first sample of a variable in its own units."""
        return self.task.statistics.denormalize(u[0], self.task.grid)[variable].numpy()


def _groups(shown: Sequence[_Shown]) -> list[list[_Shown]]:
    """Models on the same samples, which share a figure."""
    groups: list[list[_Shown]] = []
    for one in shown:
        for group in groups:
            if group[0].task.test_data() == one.task.test_data():
                group.append(one)
                break
        else:
            groups.append([one])
    return groups


def _globe(group: Sequence[_Shown]) -> Globe:
    task = group[0].task
    fields = {"truth": group[0].truth} | {s.title: s.prediction for s in group}
    physical = {
        source: task.statistics.denormalize(u, task.grid).numpy() for source, u in fields.items()
    }
    count = len(group[0].truth)
    samples = Frames(tuple(task.date(i) or f"sample {i + 1}" for i in range(count)), "sample")
    return forecast_globe(
        f"{span(task.lead)} ahead", task.grid, task.variables, task.units, samples, physical,
        earth=task.earth,
    )  # fmt: skip


def _all_maps(shown: Sequence[_Shown]) -> list[Maps | Folded]:
    """The variable that sets the models apart most, then the others."""
    groups = _groups(shown)
    errors = torch.stack([s.error.square().flatten(2).nanmean((0, 2)) for s in shown])
    order = (errors.amin(0) / errors.amax(0)).argsort(stable=True).tolist()
    first, *others = [[_maps(group, v) for group in groups] for v in order]
    folded = [Folded("The other variables", [m for maps in others for m in maps])]
    return [*first, *(folded if others else [])]


def _maps(group: Sequence[_Shown], variable: int) -> Maps:
    task = group[0].task
    name, unit = task.variables[variable], task.units[variable]
    inputs, truth = (group[0].physical(u, variable) for u in (group[0].inputs, group[0].truth))
    predictions = [s.physical(s.prediction, variable) for s in group]
    top = [Panel("input", inputs)]
    top += [Panel(s.title, p) for s, p in zip(group, predictions, strict=True)]
    bottom = [Panel("truth", truth)]
    bottom += [
        Panel(f"error of {s.title}", p - truth, "error")
        for s, p in zip(group, predictions, strict=True)
    ]
    date = task.date(0)
    return Maps(
        f"{name}, {date + ', ' if date else ''}{span(task.lead)} ahead",
        f"{name} ({unit})" if unit else name,
        task.grid,
        [top, bottom],
        earth=task.earth,
    )
