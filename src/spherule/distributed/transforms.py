"""Spherical harmonic transforms over ranks: rings are split for the longitudes and orders for the
colatitudes, with one exchange between. Coefficients are pairs of real numbers, of a rank's own
orders only: `[..., l, own orders, 2]`.
"""

from itertools import chain, pairwise

import torch
from torch import Tensor
from torch._compile import _disable_dynamo

from spherule import checks, ops
from spherule.distributed.collectives import hand_back, hand_out
from spherule.distributed.shards import Place, Shards, own, summed, whole
from spherule.geometry.transforms import SCALAR
from spherule.grids import Grid
from spherule.ops.checks import require_degree, require_points
from spherule.ops.colatitudes import to_coeffs, to_rings
from spherule.ops.sht import to_orders, to_points
from spherule.ops.sht_operators import isht_operator, sht_operator
from spherule.ops.tables import table


@checks.arguments
def sht(u: Tensor, place: Place, lmax: int) -> Tensor:
    """Coefficients of a rank's own orders, of a field (..., *place.shape)."""
    if not torch.compiler.is_compiling():
        require_degree("lmax", lmax, whole(place))
        require_points("u", u, own(place))
    if isinstance(place, Grid):
        return sht_operator(u, place.name, lmax)
    return _sht(u, place, lmax)


# Compiled programs call these as they are: their tables are made by numpy, and kept.
@_disable_dynamo
def _sht(u: Tensor, place: Shards, lmax: int) -> Tensor:
    orders = torch.view_as_real(to_orders(u, place.part, lmax))
    mine = orders[..., _all_orders(place, lmax, u.device), :]
    rings = hand_out(mine, mine.ndim - 2, mine.ndim - 3, *_where(place, lmax))
    own = tuple(own_orders(place, lmax))
    coeffs = to_coeffs(SCALAR, torch.view_as_complex(rings), place.grid, lmax, own)
    return torch.view_as_real(coeffs).contiguous()


@checks.arguments
def isht(coeffs: Tensor, place: Place) -> Tensor:
    """The field of coefficients: the inverse of `sht`."""
    if coeffs.ndim < 3 or coeffs.shape[-1] != 2:
        raise ValueError(f"coeffs: expected (..., l, orders, 2), got {tuple(coeffs.shape)}")
    if coeffs.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"coeffs: expected float32 or float64, got {coeffs.dtype}")
    coeffs = coeffs.contiguous()
    if isinstance(place, Grid):
        return isht_operator(coeffs, place.name)
    return _isht(coeffs, place)


@_disable_dynamo
def _isht(coeffs: Tensor, place: Shards) -> Tensor:
    lmax = coeffs.shape[-3] - 1
    own = tuple(own_orders(place, lmax))
    spectra = to_rings(SCALAR, torch.view_as_complex(coeffs), place.grid, own)
    rings = torch.view_as_real(spectra)
    give, take, group = _where(place, lmax)
    split, join = rings.ndim - 2, rings.ndim - 3
    orders = hand_back(rings, split, join, give, take, lmax + 1, group)
    back = _all_orders(place, lmax, coeffs.device).argsort()
    return to_points(torch.view_as_complex(orders[..., back, :].contiguous()), place.part)


@checks.arguments
def power_spectrum(u: Tensor, place: Place, lmax: int) -> Tensor:
    """C_l of the whole field, on all ranks: as `ops.power_spectrum`."""
    if isinstance(place, Grid):
        return ops.power_spectrum(ops.sht(u, place, lmax))
    signs = torch.tensor([1 if m == 0 else 2 for m in own_orders(place, lmax)]).to(u)
    power = (sht(u, place, lmax).square().sum(-1) * signs).sum(-1)
    degrees = torch.arange(lmax + 1, dtype=u.dtype, device=u.device)
    return summed(power, place) / (2 * degrees + 1)


@checks.arguments
def order_runs(lmax: int, ranks: int) -> list[list[int]]:
    """The orders of each rank. Order m has lmax + 1 - m degrees, so m goes with lmax - m."""
    checks.integer("lmax", lmax, low=0)
    checks.integer("ranks", ranks, low=1)
    pairs = [sorted({m, lmax - m}) for m in range(lmax // 2 + 1)]
    ends = [len(pairs) * rank // ranks for rank in range(ranks + 1)]
    return [list(chain(*pairs[first:last])) for first, last in pairwise(ends)]


def _where(shards: Shards, lmax: int) -> tuple[list[int], list[int], str]:
    give, start = [], 0
    for orders in order_runs(lmax, shards.ranks):
        give += [start, start + len(orders)]
        start += len(orders)
    return give, [b - a for a, b in shards.runs], shards.group


@table(maxsize=64)
def _all_orders(shards: Shards, lmax: int, device: torch.device) -> Tensor:
    """Rank by rank."""
    return torch.tensor([*chain(*order_runs(lmax, shards.ranks))], device=device)


def own_orders(place: Place, lmax: int) -> list[int]:
    """The orders that a rank has coefficients of; of a whole grid, all."""
    if not isinstance(place, Shards):
        return [*range(lmax + 1)]
    return order_runs(lmax, place.ranks)[place.rank]
