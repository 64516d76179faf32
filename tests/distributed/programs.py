"""What tests have ranks do."""

from typing import Any

import torch

from spherule import Grid, Neighborhood, nn, objectives, ops
from spherule.distributed import Shards, disk_halo
from tests.distributed import layers
from tests.distributed.compare import counted


def attention_bits(mesh: Any, name: str, cutoff: float) -> tuple[bool, bool]:
    """Whether outputs and gradients of queries are equal to the last bit, in float32."""
    torch.manual_seed(0)
    grid = Grid.from_name(name)
    shards = Shards(grid, mesh)
    q, k, v, g = torch.randn(4, 2, 3, grid.size, 16)
    q.requires_grad_()
    out = ops.neighborhood_attention(q, k, v, Neighborhood.disk(grid, grid, cutoff))
    (dq,) = torch.autograd.grad(out, q, g)
    mine = q[:, :, shards.points].detach().requires_grad_()
    halo = disk_halo(shards, shards, cutoff)
    seen = (halo(x[:, :, shards.points], 2) for x in (k, v))
    part = ops.neighborhood_attention(
        mine, *seen, Neighborhood.disk(shards.part, halo.seen, cutoff)
    )
    (part_dq,) = torch.autograd.grad(part, mine, g[:, :, shards.points])
    return (
        torch.equal(part, out[:, :, shards.points]),
        torch.equal(part_dq, dq[:, :, shards.points]),
    )


def counts_of(mesh: Any, name: str) -> tuple[int, int]:
    """Exchanges and sums of a Transformer's forward pass."""
    shards = Shards(Grid.from_name(name), mesh)
    model = layers.transformer(shards.grid, local=True).on(shards)
    with counted() as traffic, torch.no_grad():
        model(torch.randn(1, 3, *shards.shape))
    return len(traffic.exchanges), len(traffic.sums)


def objective_errors(mesh: Any, name: str, masked: bool) -> dict[str, float]:
    """Of losses, their gradients and confusion matrices, relative to the largest value."""
    torch.manual_seed(0)
    grid, classes = Grid.from_name(name), 3
    shards = Shards(grid, mesh)
    x, y = torch.randn(2, 2, classes, *grid.shape, dtype=torch.float64)
    labels = torch.randint(classes, (2, *grid.shape))
    mask = torch.rand(2, *grid.shape) < 0.9 if masked else None
    part = None if mask is None else shards.scatter(mask)
    weights = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    errors = {}
    for loss in (objectives.l1, objectives.l2, objectives.squared_l2, objectives.sobolev):
        errors[loss.__name__] = _loss_error(
            lambda u, loss=loss: loss(u, y, grid, mask=mask),
            lambda u, loss=loss: loss(u, shards.scatter(y), shards, mask=part),
            x,
            shards,
        )
    errors["cross_entropy"] = _loss_error(
        lambda u: objectives.cross_entropy(u, labels, grid, mask=mask, class_weights=weights),
        lambda u: objectives.cross_entropy(
            u, shards.scatter(labels), shards, mask=part, class_weights=weights
        ),
        x,
        shards,
    )
    matrix = objectives.confusion(x, labels, classes, grid, mask=mask)
    mine = shards.scatter(x), shards.scatter(labels)
    ours = objectives.confusion(*mine, classes, shards, mask=part)
    return {**errors, "confusion": (ours - matrix).abs().max().item()}


def _loss_error(whole: Any, part: Any, x: torch.Tensor, shards: Shards) -> float:
    x = x.clone().requires_grad_()
    mine = shards.scatter(x.detach()).clone().requires_grad_()
    expected, got = whole(x), part(mine)
    (dx,), (mine_dx,) = (
        torch.autograd.grad(value.sum(), u) for value, u in ((expected, x), (got, mine))
    )
    gradient = (shards.gather(mine_dx) - dx).abs().max() / dx.abs().max()
    return max(((got - expected).abs() / expected).max().item(), gradient.item())


def refused(mesh: Any, what: str) -> None:
    """What must raise on every rank."""
    shards = Shards(Grid.gauss(8, 16), mesh)
    if what == "learned":
        layers.transformer(shards.grid, position="learned").on(shards)
    elif what == "planar":
        layers.transformer(shards.grid, convolution="planar").on(shards)
    elif what == "dropout":
        layers.segformer(shards.grid, dropout=0.1).on(shards)
    elif what == "shape":
        nn.DiscoConv(2, 2, shards.grid).on(shards)(torch.randn(1, 2, *shards.grid.shape))
