"""What the networks share: a skip around what they learn, and blocks one after the other."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spherule.grids import Grid
from spherule.models.base import Model
from spherule.models.config import NetworkConfig


class Network(Model):
    """A model whose learned branch may run beside a skip."""

    config: NetworkConfig

    def __init__(
        self, config: NetworkConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        if config.skip != "none" and out_channels > in_channels:
            raise ValueError(
                f"skip={config.skip!r} needs an input channel for each of "
                f"out_channels={out_channels}, got in_channels={in_channels}"
            )

    def predict(self, x: Tensor) -> Tensor:
        y = self.branch(x)
        return x[:, : self.out_channels] + y if self.config.skip == "identity" else y

    def branch(self, x: Tensor) -> Tensor:
        """What is learned beside the skip."""
        raise NotImplementedError

    def run_blocks(self, blocks: nn.ModuleList, position: nn.Module, x: Tensor) -> Tensor:
        """The blocks one after the other, with the position added before each."""
        for block in blocks:
            x = position(x)
            if self.config.checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x
