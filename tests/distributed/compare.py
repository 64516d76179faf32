"""A layer on shards against the same layer on the whole grid, in values and gradients. Runs on
each rank.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn

from spherule.distributed import Shards
from spherule.grids import Grid


@dataclass(frozen=True)
class Case:
    """`build` makes the layer of its arguments; inputs are on the grids, in order."""

    build: Callable[..., nn.Module]
    grids: tuple[str, ...]
    channels: tuple[int, ...]
    options: tuple[tuple[str, object], ...] = ()
    batch: int = 1
    balance: str = "points"
    dtype: torch.dtype = torch.float64
    places: int | None = None
    """How many of the grids `on` takes; all by default."""
    seed: int = 0


@dataclass
class Traffic:
    """What a rank sent to others, in bytes a call."""

    exchanges: list[int]
    sums: list[int]


def layer_and_inputs(case: Case) -> tuple[nn.Module, list[Grid], list[Tensor]]:
    torch.manual_seed(case.seed)
    grids = [Grid.from_name(name) for name in case.grids]
    layer = case.build(*grids, **dict(case.options)).to(case.dtype)
    for parameter in layer.parameters():  # ones and zeros would hide faults
        nn.init.normal_(parameter, std=parameter.detach().std().nan_to_num(0.3).item() or 0.3)
    inputs = [
        torch.randn(case.batch, n, *grid.shape, dtype=case.dtype, requires_grad=True)
        for grid, n in zip(grids, case.channels, strict=False)
    ]
    return layer, grids, inputs


def rounding(mesh: object, case: Case) -> dict[str, tuple[float, float]]:
    """In float32: root mean square errors of values and input gradients against the same layer in
    float64, of the whole and of the ranks.
    """
    layer, grids, inputs = layer_and_inputs(case)
    shards = [Shards(grid, mesh, case.balance) for grid in grids]
    local = layer.on(*shards[: case.places])
    exact = copy.deepcopy(layer).double()
    precise = [x.detach().double().requires_grad_() for x in inputs]
    truth, serial = exact(*precise), layer(*inputs)
    parts = [
        s.scatter(x.detach()).clone().requires_grad_() for s, x in zip(shards, inputs, strict=False)
    ]
    out = next(s for s in reversed(shards) if s.grid.shape == truth.shape[2:])
    y, gradient = local(*parts), torch.randn_like(truth)
    true_pull = torch.autograd.grad(truth, precise, gradient)
    pull = torch.autograd.grad(serial, inputs, gradient.float())
    pulled = torch.autograd.grad(y, parts, out.scatter(gradient.float()))
    errors = {"value": (_distance(serial, truth), _distance(out.gather(y.detach()), truth))}
    for i, (s, true, whole, part) in enumerate(zip(shards, true_pull, pull, pulled, strict=False)):
        errors[f"input {i}"] = (_distance(whole, true), _distance(s.gather(part), true))
    return errors


def compare(mesh: object, case: Case) -> dict[str, object]:
    """The largest errors relative to the largest value; those of Parameters' gradients to the
    largest of any, since what a norm takes away again has a gradient of nothing but rounding.
    """
    layer, grids, inputs = layer_and_inputs(case)
    shards = [Shards(grid, mesh, case.balance) for grid in grids]
    local = layer.on(*shards[: case.places])
    expected = layer(*inputs)
    weights = list(layer.parameters())
    out = next(s for s in reversed(shards) if s.grid.shape == expected.shape[2:])
    gradient = torch.randn_like(expected)
    pull = torch.autograd.grad(expected, [*inputs, *weights], gradient)
    parts = [
        s.scatter(x.detach()).clone().requires_grad_() for s, x in zip(shards, inputs, strict=False)
    ]
    with counted() as forward:
        y = local(*parts)
    with counted() as backward:
        pulled = torch.autograd.grad(y, [*parts, *local.parameters()], out.scatter(gradient))
    value = out.gather(y.detach())
    errors = {"value": _error(value, expected)}
    for i, (s, g) in enumerate(zip(shards, pulled[: len(parts)], strict=False)):
        errors[f"input {i}"] = _error(s.gather(g), pull[i])
    for (name, _), g, e in zip(
        layer.named_parameters(), pulled[len(parts) :], pull[len(parts) :], strict=True
    ):
        total = g.clone()
        dist.all_reduce(total, group=mesh.get_group())
        errors[name] = _error(total, e, max(w.abs().max() for w in pull[len(parts) :]))
    return {
        "errors": errors,
        "forward": forward,
        "backward": backward,
        "bits": [t.detach() for t in (y, *pulled)],
        "same names": list(local.state_dict()) == list(layer.state_dict())
        and all(a is b for a, b in zip(local.parameters(), layer.parameters(), strict=True)),
    }


def _error(got: Tensor, expected: Tensor, size: Tensor | None = None) -> float:
    assert got.shape == expected.shape
    size = expected.abs().max() if size is None else size
    return ((got - expected).abs().max() / size).item()


@contextmanager
def counted() -> Iterator[Traffic]:
    """Counts collectives, and the bytes that leave this rank or are added up."""
    traffic, exchange, add = Traffic([], []), dist.all_to_all_single, dist.all_reduce

    def all_to_all_single(received: Tensor, sent: Tensor, *args: object, **kwargs: object) -> None:
        traffic.exchanges.append(sent.numel() * sent.element_size())
        exchange(received, sent, *args, **kwargs)

    def all_reduce(x: Tensor, *args: object, **kwargs: object) -> None:
        traffic.sums.append(x.numel() * x.element_size())
        add(x, *args, **kwargs)

    with patch.multiple(dist, all_to_all_single=all_to_all_single, all_reduce=all_reduce):
        yield traffic


def _distance(x: Tensor, truth: Tensor) -> float:
    """Root mean square, relative: less a matter of luck than the largest error."""
    return float((x.double() - truth).norm() / truth.norm())
