"""What the networks share: a skip around what they learn, and blocks one after the other."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spherule.grids import Grid
from spherule.models.base import Model
from spherule.models.config import NetworkConfig
from spherule.models.least_squares import Batches, LinearFit, fit_mix
from spherule.models.skip import Skip
from spherule.nn.masks import call


class Network(Model):
    """A model whose learned branch may run beside a skip."""

    config: NetworkConfig

    def __init__(
        self, config: NetworkConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        for name, used in {
            "skip": config.skip == "identity",
            "keep_mean": config.keep_mean,
        }.items():
            if used and out_channels > in_channels:
                raise ValueError(
                    f"{name}={getattr(config, name)!r} needs an input channel for each of "
                    f"out_channels={out_channels}, got in_channels={in_channels}"
                )
        self.skip = Skip(self.config, self.grid, in_channels, out_channels)

    def predict(self, x: Tensor) -> Tensor:
        return self.skip(x, self.branch(x))

    def predict_masked(self, x: Tensor, mask: Tensor) -> Tensor:
        return self.skip(x, self.branch(x, mask))

    def branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What is learned beside the skip."""
        raise NotImplementedError

    def end_in(self, last: nn.Module) -> None:
        """Beside a fitted skip, a network begins with nothing to add: its last layer is 0."""
        if self.config.fitted_skip:
            for parameter in last.parameters():
                nn.init.zeros_(parameter)

    @property
    def fitting_samples(self) -> int:
        return 0 if self.skip.mix is None else self.skip.mix.fitting_samples

    def fit(self, batches: Batches, *, steady: bool = False) -> LinearFit | None:
        """Fit the skip's linear map; what it leaves of each channel becomes the scale of what the
        network adds.

        Args:
            batches: (input, target, ...) each, seen once.
            steady: take weights near the best of a map that does not grow when it follows itself.
        """
        if self.skip.mix is None:
            return None
        fit = fit_mix(self.skip.mix, batches, steady=steady)
        # Where nothing is left, the network must still be able to say something.
        self.skip.scale.copy_(fit.deviation.clamp(min=1e-6))
        return fit

    def run_blocks(
        self, blocks: nn.ModuleList, position: nn.Module, x: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """The blocks one after the other, with the position added before each."""
        for block in blocks:
            x = position(x)
            if self.config.checkpoint and self.training:
                x = checkpoint(block, x, mask, use_reentrant=False)
            else:
                x = call(block, x, mask)
        return x
