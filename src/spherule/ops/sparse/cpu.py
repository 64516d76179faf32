"""Products with a sparse matrix by the native library. The struct mirrors csrc/sparse.h."""

from ctypes import Structure, c_int32, c_int64, c_void_p

import torch
from torch import Tensor

from spherule import native


class Sparse(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("fields", "rows", "columns", "entries")),
        *((name, c_void_p) for name in ("start", "column", "weight")),
        ("dtype", c_int32),
        ("threads", c_int32),
    )


def sparse_map(x: Tensor, start: Tensor, column: Tensor, weight: Tensor) -> Tensor:
    """(fields, columns) to (fields, rows)."""
    x, matrix = x.contiguous(), [t.contiguous() for t in (start, column, weight)]
    y = x.new_empty(x.shape[0], start.numel() - 1)
    structure = Sparse(
        *(x.shape[0], y.shape[1], x.shape[1], weight.numel()),
        *(t.data_ptr() for t in matrix),
        *(native.DTYPES[x.dtype], torch.get_num_threads()),
    )
    native.call("spherule_sparse_map", structure, x.data_ptr(), y.data_ptr())
    return y
