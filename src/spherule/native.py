"""The native CPU library, loaded with ctypes: it knows nothing of Python or torch. The C structs
stand beside the ops that fill them.
"""

import ctypes
import importlib.util
from functools import lru_cache

import torch

ABI = 12
"""What `spherule_abi` of a library must return: SPHERULE_ABI of csrc/spherule.h."""

DTYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3}

# The codes of csrc/spherule.h, as what they mean to a caller.
_ERRORS: dict[int, tuple[type[Exception], str]] = {
    1: (MemoryError, "not enough memory for its scratch space"),
    2: (ValueError, "a size, dtype or number of threads is out of range"),
    3: (ValueError, "its table does not fit the sizes"),
}


@lru_cache(maxsize=1)
def load() -> tuple[ctypes.CDLL | None, str]:
    """The library and its instruction set, or None and why it is absent."""
    # Found as a module would be, so that editable installs, which keep it elsewhere, have it too.
    spec = importlib.util.find_spec("spherule._spherule")
    if spec is None or spec.origin is None:
        return None, "spherule._spherule is not installed: it is not built on Windows"
    return _open(spec.origin)


def _open(path: str) -> tuple[ctypes.CDLL | None, str]:
    try:
        library = ctypes.CDLL(path)
        abi = library.spherule_abi()
    except (OSError, AttributeError) as error:
        return None, f"{path} cannot be loaded: {error}"
    if abi != ABI:
        return None, f"{path} has ABI {abi}, but this version needs {ABI}: install spherule again"
    library.spherule_isa.restype = ctypes.c_char_p
    return library, library.spherule_isa().decode()


def vector_bits() -> int:
    """The width of the library's vectors on this machine; 0 without it."""
    library, _ = load()
    return 0 if library is None else int(library.spherule_vector_bits())


def short_products() -> bool:
    """Whether the library is there and this machine has products of 16 bits (bfloat16) for it."""
    library, _ = load()
    return library is not None and bool(library.spherule_short_products())


def call(name: str, *arguments: object) -> None:
    """Calls a function of the library with structs (by reference), pointers (as integers) and
    nulls (None); the GIL is released while it runs.
    """
    library, reason = load()
    assert library is not None, reason
    pointers = (
        ctypes.byref(x) if isinstance(x, ctypes.Structure) else ctypes.c_void_p(x)  # type: ignore[arg-type]
        for x in arguments
    )
    if status := getattr(library, name)(*pointers):
        error, why = _ERRORS[status]
        raise error(f"{name}: {why}")
