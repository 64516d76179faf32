"""The native CPU library, loaded with ctypes. It knows nothing of Python or torch; this file
mirrors csrc/spherule.h.
"""

import ctypes
import importlib.util
from ctypes import POINTER, Structure, c_double, c_int32, c_int64, c_void_p
from functools import cache, lru_cache

import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule.geometry.arcs import Rings as RingArrays
from spherule.geometry.neighborhood import Neighborhood

DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}


class Strided(Structure):
    _fields_ = (("data", c_void_p), ("stride", c_int64 * 4))

    @classmethod
    def of(cls, x: Tensor) -> "Strided":
        return cls(x.data_ptr(), (c_int64 * 4)(*x.stride()))


class Rings(Structure):
    _fields_ = (
        ("rings", c_int64),
        ("theta", c_void_p),
        ("nphi", c_void_p),
        ("ringstart", c_void_p),
    )

    @classmethod
    def of(cls, rings: RingArrays) -> "Rings":
        arrays = (rings.theta, rings.nphi, rings.ringstart)
        return cls(rings.theta.size, *(a.ctypes.data for a in arrays))


class Relation(Structure):
    _fields_ = (
        ("query", Rings),
        ("key", Rings),
        *((name, c_void_p) for name in ("first", "pairs", "shift", "reach", "inner")),
        *((name, c_void_p) for name in ("column_start", "column_count", "order")),
        *((name, c_void_p) for name in ("query_log_weight", "key_log_weight")),
        ("cutoff", c_double),
        ("edge_width", c_double),
    )

    @classmethod
    @cache
    def of(cls, neighborhood: Neighborhood) -> "Relation":
        """The pointers stay good: the cache keeps the neighborhood, and it keeps its arrays."""
        table, logw = neighborhood.table, neighborhood.ring_log_weights
        arrays: list[NDArray | None] = [table.first, table.pairs, table.shift, table.reach]
        arrays += [table.inner, *(table.columns or (None, None)), table.order]
        arrays += [logw, None] if neighborhood.transposed else [None, logw]
        assert all(a is None or (a.dtype.itemsize == 8 and a.flags.c_contiguous) for a in arrays)
        return cls(
            Rings.of(table.query),
            Rings.of(table.key),
            *(None if a is None else a.ctypes.data for a in arrays),
            neighborhood.cutoff,
            neighborhood.edge_width,
        )


class Problem(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("batch", "heads", "queries", "keys", "dim", "value_dim")),
        ("scale", c_double),
        ("dtype", c_int32),
        ("threads", c_int32),
        ("key_mask", c_void_p),
        ("key_mask_stride", c_int64),
    )

    @classmethod
    def of(
        cls, q: Tensor, k: Tensor, v: Tensor, scale: float, key_mask: Tensor | None
    ) -> "Problem":
        """`key_mask`: bool (batch, keys) or (keys,), contiguous."""
        batch, heads, queries, dim = q.shape
        mask, stride = None, 0
        if key_mask is not None:
            mask, stride = key_mask.data_ptr(), key_mask.shape[-1] if key_mask.ndim == 2 else 0
        sizes = (batch, heads, queries, k.shape[2], dim, v.shape[3])
        return cls(*sizes, scale, DTYPES[q.dtype], torch.get_num_threads(), mask, stride)


@lru_cache(maxsize=1)
def load() -> tuple[ctypes.CDLL | None, str]:
    """The library and its instruction set, or None and why it is absent."""
    # Found as a module would be, so that editable installs, which keep it elsewhere, have it too.
    spec = importlib.util.find_spec("spherule._spherule")
    if spec is None or spec.origin is None:
        return None, "spherule._spherule is not installed: it is not built on Windows"
    path = spec.origin
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        return None, f"{path} cannot be loaded: {error}"
    relation, problem, strided = POINTER(Relation), POINTER(Problem), POINTER(Strided)
    library.spherule_attention_forward.argtypes = [relation, problem, *[strided] * 4, c_void_p]
    library.spherule_attention_backward.argtypes = [relation] * 2 + [
        problem,
        *[strided] * 4,
        c_void_p,
        strided,
        c_void_p,
        *[strided] * 3,
    ]
    library.spherule_isa.restype = ctypes.c_char_p
    return library, library.spherule_isa().decode()


# The codes of csrc/spherule.h, as what they mean to a caller.
_ERRORS: dict[int, tuple[type[Exception], str]] = {
    1: (MemoryError, "not enough memory for its scratch space"),
    2: (ValueError, "a size, dtype or number of threads is out of range"),
    3: (ValueError, "its table does not fit the sizes"),
}


def call(name: str, *arguments: object) -> None:
    """Calls a function of the library; the GIL is released while it runs."""
    library, reason = load()
    assert library is not None, reason
    if status := getattr(library, name)(*arguments):
        error, why = _ERRORS[status]
        raise error(f"{name}: {why}")
