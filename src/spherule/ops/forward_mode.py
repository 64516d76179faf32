"""Forward-mode differentiation of operators, which torch's custom operators know nothing of."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad


def in_forward_mode() -> bool:
    """Compilers trace none."""
    return not torch.compiler.is_compiling() and forward_ad._current_level >= 0


def has_tangent(*inputs: Any) -> bool:
    """Whether one of these is a dual tensor."""
    return in_forward_mode() and any(
        forward_ad.unpack_dual(x).tangent is not None for x in inputs if isinstance(x, Tensor)
    )


def refuse_in_backward() -> None:
    """To be called in backward passes: their own tangents nobody computes."""
    if in_forward_mode():
        raise NotImplementedError(
            "a backward pass inside forward mode: the operators of spherule do not differentiate "
            "gradients forward; take reverse mode twice (create_graph=True)"
        )
