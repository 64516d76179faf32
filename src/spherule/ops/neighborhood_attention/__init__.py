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
from spherule.ops.checks import require_qkv
from spherule.ops.neighborhood_attention import cpu, reference


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
    neighborhood attention).

    `scale` is 1 / sqrt(dim) by default. `key_mask` is true for the keys that count, for all batches
    or for each; a query without any gets zeros. With `return_lse` also the logarithm of the softmax
    denominator, (batch, heads, queries), -inf where there are no keys. Any strides; 16-bit inputs
    are computed in float32.
    """
    _check(q, k, v, neighborhood, key_mask)
    kind = q.device.type
    if torch.is_autocast_enabled(kind) and q.dtype != torch.float64:
        q, k, v = (x.to(torch.get_autocast_dtype(kind)) for x in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    out, lse = _attention(q, k, v, key_mask, neighborhood.name, scale)
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


@torch.library.custom_op("spherule::neighborhood_attention", mutates_args=())
def _attention(
    q: Tensor, k: Tensor, v: Tensor, key_mask: Tensor | None, neighborhood: str, scale: float
) -> tuple[Tensor, Tensor]:
    if not q.shape[2]:  # a part of a grid may be empty
        return _outputs(q, v)
    nb, kernels = Neighborhood.from_name(neighborhood), _kernels(q, v)
    if kernels is None:
        with torch.autocast(q.device.type, enabled=False):
            out, lse = reference.neighborhood_attention(q, k, v, nb, scale, key_mask)
        return _layout(q, v).copy_(out), lse
    out, lse = _outputs(q, v)
    kernels.forward(q, k, v, nb, scale, _contiguous(key_mask), out, lse)
    return out, lse


@torch.library.custom_op("spherule::neighborhood_attention_backward", mutates_args=())
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
        with torch.autocast(q.device.type, enabled=False):
            # torch.func, since inside an operator autograd itself is off.
            _, vjp = torch.func.vjp(  # type: ignore[misc]
                lambda q, k, v: reference.neighborhood_attention(q, k, v, nb, scale, key_mask),
                q,
                k,
                v,
            )
            cotangents = (grad_out, torch.zeros_like(lse) if grad_lse is None else grad_lse)
            for grad, value in zip(grads, vjp(cotangents), strict=True):
                grad.copy_(value)
    else:
        mask, grad_lse = _contiguous(key_mask), _contiguous(grad_lse)
        kernels.backward(q, k, v, nb, scale, mask, out, lse, grad_out, grad_lse, grads)
    return grads


@_attention.register_fake
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
    q, k, v, key_mask, out, lse = ctx.saved_tensors
    if grad_out is None:
        grad_out = torch.zeros_like(out)
    grads = _attention_backward(
        grad_out, grad_lse, q, k, v, key_mask, out, lse, ctx.neighborhood, ctx.scale
    )
    return *grads, None, None, None


_attention.register_autograd(_backward, setup_context=_setup_context)


def _layout(like: Tensor, v: Tensor) -> Tensor:
    """An empty (batch, heads, points of `like`, dim of v), points or channels last in memory as
    they are in `like`.
    """
    batch, heads, points, _ = like.shape
    if like.stride(-1) != 1 and like.stride(-2) == 1:
        return like.new_empty(batch, heads, v.shape[-1], points).transpose(-1, -2)
    return like.new_empty(batch, heads, points, v.shape[-1])


def _outputs(q: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    return _layout(q, v), q.new_empty(q.shape[:-1], dtype=wide)


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
