"""Whether the Triton kernels can run: for GPUs what native.py is for CPUs."""

import importlib.metadata
import importlib.util
import warnings
from functools import cache

import torch

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


@cache
def _warn() -> None:
    warnings.warn(
        f"attention and convolution on the GPU run on the slow reference; kernels: {kernels()}",
        stacklevel=2,
    )
