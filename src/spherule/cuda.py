"""The Triton kernels: whether they can run, and how they are launched. For GPUs what native.py is
for CPUs.
"""

import importlib.metadata
import importlib.util
import warnings
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

from spherule.optional import install

# Known once, so that compilers need not trace how a package is found. It is imported by the first
# kernel only: that takes a second, and nobody without a GPU needs it.
TRITON = importlib.util.find_spec("triton") is not None


def kernels() -> str:
    """The version of Triton, or why it is absent."""
    if TRITON:
        return f"Triton {importlib.metadata.version('triton')}"
    return f"none: Triton is not installed: {install('triton')}"


def usable() -> bool:
    """Whether a CUDA tensor goes to the Triton kernels; says once if it cannot."""
    if not TRITON and not torch.compiler.is_compiling():
        _warn()
    return TRITON


def device(x: Tensor) -> AbstractContextManager:
    """Triton launches on the current device, which need not be the tensor's."""
    return torch.cuda.device(x.device) if x.is_cuda else nullcontext()


def precision() -> str:
    """TF32 only where `torch.set_float32_matmul_precision` asks for it."""
    return "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"


def padded(channels: int) -> int:
    """Blocks of channels are powers of two, and tensor cores want 16."""
    return max(16, 1 << (channels - 1).bit_length())


@cache
def _warn() -> None:
    warnings.warn(
        f"attention and convolution on the GPU run on the slow reference; kernels: {kernels()}",
        stacklevel=2,
    )
