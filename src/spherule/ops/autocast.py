"""Autocast: what it asks for, and where it has no say. Devices without values know none."""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor


def autocast_dtype(x: Tensor) -> torch.dtype:
    """The precision in which autocast wants a product of x: its own where autocast is off, and of
    float64 always.
    """
    if x.dtype == torch.float64 or not is_autocast(x):
        return x.dtype
    return torch.get_autocast_dtype(x.device.type)


def is_autocast(x: Tensor) -> bool:
    """Whether autocast is on where x is."""
    return not x.is_meta and torch.is_autocast_enabled(x.device.type)


def no_autocast(x: Tensor) -> AbstractContextManager:
    """Products in the precision of their inputs."""
    return nullcontext() if x.is_meta else torch.autocast(x.device.type, enabled=False)
