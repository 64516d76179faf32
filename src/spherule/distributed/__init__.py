"""One field over many ranks of torch.distributed: each owns a run of rings."""

from spherule.distributed.faults import RankError, named_faults
from spherule.distributed.halo import Halo, disk_halo, ring_halo
from spherule.distributed.shards import (
    Place,
    Shards,
    agreed,
    area_shares,
    gathered,
    own,
    scattered,
    summed,
    whole,
)
from spherule.distributed.transforms import isht, order_runs, power_spectrum, sht

__all__ = [
    "Halo",
    "Place",
    "RankError",
    "Shards",
    "agreed",
    "area_shares",
    "disk_halo",
    "gathered",
    "isht",
    "named_faults",
    "order_runs",
    "own",
    "power_spectrum",
    "ring_halo",
    "scattered",
    "sht",
    "summed",
    "whole",
]
