"""The SegFormer of the paper: four stages, each at half the resolution of the one before, all seen
by the decoder.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place, Shards
from spherule.grids import Grid
from spherule.models.config import GeometryConfig, check_cutoff, check_width
from spherule.models.layers import (
    AnyPlace,
    attention_cutoff,
    coarser,
    drop_path_rates,
    filter_cutoff,
    make_attention,
    make_block,
    make_convolution,
    make_norm,
    make_position,
    make_upsampling,
    reach,
)
from spherule.models.network import Network
from spherule.nn import Placed, Projection, place
from spherule.nn.masks import call
from spherule.ops.pointwise import linear


@dataclass(frozen=True)
class SegformerConfig(GeometryConfig):
    """606,113 parameters from 3 channels to 1, global or local; the planar counterpart has 4x4
    convolutions, 7x7 windows and 689,265 (local).
    """

    PLANAR: ClassVar[dict[str, Any]] = {
        "convolution": "planar",
        "attention": "planar",
        "position": "none",
        "norm": "plain_instance",
    }

    stage_grids: tuple[str, ...] | None = None
    """Where the stages run; by default the model's grid coarsened once more for each, as far as
    that goes."""
    widths: tuple[int, ...] = (16, 32, 64, 128)
    depths: tuple[int, ...] = (3, 4, 6, 3)
    heads: tuple[int, ...] = (1, 2, 4, 8)
    kernel: int = 4
    """Side of planar kernels; the spherical ones have nine functions."""
    cutoffs: tuple[float, ...] | None = None
    """Radii of local attention a stage; by default those of `window` cells."""
    merging_cutoffs: tuple[float, ...] | None = None
    """Radii of the filters that lead into each stage; by default 3 spacings of its grid,
    or what it takes to find points under every hat."""
    mixing_cutoffs: tuple[float, ...] | None = None
    """Radii of the filters within each stage; by default the same."""

    def check(self) -> None:
        super().check()
        if not self.widths:
            raise ValueError("widths=() must have a stage at least")
        of_stages = ("depths", "heads", "stage_grids", *_CUTOFFS)
        for name in of_stages:
            value = getattr(self, name)
            if value is not None and len(value) != len(self.widths):
                raise ValueError(
                    f"{name}={value}: expected one entry for each of widths={self.widths}"
                )
        for i, (width, depth, heads) in enumerate(
            zip(self.widths, self.depths, self.heads, strict=True)
        ):
            check_width(f"widths[{i}]", width, heads)
            checks.integer(f"depths[{i}]", depth, low=1)
        checks.integer("kernel", self.kernel, low=1)
        for name in _CUTOFFS:
            for cutoff in getattr(self, name) or ():
                check_cutoff(name, cutoff)

    def resolved(self, grid: Grid) -> "SegformerConfig":
        if self.stage_grids is None:
            grids = stages_below(grid, len(self.widths))
        else:
            grids = [Grid.from_name(name) for name in self.stage_grids]
        merging = [filter_cutoff(self, *pair) for pair in pairwise([grid, *grids])]
        mixing = [filter_cutoff(self, g, g) for g in grids]
        return replace(
            super().resolved(grid),
            upsampling=self.upsampling or self.convolution,
            stage_grids=tuple(g.name for g in grids),
            cutoffs=self.cutoffs or _known(attention_cutoff(self, g) for g in grids),
            merging_cutoffs=self.merging_cutoffs or _known(merging),
            mixing_cutoffs=self.mixing_cutoffs or _known(mixing),
        )

    def large(self) -> "SegformerConfig":
        """Twice the widths."""
        return replace(self, widths=tuple(2 * w for w in self.widths))


_CUTOFFS = ("cutoffs", "merging_cutoffs", "mixing_cutoffs")


class MixFeedForward(nn.Module):
    """A feed-forward part that looks around: linear, depthwise convolution, GELU, linear."""

    mask_argument: ClassVar[str] = "mask"

    def __init__(self, channels: int, convolution: nn.Module, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.first = Projection(channels, channels, bias=True)
        self.convolution = convolution
        self.activation = nn.GELU()
        self.second = Projection(channels, channels, bias=True)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        mixed = self.activation(call(self.convolution, self.first(x.flatten(2)).view_as(x), mask))
        return self.dropout(self.second(mixed.flatten(2))).view_as(x)


class Stage(Placed):
    """A merging convolution, blocks, and a norm at the end."""

    def __init__(
        self,
        config: SegformerConfig,
        index: int,
        in_channels: int,
        in_grid: Grid,
        grid: Grid,
        rates: Iterator[float],
    ) -> None:
        super().__init__()
        width, heads = config.widths[index], config.heads[index]
        attending, merging, mixing = (
            None if radii is None else radii[index]
            for radii in (config.cutoffs, config.merging_cutoffs, config.mixing_cutoffs)
        )
        convolution = partial(make_convolution, config, kernel=config.kernel)
        self.merge = convolution(in_channels, width, in_grid, grid, cutoff=merging)
        self.position = make_position(config.position, width, grid)
        self.blocks = nn.ModuleList(
            make_block(
                config,
                width,
                grid,
                feed_forward=MixFeedForward(
                    width,
                    convolution(width, width, grid, grid, cutoff=mixing, groups=width),
                    dropout=config.dropout,
                ),
                attention=make_attention(config, width, grid, heads, attending),
                drop_path=next(rates),
            )
            for _ in range(config.depths[index])
        )
        self.norm, self.end = (make_norm(config.norm, width, grid) for _ in range(2))

    def place(self, in_grid: Place, grid: Place) -> None:
        place(self.merge, in_grid, grid)
        for part in (self.position, self.blocks, self.norm, self.end):
            place(part, grid)


class Segformer(Network):
    """Four stages and a decoder that adds up what they see."""

    Config = SegformerConfig
    config: SegformerConfig

    def __init__(
        self, config: SegformerConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__(config, grid, in_channels, out_channels)
        config = self.config
        assert config.stage_grids is not None
        grids = [Grid.from_name(name) for name in config.stage_grids]
        rates = iter(drop_path_rates(config, sum(config.depths)))
        self.stages = nn.ModuleList()
        before, channels = self.grid, in_channels
        for i, (stage_grid, width) in enumerate(zip(grids, config.widths, strict=True)):
            self.stages.append(Stage(config, i, channels, before, stage_grid, rates))
            before, channels = stage_grid, width
        self.projections = nn.ModuleList(Projection(w, w, bias=True) for w in config.widths)
        self.dropout = nn.Dropout1d(config.dropout)
        self.upsamples = nn.ModuleList(make_upsampling(config, g, self.grid) for g in grids)
        self.head = Projection(sum(config.widths), out_channels, bias=True)
        self.end_in(self.head)

    def branch(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        levels = []
        for stage in self.stages:
            assert isinstance(stage, Stage)
            x, mask = call(stage.merge, x, mask), reach(stage.merge, mask)
            x = call(stage.norm, x, mask)
            x = call(stage.end, self.run_blocks(stage.blocks, stage.position, x, mask), mask)
            levels.append(x)
        # The head is linear and upsampling acts channel by channel, so the head comes first: few
        # channels are upsampled.
        columns = self.head.weight.split(self.config.widths, dim=1)
        parts = []
        for level, project, weight, upsample in zip(
            levels, self.projections, columns, self.upsamples, strict=True
        ):
            seen = self.dropout(project(level.flatten(2)))
            mixed = linear(seen, weight)
            parts.append(upsample(mixed.unflatten(-1, level.shape[2:])))
        assert self.head.bias is not None
        bias = self.head.bias.view(-1, *[1] * len(self.grid.shape))
        return sum(parts[1:], parts[0]) + bias

    def place(self, grid: Place, *stage_grids: Place) -> None:
        if isinstance(grid, Shards) and self.dropout.p:
            raise ValueError(
                f"Segformer: dropout={self.dropout.p} drops whole channels, which ranks do not "
                "agree on: train it on shards without"
            )
        stages = len(self.stages)
        grids = list(stage_grids) or stages_below(grid, stages)
        if len(grids) != stages:
            raise ValueError(f"Segformer: expected a grid for each of {stages} stages, got {grids}")
        self.grid = grid
        self.config = replace(self.config, stage_grids=tuple(g.name for g in grids))
        for stage, above, here in zip(self.stages, [grid, *grids], grids, strict=False):
            place(stage, above, here)
        for upsample, here in zip(self.upsamples, grids, strict=True):
            place(upsample, here, grid)
        place(self.skip, grid)


def stages_below(grid: AnyPlace, stages: int) -> list[AnyPlace]:
    """Each half the resolution of the one before, as far as that goes."""
    grids = [grid]
    for _ in range(stages):
        grids.append(coarser(grids[-1]))
    return grids[1:]


def _known(cutoffs: Iterable[float | None]) -> tuple[float, ...] | None:
    """Radii a stage, or none at all: all stages are alike in that."""
    known = tuple(cutoff for cutoff in cutoffs if cutoff is not None)
    return known or None
