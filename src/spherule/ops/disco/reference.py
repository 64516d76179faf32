"""DISCO convolution in the symbols of its equation: the oracle of every kernel, and the fallback
where there is none.

    y[o, i] = sum_ckj weight[o, c, k] psi[k, i, j] x[c, j]

over the channels c of o's group, hats k and input points j; transposed, with psi[k, j, i].
"""

import torch
from torch import Tensor

from spherule.geometry.filters import Stencil
from spherule.ops.sparse import SparseMap
from spherule.ops.tables import table


def convolve(
    x: Tensor, weight: Tensor, stencil: Stencil, transposed: bool
) -> tuple[Tensor, Tensor | None]:
    """x (batch, groups in, points) with weight (groups, out, in, hats)."""
    wide = torch.promote_types(x.dtype, torch.float32)
    under_hats = _under_hats(x.to(wide), weight.shape[0], stencil, transposed)
    y = torch.einsum("gock,bgcki->bgoi", weight.to(wide), under_hats)
    return y.flatten(1, 2).to(x.dtype), None


def correlate(
    x: Tensor,
    dy: Tensor,
    x_hats: Tensor | None,
    dy_hats: Tensor | None,
    groups: int,
    stencil: Stencil,
    transposed: bool,
) -> Tensor:
    """The gradient (groups, out, in, hats) of `convolve` with respect to its weight."""
    wide = torch.promote_types(x.dtype, torch.float32)
    under_hats = _under_hats(x.to(wide), groups, stencil, transposed)
    by_group = dy.to(wide).unflatten(1, (groups, dy.shape[1] // groups))
    dweight = torch.einsum("bgoi,bgcki->gock", by_group, under_hats)
    return dweight.contiguous().to(x.dtype)


def _under_hats(x: Tensor, groups: int, stencil: Stencil, transposed: bool) -> Tensor:
    """(batch, groups, channels of a group, hats, points)"""
    psi = _psi(stencil, transposed, x.dtype, x.device)
    return psi(x.unflatten(1, (groups, x.shape[1] // groups))).unflatten(3, (stencil.basis, -1))


@table(maxsize=32)
def _psi(stencil: Stencil, transposed: bool, dtype: torch.dtype, device: torch.device) -> SparseMap:
    pairs = stencil.pairs.transpose if transposed else stencil.pairs
    entries = pairs.entries()
    row = entries.hat * pairs.target.size + entries.target
    shape = (stencil.basis * pairs.target.size, pairs.source.size)
    return SparseMap.build(row, entries.source, entries.value, shape, dtype, device)
