"""The SegFormer of the paper: four stages, each at half the resolution of the one before, all seen
by the decoder.
"""

import dataclasses
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from spherule.grids import Grid
from spherule.models.base import Model, ModelConfig
from spherule.models.parts import (
    coarser,
    drop_path_rates,
    filter_cutoff,
    make_block,
    make_convolution,
    make_norm,
    make_position,
)
from spherule.nn import Projection, Resample


@dataclass(frozen=True)
class SphericalSegformerConfig(ModelConfig):
    """606,113 parameters with one output channel, global or local; `large` doubles the widths."""

    stage_grids: tuple[str, ...] | None = None
    """Where the stages run; by default `grid` coarsened once more for each, as far as that
    goes."""
    widths: tuple[int, ...] = (16, 32, 64, 128)
    depths: tuple[int, ...] = (3, 4, 6, 3)
    heads: tuple[int, ...] = (1, 2, 4, 8)
    kernel: int = 3
    """Side of planar kernels; the spherical ones have nine functions."""
    cutoffs: tuple[float, ...] | None = None
    """Radii of local attention a stage; by default those of `window` cells."""
    merging_cutoffs: tuple[float | None, ...] | None = None
    """Radii of the filters that lead into each stage; by default 3 spacings of its grid,
    or what it takes to find points under every hat."""
    mixing_cutoffs: tuple[float | None, ...] | None = None
    """Radii of the filters within each stage; by default the same."""

    def large(self) -> "SphericalSegformerConfig":
        """Twice the widths."""
        return dataclasses.replace(self, widths=tuple(2 * w for w in self.widths))


@dataclass(frozen=True)
class PlanarSegformerConfig(SphericalSegformerConfig):
    """The planar counterpart: 4x4 convolutions, 7x7 windows. 689,265 parameters (local)."""

    convolution: Literal["spherical", "planar"] = "planar"
    attention: Literal["spherical", "planar"] = "planar"
    position: Literal["spectral", "learned", "sequence", "none"] = "none"
    norm: Literal["instance", "plain_instance", "layer"] = "layer"
    kernel: int = 4


class MixFeedForward(nn.Module):
    """A feed-forward part that looks around: linear, depthwise convolution, GELU, linear."""

    def __init__(self, channels: int, convolution: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = Projection(channels, channels, bias=True)
        self.convolution = convolution
        self.activation = nn.GELU()
        self.second = Projection(channels, channels, bias=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        mixed = self.activation(self.convolution(self.first(x.flatten(2)).view_as(x)))
        return self.dropout(self.second(mixed.flatten(2))).view_as(x)


class Stage(nn.Module):
    """A merging convolution, blocks, and a norm at the end."""

    def __init__(
        self,
        merge: nn.Module,
        norm: nn.Module,
        position: nn.Module,
        blocks: nn.ModuleList,
        end: nn.Module,
    ) -> None:
        super().__init__()
        self.merge = merge
        self.norm = norm
        self.position = position
        self.blocks = blocks
        self.end = end


class SphericalSegformer(Model):
    """Four stages and a decoder that adds up what they see."""

    Config = SphericalSegformerConfig

    def __init__(self, config: SphericalSegformerConfig) -> None:
        super().__init__(config)
        config = _resolved(config, self.grid)
        self.config = config
        assert config.stage_grids is not None
        assert config.cutoffs is not None
        assert config.merging_cutoffs is not None
        assert config.mixing_cutoffs is not None
        grids = [Grid.from_name(name) for name in config.stage_grids]
        rates = iter(drop_path_rates(config, sum(config.depths)))
        self.stages = nn.ModuleList()
        before, channels = self.grid, config.in_channels
        for i, (grid, width) in enumerate(zip(grids, config.widths, strict=True)):
            merge = make_convolution(
                config,
                channels,
                width,
                before,
                grid,
                cutoff=config.merging_cutoffs[i],
                kernel=config.kernel,
            )
            position = make_position(config.position, width, grid)
            blocks = nn.ModuleList(
                make_block(
                    config,
                    width,
                    grid,
                    config.heads[i],
                    cutoff=config.cutoffs[i],
                    feed_forward=MixFeedForward(
                        width,
                        make_convolution(
                            config,
                            width,
                            width,
                            grid,
                            grid,
                            cutoff=config.mixing_cutoffs[i],
                            kernel=config.kernel,
                            groups=width,
                        ),
                        dropout=config.dropout,
                    ),
                    drop_path=next(rates),
                )
                for _ in range(config.depths[i])
            )
            norm, end = (make_norm(config.norm, width, grid) for _ in range(2))
            self.stages.append(Stage(merge, norm, position, blocks, end))
            before, channels = grid, width
        self.projections = nn.ModuleList(Projection(w, w, bias=True) for w in config.widths)
        self.dropout = nn.Dropout1d(config.dropout)
        self.upsamples = nn.ModuleList(Resample(grid, self.grid) for grid in grids)
        self.head = Projection(sum(config.widths), config.out_channels, bias=True)

    def predict(self, x: Tensor) -> Tensor:
        levels = []
        for stage in self.stages:
            assert isinstance(stage, Stage)
            x = stage.end(self.run_blocks(stage.blocks, stage.position, stage.norm(stage.merge(x))))
            levels.append(x)
        # The head is linear and upsampling acts channel by channel, so the head comes first: few
        # channels are upsampled.
        columns = self.head.weight.split(self.config.widths, dim=1)
        parts = []
        for level, project, weight, upsample in zip(
            levels, self.projections, columns, self.upsamples, strict=True
        ):
            seen = self.dropout(project(level.flatten(2)))
            mixed = nn.functional.conv1d(seen, weight[..., None])
            parts.append(upsample(mixed.unflatten(-1, level.shape[2:])))
        assert self.head.bias is not None
        bias = self.head.bias.view(-1, *[1] * len(self.grid.shape))
        return sum(parts[1:], parts[0]) + bias

    def moved(self, grid: str) -> ModelConfig:
        return dataclasses.replace(self.config, grid=grid, stage_grids=None)


class PlanarSegformer(SphericalSegformer):
    """The same with planar convolutions and attention."""

    Config = PlanarSegformerConfig


def _resolved(config: SphericalSegformerConfig, grid: Grid) -> SphericalSegformerConfig:
    """The config with all grids and radii filled in."""
    stages = len(config.widths)
    for name in ("depths", "heads", "stage_grids", "cutoffs", "merging_cutoffs", "mixing_cutoffs"):
        value = getattr(config, name)
        if value is not None and len(value) != stages:
            raise ValueError(
                f"{name}={value}: expected one entry for each of widths={config.widths}"
            )
    grids: list[Grid] = []
    for i in range(stages):
        if config.stage_grids is None:
            grids.append(coarser(grids[-1] if grids else grid))
        else:
            grids.append(Grid.from_name(config.stage_grids[i]))
    merging = config.merging_cutoffs or tuple(
        filter_cutoff(config, *pair) for pair in pairwise([grid, *grids])
    )
    mixing = config.mixing_cutoffs or tuple(filter_cutoff(config, g, g) for g in grids)
    return dataclasses.replace(
        config,
        stage_grids=tuple(g.name for g in grids),
        cutoffs=config.cutoffs or tuple(g.cutoff(config.window) for g in grids),
        merging_cutoffs=merging,
        mixing_cutoffs=mixing,
    )
