"""What a linear map can do: the baseline that a network must beat, found by least squares."""

from dataclasses import dataclass, replace

from torch import Tensor

from spherule import checks
from spherule.grids import Grid
from spherule.models.base import Model
from spherule.models.config import ModelConfig
from spherule.models.least_squares import Batches, LinearFit, fit_mix
from spherule.nn import SpectralMix, ZonalMix
from spherule.nn.spectral import default_lmax


@dataclass(frozen=True)
class LinearConfig(ModelConfig):
    """A matrix over channels for each degree, or for each degree and order."""

    lmax: int | None = None
    """The highest degree, beyond which the output has none; by default what the grid resolves."""
    reach: int | None = None
    """Degrees on either side that each is found from, for each order on its own (`nn.ZonalMix`); by
    default none, and the same for all orders (`nn.SpectralMix`)."""

    def check(self) -> None:
        for name in ("lmax", "reach"):
            if getattr(self, name) is not None:
                checks.integer(name, getattr(self, name), low=0)

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
        lmax, reach = self.config.lmax, self.config.reach
        assert lmax is not None
        self.mix: SpectralMix | ZonalMix
        if reach is None:
            self.mix = SpectralMix(in_channels, out_channels, self.grid, lmax)
        else:
            self.mix = ZonalMix(in_channels, out_channels, self.grid, lmax, reach=reach)

    def predict(self, x: Tensor) -> Tensor:
        return self.mix(x)

    @property
    def fitting_samples(self) -> int:
        return self.mix.fitting_samples

    def fit(self, batches: Batches, *, steady: bool = False) -> LinearFit:
        """Take the weights that fit best.

        Args:
            batches: (input, target, ...) each, seen once.
            steady: take weights near the best of a map that does not grow when it follows itself.
        """
        return fit_mix(self.mix, batches, steady=steady)
