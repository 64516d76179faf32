"""A sparse matrix that acts on the last dimension, with its transpose at hand for the backward
pass. Dispatch and differentiation; the arithmetic is next door.
"""

from types import ModuleType
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import native
from spherule.ops.forward_mode import refuse_in_backward
from spherule.ops.operator import operator
from spherule.ops.sparse import cpu, reference


class SparseMap(NamedTuple):
    """Compressed rows of a matrix (rows, columns) and of its transpose."""

    start: Tensor
    column: Tensor
    weight: Tensor
    transposed_start: Tensor
    transposed_column: Tensor
    transposed_weight: Tensor

    @classmethod
    def build(
        cls,
        row: NDArray[np.int64],
        column: NDArray[np.int64],
        weight: NDArray[np.float64],
        shape: tuple[int, int],
        dtype: torch.dtype,
        device: torch.device,
    ) -> "SparseMap":
        arrays = []
        for major, minor, size in ((row, column, shape[0]), (column, row, shape[1])):
            order = np.lexsort((minor, major))
            start = np.concatenate([[0], np.cumsum(np.bincount(major, minlength=size))])
            arrays += [torch.tensor(a, device=device) for a in (start, minor[order])]
            arrays.append(torch.tensor(weight[order], dtype=dtype, device=device))
        return cls(*arrays)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., columns) to (..., rows)."""
        flat = x.reshape(x.shape[:-1].numel(), x.shape[-1])
        mapped = sparse_map(flat, *self)
        return mapped.reshape(*x.shape[:-1], self.start.shape[0] - 1)


# An op of its own: autograd through sparse tensors would not know the transpose, and compilers
# cannot trace them.
@operator("sparse_map", linear=1)
def sparse_map(
    x: Tensor,
    start: Tensor,
    column: Tensor,
    weight: Tensor,
    transposed_start: Tensor,
    transposed_column: Tensor,
    transposed_weight: Tensor,
) -> Tensor:
    return _kernels(x, weight).sparse_map(x, start, column, weight)


def _kernels(x: Tensor, weight: Tensor) -> ModuleType:
    """The one place that chooses: the library for CPU tensors, where it is there; else torch."""
    known = x.dtype == weight.dtype and x.dtype in (torch.float32, torch.float64)
    if known and x.device.type == "cpu" and native.load()[0] is not None:
        return cpu
    return reference


@sparse_map.register_fake
def _(x: Tensor, start: Tensor, *rest: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], start.shape[0] - 1)


def _keep(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(*inputs[1:])


def _backward(ctx, gradient):  # type: ignore[no-untyped-def]
    refuse_in_backward()
    matrix = ctx.saved_tensors
    return sparse_map(gradient, *matrix[3:], *matrix[:3]), *[None] * 6


sparse_map.register_autograd(_backward, setup_context=_keep)
