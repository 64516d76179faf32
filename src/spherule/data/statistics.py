"""Mean and deviation of each variable: what models see is fields in deviations from the mean."""

from dataclasses import dataclass

from jaxtyping import Shaped
from torch import Tensor

from spherule.grids import Grid


@dataclass(frozen=True)
class Statistics:
    """Of each variable, over the sphere and the training samples."""

    mean: tuple[float, ...]
    std: tuple[float, ...]

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
