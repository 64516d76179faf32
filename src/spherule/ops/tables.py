"""Tables that follow from grids alone: made once, kept for the next call, and no more of them than
are of use.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import torch

Made = TypeVar("Made")


def table(maxsize: int) -> Callable[[Callable[..., Made]], Callable[..., Made]]:
    """Keeps the last `maxsize` results of a function of hashable values. They are no inference
    tensors, wherever they are made first: training uses them too.
    """

    def keep(make: Callable[..., Made]) -> Callable[..., Made]:
        return lru_cache(maxsize)(torch.inference_mode(False)(make))

    return keep
