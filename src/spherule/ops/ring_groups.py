"""Rings with as many points as each other: they share an FFT."""

from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from spherule.grids import Grid

Index: TypeAlias = slice | Tensor


class RingGroup(NamedTuple):
    rings: Index
    points: Index
    """Of its rings, one after the other."""
    nphi: int
    """Points on each ring."""


class RingGroups(NamedTuple):
    groups: list[RingGroup]
    """Those of the shortest rings first."""
    ring_order: Index
    """Where the grid's rings are found in those of the groups, joined."""
    point_order: Index


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # made in inference, used in training too
def ring_groups(grid: Grid, device: torch.device) -> RingGroups:
    """All rings of a grid; where they are alike, in one group that copies nothing."""
    every = slice(None)
    if np.all(grid.nphi == grid.nphi[0]):
        return RingGroups([RingGroup(every, every, int(grid.nphi[0]))], every, every)
    groups, all_rings, all_points = [], [], []
    for nphi in np.unique(grid.nphi):
        rings = np.flatnonzero(grid.nphi == nphi)
        points = (grid.ringstart[rings, None] + np.arange(nphi)).ravel()
        ring_index, point_index = (torch.tensor(i, device=device) for i in (rings, points))
        groups.append(RingGroup(ring_index, point_index, int(nphi)))
        all_rings.append(rings)
        all_points.append(points)
    ring_order, point_order = (
        torch.tensor(np.argsort(np.concatenate(order)), device=device)
        for order in (all_rings, all_points)
    )
    return RingGroups(groups, ring_order, point_order)
