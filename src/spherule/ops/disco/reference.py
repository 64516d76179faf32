"""DISCO convolution in the symbols of its equation: the oracle of every kernel, and the fallback
where there is none.

    y[o, i] = sum_ckj weight[o, c, k] psi[k, i, j] x[c, j]

over the channels c of o's group, hats k and input points j.
"""

from functools import lru_cache

import torch
from torch import Tensor

from spherule.geometry.filters import Stencil
from spherule.ops.sparse import SparseMap


def disco(x: Tensor, weight: Tensor, stencil: Stencil) -> Tensor:
    """x (batch, in_channels, points), weight (out_channels, in_channels // groups, hats)."""
    batch, channels, _ = x.shape
    groups = channels // weight.shape[1]
    psi = _psi(stencil, x.dtype, x.device)
    under_hats = psi(x).reshape(batch, groups, channels // groups, stencil.basis, -1)
    y = torch.einsum("gock,bgcki->bgoi", weight.reshape(groups, -1, *weight.shape[1:]), under_hats)
    return y.reshape(batch, weight.shape[0], -1)


@lru_cache(maxsize=32)
@torch.inference_mode(False)  # made in inference, used in training too
def _psi(stencil: Stencil, dtype: torch.dtype, device: torch.device) -> SparseMap:
    entries = stencil.pairs.entries()
    row = entries.hat * stencil.out_grid.size + entries.target
    shape = (stencil.basis * stencil.out_grid.size, stencil.in_grid.size)
    return SparseMap.build(row, entries.source, entries.value, shape, dtype, device)
