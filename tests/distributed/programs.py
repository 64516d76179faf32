"""What tests have ranks do."""

from typing import Any

import jaxtyping
import torch
from torch.distributed.fsdp import fully_shard

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


def unlike(mesh: Any, what: str) -> None:
    """Fields that do not fit together, though each fits its rank: must raise on every rank."""
    shards = Shards(Grid.gauss(8, 16), mesh)
    odd = shards.rank == 1
    if what == "kind":  # of as many bits
        shards.gather(torch.ones(1, 3, *shards.shape, dtype=torch.half if odd else torch.bfloat16))
    if what == "order":
        shards.gather(torch.ones(*((2, 3) if odd else (3, 2)), *shards.shape))
    if what == "norm":
        norm = nn.SphericalInstanceNorm(3, shards.grid).on(shards)
        norm(torch.randn(2 + odd, 3, *shards.shape))
    batch = 2 + (what == "batch" and odd)
    dtype = torch.float64 if what == "precision" and odd else torch.float32
    layer = nn.SphericalAttention(4, shards.grid, cutoff=0.8).on(shards).to(dtype)
    layer(torch.randn(batch, 4, *shards.shape, dtype=dtype))


def compiled_error(mesh: Any, name: str, skip: str) -> tuple[float, float, list[int]]:
    """Of values and of gradients of a compiled model, against the same without; and how often both
    exchange.
    """
    torch.manual_seed(0)
    jaxtyping.config.update("jaxtyping_disable", True)  # compilers stumble over such checks
    shards = Shards(Grid.from_name(name), mesh)
    model = layers.transformer(shards.grid, local=True, skip=skip, keep_mean=True).on(shards)
    nn_init(model)
    x, y = torch.randn(2, 2, 3, *shards.shape), torch.randn(2, 2, *shards.shape)
    found, exchanges = [], []
    compiled = torch.compile(model, backend="aot_eager", fullgraph=skip == "identity")
    for run in (model, compiled):
        model.zero_grad()
        with counted() as traffic:
            out = run(x[0])
            objectives.l2(out, y, shards).sum().backward()
        exchanges.append(len(traffic.exchanges))
        found.append((out.detach(), [p.grad.clone() for p in model.parameters()]))
    jaxtyping.config.update("jaxtyping_disable", False)
    (a, da), (b, db) = found
    gradient = max((u - v).abs().max() for u, v in zip(da, db, strict=True))
    largest = max(u.abs().max() for u in da)
    return (
        ((a - b).abs().max() / a.abs().max()).item(),
        (gradient / largest).item(),
        exchanges,
    )


def fully_sharded_errors(mesh: Any, name: str) -> dict[str, float]:
    """Of values and gradients of a model on shards whose Parameters are sharded too."""
    torch.manual_seed(0)
    grid = Grid.from_name(name)
    shards = Shards(grid, mesh)
    model = layers.transformer(grid, local=True)
    nn_init(model)
    x, y = torch.randn(2, 3, *grid.shape), torch.randn(2, 2, *grid.shape)
    out = model(x)
    objectives.l2(out, y, grid).sum().backward()
    expected = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    local = model.on(shards)
    for block in local.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(local, mesh=mesh)
    part = local(shards.scatter(x))
    # Gradients are averaged over ranks, but add up over those that share a sample.
    (objectives.l2(part, shards.scatter(y), shards).sum() * shards.ranks).backward()
    size = max(g.abs().max() for g in expected.values())
    errors = {
        n: ((p.grad.full_tensor() - expected[n]).abs().max() / size).item()
        for n, p in local.named_parameters()
    }
    errors["value"] = ((shards.gather(part.detach()) - out).abs().max() / out.abs().max()).item()
    errors["share"] = sum(p.to_local().numel() for p in local.parameters()) / sum(
        p.numel() for p in local.parameters()
    )
    return errors


def nn_init(model: Any) -> None:
    """Nothing is 0, so that nothing is hidden."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)


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
