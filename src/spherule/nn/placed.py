"""Layers live on grids; the same layer on another grid has the same Parameters."""

import copy
from collections.abc import Callable
from typing import Any, TypeVar

from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Shards
from spherule.grids import Grid

AnyModule = TypeVar("AnyModule", bound=nn.Module)
AnyPlaced = TypeVar("AnyPlaced", bound="Placed")


class Placed(nn.Module):
    """A module that lives on grids: `place` makes all that depends on them, and nothing else."""

    def place(self, *grids: Any) -> None:
        """Come to live on these grids; by default, all parts do."""
        for child in self.children():
            place(child, *grids)

    def on(self: AnyPlaced, *grids: Any) -> AnyPlaced:
        """The same operator, with the same Parameters, on other grids, in the order in which the
        constructor takes them.
        """
        for i, grid in enumerate(grids):
            checks.instance(f"grids[{i}]", grid, Grid, Shards)
        twin = _twin(self)
        twin.place(*grids)
        return twin

    def _apply(self: AnyPlaced, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> AnyPlaced:
        """Tables have 32 bits at least, whatever precision the module is given."""
        before = {name: self._buffers[name] for name in self._non_persistent_buffers_set}
        super()._apply(fn, recurse)
        for name, table in before.items():
            after = self._buffers[name]
            if table is not None and after is not None and after.dtype.itemsize < 4:
                self._buffers[name] = table.to(after.device)
        return self

    def set_table(self, name: str, table: Tensor) -> None:
        """A buffer that follows from the grids, so it is no part of checkpoints. Its successor
        on another grid is on the same device and of the same precision.
        """
        before = self._buffers.get(name)
        self.register_buffer(name, table if before is None else table.to(before), persistent=False)


class Bound(Placed):
    """A module that knows points, not places on the sphere: it has no equal on another grid."""

    def place(self, *grids: Any) -> None:
        raise ValueError(
            f"{type(self).__name__} knows points, not places on the sphere: it has no equal on "
            "another grid, nor on a part of its own"
        )


def place(module: nn.Module, *grids: Any) -> None:
    """Place a module, or the parts of one that has no grid of its own."""
    if isinstance(module, Placed):
        module.place(*grids)
    else:
        for child in module.children():
            place(child, *grids)


def _twin(module: AnyModule) -> AnyModule:
    """A copy with the same Parameters, in which nothing that is set or registered reaches the
    original.
    """
    twin = copy.copy(module)
    for name, value in vars(module).items():
        if isinstance(value, dict | set):
            vars(twin)[name] = copy.copy(value)
    for name, child in module._modules.items():
        twin._modules[name] = None if child is None else _twin(child)
    return twin
