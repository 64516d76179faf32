"""Tables that follow from grids alone: made once, kept for the next call, and no more of them than
are of use.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, wraps
from typing import TypeVar

import torch

Made = TypeVar("Made")


def table(maxsize: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Keeps the last `maxsize` results of a function of hashable values.

    They are the same wherever they are made first: in a thread of their own, where none of torch's
    modes holds, such as inference, autocast, another default device, a functional transform.
    """

    def keep(make: Callable[..., Made]) -> Callable[..., Made]:
        @lru_cache(maxsize)
        def kept(*key: object) -> Made:
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(make, *key).result()

        @wraps(make)
        def get(*key: object) -> Made:
            # What a compiler traces is its own, and may have no values.
            return make(*key) if torch.compiler.is_compiling() else kept(*key)

        get.cache_clear = kept.cache_clear  # type: ignore[attr-defined]
        return get

    return keep
