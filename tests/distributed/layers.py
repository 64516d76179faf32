"""Layers of tests, as functions of grids that pickle."""

from typing import Any

import torch
from torch import nn

from spherule import Grid
from spherule.models import Segformer, SegformerConfig, Transformer, TransformerConfig
from spherule.nn import (
    DiscoConv,
    Harmonics,
    Resample,
    SpectralEmbedding,
    SpectralMix,
    SphericalAttention,
    SphericalInstanceNorm,
    ZonalMix,
)


def attention(grid: Grid, **options: Any) -> nn.Module:
    return SphericalAttention(4, grid, heads=2, bias=True, qk_norm=True, **options)


def cross_attention(query_grid: Grid, grid: Grid, **options: Any) -> nn.Module:
    return Swapped(
        SphericalAttention(4, grid, query_grid=query_grid, context_channels=3, **options)
    )


class Swapped(nn.Module):
    """Cross attention with queries first in `on`, as in `forward`."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: Any) -> Any:
        return self.layer(*inputs)

    def on(self, query_grid: Any, grid: Any) -> "Swapped":
        return Swapped(self.layer.on(grid, query_grid))


def disco(grid: Grid, out_grid: Grid | None = None, **options: Any) -> nn.Module:
    return DiscoConv(4, 4, grid, out_grid, bias=True, **options)


def resample(source: Grid, target: Grid) -> nn.Module:
    return Resample(source, target)


def norm(grid: Grid) -> nn.Module:
    return SphericalInstanceNorm(4, grid)


def embedding(grid: Grid) -> nn.Module:
    return SpectralEmbedding(4, grid)


def harmonics(grid: Grid, lmax: int) -> nn.Module:
    return Harmonics(grid, lmax)


def mix(grid: Grid, lmax: int) -> nn.Module:
    return SpectralMix(4, 3, grid, lmax)


def zonal_mix(grid: Grid, lmax: int) -> nn.Module:
    layer = ZonalMix(4, 3, grid, lmax, reach=2)
    layer.weight = nn.Parameter(torch.randn_like(layer.weight))
    return layer


def transformer(grid: Grid, **options: Any) -> nn.Module:
    config = TransformerConfig(width=8, depth=2, heads=2, mlp_ratio=2.0, **options)
    return Transformer(config, grid, 3, 2)


def segformer(grid: Grid, **options: Any) -> nn.Module:
    config = SegformerConfig(
        widths=(4, 4, 8, 8), depths=(1, 1, 1, 1), heads=(1, 1, 2, 2), **options
    )
    return Segformer(config, grid, 3, 2)
