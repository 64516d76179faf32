"""Mean and deviation of each variable: what models see is fields in deviations from the mean."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

from spherule import checks
from spherule.grids import Grid
from spherule.ops.checks import require_floats, require_points


@dataclass(frozen=True)
class Statistics:
    """Of each variable, over the sphere and the training samples."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        checks.config(self)
        if len(self.mean) != len(self.std):
            raise ValueError(f"mean={self.mean} and std={self.std} must be of as many variables")
        for i, deviation in enumerate(self.std):
            checks.number(f"std[{i}]", deviation, low=0)

    @classmethod
    @checks.arguments
    def from_metadata(
        cls, metadata: dict[str, Any] | None, prefix: str = ""
    ) -> "Statistics | None":
        """Those that a run has kept, if it has."""
        if metadata is None or f"{prefix}mean" not in metadata:
            return None
        mean, std = (metadata.get(f"{prefix}{name}") for name in ("mean", "std"))
        if not isinstance(mean, list | tuple) or not isinstance(std, list | tuple):
            raise ValueError(
                f"metadata: {prefix}mean and {prefix}std must be lists of numbers, got "
                f"{mean!r:.80} and {std!r:.80}"
            )
        return cls(tuple(mean), tuple(std))

    @checks.arguments
    def normalize(self, fields: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "..."]:
        """Fields `(..., variables, *grid.shape)` in deviations from the mean."""
        mean, std = self._columns(fields, grid)
        return (fields - mean) / std

    @checks.arguments
    def denormalize(self, fields: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "..."]:
        """The inverse: fields in their own units."""
        mean, std = self._columns(fields, grid)
        return fields * std + mean

    def _columns(self, fields: Tensor, grid: Grid) -> tuple[Tensor, ...]:
        require_floats(fields=fields)
        require_points("fields", fields, grid)
        lead = fields.shape[: fields.ndim - len(grid.shape)]
        if not lead or lead[-1] != len(self.mean):
            raise ValueError(
                f"fields: expected {len(self.mean)} variables, (..., {len(self.mean)}, "
                f"*grid.shape), got {tuple(fields.shape)}"
            )
        shape = (-1, *[1] * len(grid.shape))
        return tuple(
            torch.tensor(values, dtype=fields.dtype, device=fields.device).reshape(shape)
            for values in (self.mean, self.std)
        )
