"""What ranks say to each other: pieces of tensors, and sums. Both are operators with the group's
name, as compiled programs can hold no groups; the gradient of each is one of them again.
"""

import math
import zlib
from itertools import accumulate
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _resolve_process_group

from spherule.ops.operator import operator


# Schemas that hold lists are written out: before torch 2.7, none is read from `list[int]`.
@operator(
    "hand_out",
    "(Tensor x, int split, int join, int[] give, int[] take, str group, bool known=False)"
    " -> Tensor",
    linear=1,
)
def hand_out(
    x: Tensor,
    split: int,
    join: int,
    give: list[int],
    take: list[int],
    group: str,
    known: bool = False,
) -> Tensor:
    """Rank r gets x[give[2r]:give[2r + 1]] along dimension `split`. What comes, `take[r]` long
    from rank r, is joined in the order of ranks along `join`. Ranks first ask each other whether
    their fields are alike, unless that is `known`, as it is of gradients.
    """
    peers = _group(group)
    spans = _spans(give)
    shape = list(x.shape)
    shape[split] = spans[peers.rank()][1] - spans[peers.rank()][0]
    if not known:
        _require_alike(x, (split, join), peers)
    pieces = [x.narrow(split, a, b - a) for a, b in spans]
    shapes = [[*shape[:join], n, *shape[join + 1 :]] for n in take]
    return torch.cat(_exchanged(pieces, shapes, peers), join)


@operator(
    "hand_back",
    "(Tensor y, int split, int join, int[] give, int[] take, int size, str group,"
    " bool known=False) -> Tensor",
    linear=1,
)
def hand_back(
    y: Tensor,
    split: int,
    join: int,
    give: list[int],
    take: list[int],
    size: int,
    group: str,
    known: bool = False,
) -> Tensor:
    """The adjoint of `hand_out`, for an x of `size` along `split`: what comes back for one place
    is added up in the order of ranks.
    """
    peers = _group(group)
    spans = _spans(give)
    if not known:
        _require_alike(y, (split, join), peers)
    starts = [0, *accumulate(take)]
    shape = list(y.shape)
    shape[join] = take[peers.rank()]
    pieces = [y.narrow(join, a, n) for a, n in zip(starts, take, strict=False)]
    shapes = [[*shape[:split], b - a, *shape[split + 1 :]] for a, b in spans]
    shape[split] = size
    x = y.new_zeros(shape)
    for (a, b), piece in zip(spans, _exchanged(pieces, shapes, peers), strict=True):
        x.narrow(split, a, b - a).add_(piece)
    return x


@operator("sum_ranks", linear=1)
def sum_ranks(x: Tensor, group: str, shared: bool, known: bool = False) -> Tensor:
    """The sum over ranks, on all of them. Where it is `shared`, all go on with it alike, as with a
    loss, and its gradient counts once; else each goes its own way, and all their gradients do.
    `known` is as in `hand_out`.
    """
    if not known:
        _require_alike(x, (), _group(group))
    total = x.clone(memory_format=torch.contiguous_format)
    dist.all_reduce(total, group=_group(group))
    return total


def _group(name: str) -> dist.ProcessGroup:
    return _resolve_process_group(name)  # type: ignore[arg-type]


def _spans(give: list[int]) -> list[tuple[int, int]]:
    return list(zip(give[::2], give[1::2], strict=True))


def _require_alike(x: Tensor, apart: tuple[int, ...], peers: dist.ProcessGroup) -> None:
    """All ranks have fields of one batch, number of channels and precision, or all raise. Gloo
    itself would end the process, or take what it gets; NCCL waits for its time-out.
    """
    if x.device.type != "cpu" or peers.size() == 1:
        return
    shape = [None if dim in apart else size for dim, size in enumerate(x.shape)]
    mine = torch.tensor(zlib.crc32(f"{shape} {x.dtype}".encode()))
    ranks = [torch.empty_like(mine) for _ in range(peers.size())]
    dist.all_gather(ranks, mine, group=peers)
    if any(theirs != mine for theirs in ranks):
        fields = [""] * peers.size()
        dist.all_gather_object(fields, f"{tuple(x.shape)} {x.dtype}", group=peers)
        raise ValueError(
            f"rank {peers.rank()} has fields of shape {tuple(x.shape)} and {x.dtype}, others have "
            f"not: rank by rank there are {'; '.join(fields)}; batch, channels and precision must "
            "be the same on all ranks"
        )


def _exchanged(
    pieces: list[Tensor], shapes: list[list[int]], peers: dist.ProcessGroup
) -> list[Tensor]:
    """Piece r goes to rank r; what rank r has for this one is of shape r. One collective; what a
    rank has for itself stays where it is.
    """
    me = peers.rank()
    outgoing = [p.reshape(-1) if r != me else p.new_empty(0) for r, p in enumerate(pieces)]
    sizes = [math.prod(shape) if r != me else 0 for r, shape in enumerate(shapes)]
    sent, received = torch.cat(outgoing), pieces[me].new_empty(sum(sizes))
    dist.all_to_all_single(received, sent, sizes, [p.numel() for p in outgoing], group=peers)
    return [
        pieces[me] if r == me else part.view(shape)
        for r, (part, shape) in enumerate(zip(received.split(sizes), shapes, strict=True))
    ]


@hand_out.register_fake
def _(
    x: Tensor,
    split: int,
    join: int,
    give: list[int],
    take: list[int],
    group: str,
    known: bool = False,
) -> Tensor:
    me, shape = _group(group).rank(), list(x.shape)
    shape[split] = give[2 * me + 1] - give[2 * me]
    shape[join] = sum(take)
    return x.new_empty(shape)


@hand_back.register_fake
def _(
    y: Tensor,
    split: int,
    join: int,
    give: list[int],
    take: list[int],
    size: int,
    group: str,
    known: bool = False,
) -> Tensor:
    shape = list(y.shape)
    shape[join] = take[_group(group).rank()]
    shape[split] = size
    return y.new_empty(shape)


@sum_ranks.register_fake
def _(x: Tensor, group: str, shared: bool, known: bool = False) -> Tensor:
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def _keep_out(ctx: Any, inputs: tuple, output: Tensor) -> None:
    x, *ctx.where, ctx.group, _ = inputs
    ctx.size = x.shape[ctx.where[0]]


def _keep_back(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, *ctx.where, _, ctx.group, _ = inputs


def _keep_group(ctx: Any, inputs: tuple, output: Tensor) -> None:
    _, ctx.group, ctx.shared, _ = inputs


def _backward_sum(ctx: Any, g: Tensor) -> tuple:
    return (g if ctx.shared else sum_ranks(g, ctx.group, False, True)), None, None, None


hand_out.register_autograd(
    lambda ctx, g: (hand_back(g, *ctx.where, ctx.size, ctx.group, True), *[None] * 6),
    setup_context=_keep_out,
)
hand_back.register_autograd(
    lambda ctx, g: (hand_out(g, *ctx.where, ctx.group, True), *[None] * 7),
    setup_context=_keep_back,
)
sum_ranks.register_autograd(_backward_sum, setup_context=_keep_group)
