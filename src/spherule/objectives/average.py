"""Mean and deviation over samples, batch by batch and over ranks."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed
from jaxtyping import Bool, Float
from torch import Tensor
from torch.distributed import ProcessGroup

from spherule import checks
from spherule.ops.checks import require_floats


@dataclass(frozen=True)
class MeanStd:
    """Over `count` samples; without any, mean and deviation are 0."""

    mean: float
    std: float
    count: int

    def __format__(self, spec: str) -> str:
        return f"{self.mean:{spec}} ± {self.std:{spec}}"


class Average:
    """Named values of samples, such as losses and metrics give; what is kept is their count, mean
    and sum of squares about it, in float64.
    """

    def __init__(self) -> None:
        self._sums: dict[str, tuple[int, float, float]] = {}
        self._reduced = False

    @checks.arguments
    def update(
        self,
        values: Mapping[str, Float[Tensor, "batch"]],
        valid: Bool[Tensor, "batch"] | None = None,
    ) -> None:
        """Add a batch; samples that are not valid, those masked whole, are left out."""
        if self._reduced:
            raise RuntimeError("update after reduce: these are the values of all ranks")
        for name, batch in values.items():
            require_floats(**{f"values[{name!r}]": batch})
            if batch.ndim != 1 or (valid is not None and valid.shape != batch.shape):
                raise ValueError(
                    f"values[{name!r}]: expected one number a sample, got {tuple(batch.shape)}"
                    + ("" if valid is None else f" with valid {tuple(valid.shape)}")
                )
            numbers = (batch if valid is None else batch[valid]).detach().double()
            count = numbers.numel()
            mean = numbers.mean().item() if count else 0.0
            new = count, mean, (numbers - mean).square().sum().item()
            self._sums[name] = _joined(self._sums.get(name, (0, 0.0, 0.0)), new)

    def reduce(self, group: ProcessGroup | None = None) -> "Average":
        """Make these the values of all ranks, or of a group of them, once, where torch.distributed
        is initialized.
        """
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            if not self._reduced:
                parts: list = [None] * torch.distributed.get_world_size(group)
                torch.distributed.all_gather_object(parts, self._sums, group)
                self._sums = {}
                for name, new in (item for part in parts for item in part.items()):
                    self._sums[name] = _joined(self._sums.get(name, (0, 0.0, 0.0)), new)
            self._reduced = True
        return self

    def compute(self) -> dict[str, MeanStd]:
        """Mean and (population) standard deviation of each name."""
        return {
            name: MeanStd(mean, math.sqrt(squares / count) if count else 0.0, count)
            for name, (count, mean, squares) in self._sums.items()
        }


def _joined(a: tuple[int, float, float], b: tuple[int, float, float]) -> tuple[int, float, float]:
    """Count, mean and sum of squares about the mean of two sets of numbers together."""
    count = a[0] + b[0]
    if count == 0:
        return a
    apart = b[1] - a[1]
    mean = a[1] + apart * b[0] / count
    return count, mean, a[2] + b[2] + apart**2 * a[0] * b[0] / count
