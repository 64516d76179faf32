"""Processes under torchrun, each with a part of every batch, or with a part of the samples of one.
Without torchrun there is one.
"""

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from spherule.distributed import Shards, named_faults
from spherule.models import Model
from spherule.train.task import Task

AnyModel = TypeVar("AnyModel", bound=Model)


@contextmanager
def process_group(device: torch.device) -> Iterator[tuple[int, int]]:
    """This process's rank and how many there are. A group that is there already stays."""
    if dist.is_initialized():
        yield dist.get_rank(), dist.get_world_size()
        return
    if int(os.environ.get("WORLD_SIZE", "1")) < 2:
        yield 0, 1
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        with named_faults():
            yield dist.get_rank(), dist.get_world_size()
    finally:
        # Gloo's threads may still give back tensors, for which they need the interpreter; whatever
        # holds the group last waits for them with the interpreter in its hands.
        time.sleep(0.1)
        dist.destroy_process_group()


def is_first() -> bool:
    """Whether this process is the one that writes and speaks."""
    return not dist.is_initialized() or dist.get_rank() == 0


def whole_mesh(device: torch.device) -> DeviceMesh | None:
    """All ranks share each sample."""
    return make_mesh(dist.get_world_size() if dist.is_initialized() else 1, device)


def spread(model: AnyModel, mesh: DeviceMesh | None) -> AnyModel:
    """The model on shards of its grid over the mesh's domain."""
    return model if mesh is None else model.on(Shards(model.grid, mesh["domain"]))


def spread_both(task: Task, model: AnyModel, mesh: DeviceMesh | None) -> tuple[Task, AnyModel]:
    """The task and its model on the same shards."""
    model = spread(model, mesh)
    return (task.on(model.grid) if isinstance(model.grid, Shards) else task), model


def choose_device(name: str) -> torch.device:
    """`auto` is this process's CUDA device where there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device={name!r}: {error}") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise ValueError(f"device={name!r}: torch finds no CUDA device here")
        if device.index is None:
            device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    return device


def make_mesh(domain: int, device: torch.device) -> DeviceMesh | None:
    """All ranks as (data, domain), where `domain` of them share each sample."""
    world = dist.get_world_size() if dist.is_initialized() else 1
    if world % domain:
        raise ValueError(
            f"domain={domain} must divide the number of processes, which is {world}: start them "
            f"with torchrun --nproc_per_node={domain}, or a multiple, or choose another --domain"
        )
    if domain == 1:
        return None
    names = ("data", "domain")
    return init_device_mesh(device.type, (world // domain, domain), mesh_dim_names=names)


def wrapped(model: nn.Module, device: torch.device) -> nn.Module:
    """The model, with gradients averaged over ranks where there are several. All ranks start from
    the same weights, and what else a model holds may be a rank's own.
    """
    if not dist.is_initialized() or not any(p.requires_grad for p in model.parameters()):
        return model
    with warnings.catch_warnings():
        # torch's word on a successor that does not do the same.
        warnings.filterwarnings("ignore", "`broadcast_buffers`", FutureWarning)
        return DistributedDataParallel(
            model,
            device_ids=[device] if device.type == "cuda" else None,
            broadcast_buffers=False,
        )


def mean(value: float, device: torch.device) -> float:
    """Over ranks."""
    if not dist.is_initialized():
        return value
    total = torch.tensor(value, dtype=torch.float64, device=device)
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def agree(model: nn.Module) -> None:
    """Give all ranks the Parameters and buffers of rank 0."""
    if dist.is_initialized():
        for tensor in model.state_dict().values():
            dist.broadcast(tensor, 0)


def from_first(value: Any) -> Any:
    """What rank 0 has, on all ranks: plain values."""
    if not dist.is_initialized():
        return value
    values = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]


def any_rank(value: bool, device: torch.device) -> bool:
    """Whether it holds on one of the ranks: all must do the same."""
    return mean(float(value), device) > 0


def wait() -> None:
    if dist.is_initialized():
        dist.barrier()


@contextmanager
def in_turn() -> Iterator[None]:
    """Rank 0 first, the others when it is done."""
    first = is_first()
    if not first:
        wait()
    yield
    if first:
        wait()
