"""Forward-mode differentiation of operators, which torch's custom operators know nothing of: they
would drop tangents silently.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def has_tangent(*tensors: Tensor) -> bool:
    """Whether one of these is dual. Compilers trace no forward mode."""
    if torch.compiler.is_compiling():
        return False
    return any(forward_ad.unpack_dual(x).tangent is not None for x in tensors)


def multilinear(op: Callable[..., Tensor], tensors: tuple[Tensor, ...], *rest: Any) -> Tensor:
    """`op(*tensors, *rest)` for an operator that is linear in each of the tensors: its tangent is
    the sum over them of the operator with one replaced by its tangent.
    """
    if not has_tangent(*tensors):
        return op(*tensors, *rest)
    primals, tangents = zip(*map(forward_ad.unpack_dual, tensors), strict=True)
    terms = [
        op(*primals[:i], tangent, *primals[i + 1 :], *rest)
        for i, tangent in enumerate(tangents)
        if tangent is not None
    ]
    return forward_ad.make_dual(op(*primals, *rest), sum(terms[1:], terms[0]))


def refuse_in_backward() -> None:
    """To be called in backward passes: their own tangents nobody computes."""
    if not torch.compiler.is_compiling() and forward_ad._current_level >= 0:
        raise NotImplementedError(
            "a backward pass inside forward mode: the operators of spherule do not differentiate "
            "gradients forward; take reverse mode twice (create_graph=True)"
        )
