"""Which calls the native library may take, and what becomes of gradients of gradients.

It serves CPU tensors of 32 and 64 bits, and products of 16 bits: as such where the CPU has them in
its vectors, in 32 bits where it has none. All else is the reference: other devices, other 16 bits
(and matrix units, which are torch's), exported programs (which then hold nothing of ours),
functional transforms, forward mode, and gradients of gradients.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from spherule import native
from spherule.ops.autocast import autocast_dtype
from spherule.ops.forward_mode import in_forward_mode


def served(x: Tensor, *others: Tensor | None) -> bool:
    """Whether the library may be called, as an operator that torch knows little about."""
    if _exporting() or transformed() or torch.is_autocast_enabled("cpu"):
        return False
    for other in others:
        if other is not None and (other.device != x.device or other.dtype != x.dtype):
            return False
    return x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and _there()


def shortened(x: Tensor) -> bool:
    """Whether the library may multiply x in bfloat16, as autocast or its own dtype asks for."""
    if x.device.type != "cpu" or _exporting() or transformed():
        return False
    return autocast_dtype(x) == torch.bfloat16 and _has_short_products()


def widened(x: Tensor) -> torch.dtype | None:
    """The 16-bit dtype in which a product is asked for on a CPU that has no such products: torch
    would emulate them, 25 times as slow as in 32 bits. None in all other cases.
    """
    if x.device.type != "cpu" or x.dtype == torch.float64 or _exporting():
        return None
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    short = dtype in (torch.bfloat16, torch.float16)
    return dtype if short and not _has_products(dtype == torch.bfloat16) else None


def _has_products(bfloat16: bool) -> bool:
    if not torch.backends.mkldnn.is_available():
        return True  # nobody knows
    known = torch.ops.mkldnn
    return bool(
        known._is_mkldnn_bf16_supported() if bfloat16 else known._is_mkldnn_fp16_supported()
    )


def _has_short_products() -> bool:
    return native.short_products() and not torch.cpu._is_amx_tile_supported()


def _there() -> bool:
    return native.load()[0] is not None


# As torch.compiler.assume_constant_result says it, without the seconds that its import of the
# compiler takes.
_there._dynamo_marked_constant = True  # type: ignore[attr-defined]
_has_products._dynamo_marked_constant = True  # type: ignore[attr-defined]
_has_short_products._dynamo_marked_constant = True  # type: ignore[attr-defined]


# Before torch 2.7 nobody tells exported programs from compiled ones.
_exporting: Callable[[], bool] = getattr(
    torch.compiler, "is_exporting", torch.compiler.is_compiling
)


def transformed() -> bool:
    """Whether forward mode or a functional transform is under way; compilers trace neither."""
    if torch.compiler.is_compiling():
        return False
    functional = torch._C._functorch.peek_interpreter_stack() is not None
    return functional or in_forward_mode()


def differentiated(*gradients: Tensor) -> bool:
    """Whether somebody wants the derivatives of a backward pass, or many backward passes at once
    (`is_grads_batched`), which torch has no fallback for where an operator takes lists.
    """
    if torch.is_grad_enabled() or transformed():
        return True
    return not torch.compiler.is_compiling() and any(map(_is_batched, gradients))


_is_batched = torch._C._functorch.is_legacy_batchedtensor


def by_reference(op: Callable[..., Any], inputs: tuple, dy: Any) -> tuple:
    """Gradients of an op's inputs that can be differentiated again; its last inputs may be None."""
    given = [x for x in inputs if x is not None]
    absent = [None] * (len(inputs) - len(given))
    if transformed():
        _, vjp = torch.func.vjp(lambda *x: op(*x, *absent), *given)  # type: ignore[misc]
        return *vjp(dy), *absent
    # Not by torch.func here too: it refuses hooks of saved tensors, as of checkpoints.
    with torch.enable_grad():
        leaves = [x.view_as(x) if x.requires_grad else x.detach().requires_grad_() for x in given]
        outputs = op(*leaves, *absent)
    return *torch.autograd.grad(outputs, leaves, dy, create_graph=True), *absent
