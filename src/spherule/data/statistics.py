"""Mean and deviation of each variable: what models see is fields in deviations from the mean."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from spherule.grids import Grid


@dataclass(frozen=True)
class Statistics:
    """Of each variable, over the sphere and the training samples."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

    @classmethod
    def from_metadata(
        cls, metadata: dict[str, Any] | None, prefix: str = ""
    ) -> "Statistics | None":
        """Those that a run has kept, if it has."""
        if metadata is None or f"{prefix}mean" not in metadata:
            return None
        return cls(tuple(metadata[f"{prefix}mean"]), tuple(metadata[f"{prefix}std"]))

    def normalise(self, fields: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "..."]:
        """Fields `(..., variables, *grid.shape)` in deviations from the mean."""
        mean, std = self._columns(fields, grid)
        return (fields - mean) / std

    def denormalise(self, fields: Shaped[Tensor, "..."], grid: Grid) -> Shaped[Tensor, "..."]:
        """The inverse: fields in their own units."""
        mean, std = self._columns(fields, grid)
        return fields * std + mean

    def _columns(self, fields: Tensor, grid: Grid) -> tuple[Tensor, ...]:
        shape = (-1, *[1] * len(grid.shape))
        return tuple(fields.new_tensor(values).reshape(shape) for values in (self.mean, self.std))
