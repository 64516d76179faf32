"""One field over many ranks of torch.distributed: each owns a run of rings."""

from spherule.distributed.halo import Halo, disk_halo, ring_halo
from spherule.distributed.shards import (
    Place,
    Shards,
    agreed,
    area_shares,
    own,
    summed,
    whole,
)
from spherule.distributed.transforms import isht, order_runs, sht

__all__ = [
    "Halo",
    "Place",
    "Shards",
    "agreed",
    "area_shares",
    "disk_halo",
    "isht",
    "order_runs",
    "own",
    "ring_halo",
    "sht",
    "summed",
    "whole",
]
