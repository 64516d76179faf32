"""The transforms as operators, for layers: what compiled and exported programs hold is the grid's
name, and coefficients as pairs of real numbers, `[..., l, m, 2]`.

Each is linear, and its gradient is its adjoint, an operator too.
"""

from functools import lru_cache

import torch
from torch import Tensor

from spherule.geometry.transforms import SCALAR
from spherule.grids import Grid
from spherule.ops.colatitudes import to_coeffs_adjoint, to_rings_adjoint
from spherule.ops.forward_mode import refuse_in_backward
from spherule.ops.operator import operator
from spherule.ops.sht import isht, sht, to_orders, to_points

_grid = lru_cache(maxsize=64)(Grid.from_name)


@operator("sht", linear=1)
def sht_operator(u: Tensor, grid: str, lmax: int) -> Tensor:
    return _pairs(sht(u, _grid(grid), lmax))


@operator("isht", linear=1)
def isht_operator(coeffs: Tensor, grid: str) -> Tensor:
    return isht(torch.view_as_complex(coeffs), _grid(grid)).contiguous()


@operator("sht_adjoint")
def sht_adjoint(coeffs: Tensor, grid: str) -> Tensor:
    where = _grid(grid)
    orders = to_coeffs_adjoint(SCALAR, torch.view_as_complex(coeffs), where)
    return to_points(orders / _signs(orders), where).contiguous()


@operator("isht_adjoint")
def isht_adjoint(u: Tensor, grid: str, lmax: int) -> Tensor:
    where = _grid(grid)
    coeffs = to_rings_adjoint(SCALAR, to_orders(u, where, lmax), where, lmax)
    return _pairs(coeffs * _signs(coeffs))


def _pairs(coeffs: Tensor) -> Tensor:
    return torch.view_as_real(coeffs).contiguous()


def _signs(coeffs: Tensor) -> Tensor:
    """How many orders each m >= 0 of a real field stands for: itself, and -m."""
    signs = coeffs.real.new_full((coeffs.shape[-1],), 2.0)
    signs[0] = 1.0
    return signs


def _fake_coeffs(u: Tensor, grid: str, lmax: int) -> Tensor:
    return u.new_empty(*u.shape[: u.ndim - len(_grid(grid).shape)], lmax + 1, lmax + 1, 2)


def _fake_field(coeffs: Tensor, grid: str) -> Tensor:
    return coeffs.new_empty(*coeffs.shape[:-3], *_grid(grid).shape)


def _keep(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.grid, ctx.lmax = inputs[1], (inputs[2] if len(inputs) > 2 else inputs[0].shape[-2] - 1)


def _apply(adjoint, ctx, gradient: Tensor, *degree: int) -> Tensor:  # type: ignore[no-untyped-def]
    refuse_in_backward()
    return adjoint(gradient.contiguous(), ctx.grid, *degree)


for _analyze, _synthesize in ((sht_operator, sht_adjoint), (isht_adjoint, isht_operator)):
    _analyze.register_fake(_fake_coeffs)
    _synthesize.register_fake(_fake_field)
    _analyze.register_autograd(
        lambda ctx, g, adjoint=_synthesize: (_apply(adjoint, ctx, g), None, None),
        setup_context=_keep,
    )
    _synthesize.register_autograd(
        lambda ctx, g, adjoint=_analyze: (_apply(adjoint, ctx, g, ctx.lmax), None),
        setup_context=_keep,
    )
