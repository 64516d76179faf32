"""Attention over the neighborhood of each point: checks, dispatch and differentiation. The
arithmetic is next door.

The operators take the neighborhood's name. An operator in a compiled or exported program can hold
tensors, numbers and strings only; a name says all that defines a neighborhood, so that such a
program also runs in another process.
"""

from types import ModuleType
from typing import Any, Literal, overload

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spherule import checks, cuda, native
from spherule.checks import instance
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.autocast import autocast_dtype, no_autocast
from spherule.ops.checks import require_qkv
from spherule.ops.forward_mode import has_tangent, refuse_in_backward
from spherule.ops.neighborhood_attention import cpu, reference
from spherule.ops.operator import operator
from spherule.ops.served import by_reference


@overload
def neighborhood_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    *,
    scale: float | None = ...,
    key_mask: Tensor | None = ...,
    return_lse: Literal[False] = ...,
) -> Tensor: ...
@overload
def neighborhood_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    *,
    scale: float | None = ...,
    key_mask: Tensor | None = ...,
    return_lse: Literal[True],
) -> tuple[Tensor, Tensor]: ...
@checks.arguments
def neighborhood_attention(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    v: Float[Tensor, "batch heads keys value_dim"],
    neighborhood: Neighborhood,
    *,
    scale: float | None = None,
    key_mask: Bool[Tensor, "*batch keys"] | None = None,
    return_lse: bool = False,
) -> Float[Tensor, "batch heads queries value_dim"] | tuple[Tensor, Tensor]:
    """Softmax average of v over each query's neighborhood, with quadrature weights (discrete
    neighborhood attention). Any strides; 16-bit inputs are computed in float32.

    Args:
        q: queries.
        k: keys.
        v: values, whose dim may be another.
        neighborhood: the keys of each query, `Neighborhood.disk` or `Neighborhood.window`.
        scale: of the products of queries and keys, 1 / sqrt(dim) by default.
        key_mask: true for the keys that count, for all batches or for each; a query without any
            gets zeros.
        return_lse: give the logarithm of the softmax denominator too, (batch, heads, queries), -inf
            where there are no keys.

    >>> import torch, spherule as sph
    >>> grid = sph.Grid.healpix(8)
    >>> q, k, v = torch.randn(3, 1, 2, grid.size, 16).unbind()
    >>> disk = sph.Neighborhood.disk(grid, grid, cutoff=0.4)
    >>> tuple(sph.ops.neighborhood_attention(q, k, v, disk).shape)
    (1, 2, 768, 16)
    """
    _check(q, k, v, neighborhood, key_mask)
    dtype = autocast_dtype(q)
    q, k, v = (x.to(dtype) for x in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    if has_tangent(q, k, v):
        out, lse = reference.neighborhood_attention(q, k, v, neighborhood, scale, key_mask)
    else:
        out, lse = attend(q, k, v, key_mask, neighborhood.name, scale)
    return (out, lse) if return_lse else out


def _kernels(q: Tensor, v: Tensor) -> ModuleType | None:
    """The one place that chooses: where they are there, the library for CPU tensors and Triton for
    those on a GPU; else None, the reference.
    """
    if not q.numel() or not v.numel():
        return None
    if q.device.type == "cpu":
        return cpu if native.load()[0] is not None else None
    if q.device.type == "cuda" and q.dtype != torch.float64 and cuda.usable():
        # Imports Triton.
        from spherule.ops.neighborhood_attention import gpu

        return gpu if max(q.shape[-1], v.shape[-1]) <= gpu.WIDEST else None
    return None


@operator("neighborhood_attention")
def attend(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, neighborhood: str, scale: float
) -> tuple[Tensor, Tensor]:
    if not q.shape[2]:  # a part of a grid may be empty
        return _outputs(q, v)
    nb, kernels = Neighborhood.from_name(neighborhood), _kernels(q, v)
    if kernels is None:
        with no_autocast(q):
            out, lse = reference.neighborhood_attention(q, k, v, nb, scale, key_mask)
        return _layout(q, v).copy_(out), lse
    out, lse = _outputs(q, v)
    kernels.forward(q, k, v, nb, scale, _contiguous(key_mask), out, lse)
    return out, lse


@operator("neighborhood_attention_backward")
def _attention_backward(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
    neighborhood: str,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    grads = (_layout(q, q), _layout(k, k), _layout(v, v))
    if not q.shape[2]:
        return grads[0], grads[1].zero_(), grads[2].zero_()
    nb, kernels = Neighborhood.from_name(neighborhood), _kernels(q, v)
    if kernels is None:
        with no_autocast(q):
            if grad_lse is None:
                grad_lse = torch.zeros_like(lse)
            values = _reference_grads(grad_out, grad_lse, q, k, v, key_mask, nb, scale)
            for grad, value in zip(grads, values, strict=True):
                grad.copy_(value)
    else:
        mask, grad_lse = _contiguous(key_mask), _contiguous(grad_lse)
        kernels.backward(q, k, v, nb, scale, mask, out, lse, grad_out, grad_lse, grads)
    return grads


def _reference_grads(
    grad_out: Tensor,
    grad_lse: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    neighborhood: Neighborhood,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    # torch.func, since inside an operator autograd itself is off.
    _, vjp = torch.func.vjp(  # type: ignore[misc]
        lambda q, k, v: reference.neighborhood_attention(q, k, v, neighborhood, scale, key_mask),
        q,
        k,
        v,
    )
    return vjp((grad_out, grad_lse))


@attend.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, neighborhood: str, scale: float
) -> tuple[Tensor, Tensor]:
    return _outputs(q, v)


@_attention_backward.register_fake
def _(
    grad_out: Tensor,
    grad_lse: Tensor | None,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
    neighborhood: str,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    return _layout(q, q), _layout(k, k), _layout(v, v)


def _setup_context(ctx: Any, inputs: tuple, output: tuple) -> None:
    q, k, v, key_mask, ctx.neighborhood, ctx.scale = inputs
    ctx.save_for_backward(q, k, v, key_mask, *output)
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None) -> tuple:
    refuse_in_backward()
    q, k, v, key_mask, out, lse = ctx.saved_tensors
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    grads = _attention_backward(
        grad_out, grad_lse, q, k, v, key_mask, out, lse, ctx.neighborhood, ctx.scale
    )
    return *grads, None, None, None


def _keep_for_second(ctx: Any, inputs: tuple, output: tuple) -> None:
    *tensors, _, _, ctx.neighborhood, ctx.scale = inputs
    ctx.save_for_backward(*tensors)


def _second_backward(ctx: Any, *cotangents: Tensor) -> tuple:
    """By the reference. What out and lse add follows from q, k and v: theirs is all of it."""
    refuse_in_backward()
    grad_out, grad_lse, q, k, v, key_mask = ctx.saved_tensors
    nb = Neighborhood.from_name(ctx.neighborhood)
    given = grad_lse is not None
    first = grad_lse if given else q.new_zeros(q.shape[:-1], dtype=_wide(q))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        return reference.neighborhood_attention(q, k, v, nb, ctx.scale, key_mask)

    d_out, d_lse, *d_qkv = by_reference(
        lambda d_out, d_lse, *qkv: by_reference(attend, qkv, (d_out, d_lse)),
        (grad_out, first, q, k, v),
        cotangents,
    )
    return d_out, d_lse if given else None, *d_qkv, *[None] * 5


attend.register_autograd(_backward, setup_context=_setup_context)
_attention_backward.register_autograd(_second_backward, setup_context=_keep_for_second)


def _layout(like: Tensor, v: Tensor) -> Tensor:
    """An empty (batch, heads, points of `like`, dim of v), points or channels last in memory as
    they are in `like`; so are heads, before or behind the points.
    """
    batch, heads, points, _ = like.shape
    if like.stride(-1) != 1 and like.stride(-2) == 1:
        return like.new_empty(batch, heads, v.shape[-1], points).transpose(-1, -2)
    if heads > 1 and like.stride(1) < like.stride(2):
        return like.new_empty(batch, points, heads, v.shape[-1]).transpose(1, 2)
    return like.new_empty(batch, heads, points, v.shape[-1])


def _outputs(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return _layout(q, v), q.new_empty(q.shape[:-1], dtype=_wide(q))


def _wide(q: Tensor) -> torch.dtype:
    return torch.promote_types(q.dtype, torch.float32)


def _contiguous(x: Tensor | None) -> Tensor | None:
    return None if x is None else x.contiguous()


def _check(
    q: Tensor, k: Tensor, v: Tensor, neighborhood: Neighborhood, key_mask: Tensor | None
) -> None:
    instance("neighborhood", neighborhood, Neighborhood)  # type: ignore[type-abstract]
    if neighborhood.transposed:
        raise ValueError(f"{neighborhood!r}: expected the neighborhood itself, not its transpose")
    require_qkv(q, k, v, key_mask)
    for name, x, points in (("q", q, neighborhood.queries), ("k", k, neighborhood.keys)):
        if x.shape[2] != points:
            raise ValueError(
                f"{name} has {x.shape[2]} points, but {neighborhood!r} expects {points}"
            )
