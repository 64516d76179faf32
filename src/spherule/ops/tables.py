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
        @wraps(make)
        def apart(*key: object) -> Made:
            if torch.compiler.is_compiling():
                return make(*key)
            with ThreadPoolExecutor(1) as thread:
                return thread.submit(make, *key).result()

        return lru_cache(maxsize)(apart)

    return keep
