"""Neighborhood attention by the native library."""

from torch import Tensor

from spherule import native
from spherule.geometry.neighborhood import Neighborhood
from spherule.native import Problem, Relation, Strided


def forward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    scale: float,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
) -> None:
    """Fills out (any strides) and lse (contiguous)."""
    native.call(
        "spherule_attention_forward",
        Relation.of(neighborhood),
        Problem.of(q, k, v, scale, key_mask),
        *(Strided.of(x) for x in (q, k, v, out)),
        lse.data_ptr(),
    )


def backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    scale: float,
    key_mask: Tensor | None,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    grads: tuple[Tensor, Tensor, Tensor],
) -> None:
    """Fills the gradients of q, k and v."""
    native.call(
        "spherule_attention_backward",
        Relation.of(neighborhood),
        Relation.of(neighborhood.transpose),
        Problem.of(q, k, v, scale, key_mask),
        *(Strided.of(x) for x in (q, k, v, out)),
        lse.data_ptr(),
        Strided.of(grad_out),
        None if grad_lse is None else grad_lse.data_ptr(),
        *(Strided.of(x) for x in grads),
    )
