"""Attention beside torch-harmonics: what a user pays, our op on our layout, theirs on theirs.

Useful flops are 4 pairs x dim forward and 10 pairs x dim backward.
"""

import math
import statistics

import torch
import torch_harmonics as th
from torch import Tensor

from spherule import Grid, Neighborhood, ops
from spherule.nn import SphericalAttention
from timing import beside_sgemm, compare, keep, quartiles, set_up, sgemm

TABLE = [  # nlat, nlon, channels, heads, batch, repeats
    (64, 128, 128, 1, 1, 9),
    (64, 128, 128, 4, 1, 9),
    (128, 256, 128, 4, 1, 3),
    (64, 128, 32, 2, 4, 9),
    (64, 128, 128, 8, 1, 5),
]


def main() -> None:
    set_up()
    print(f"sgemm {sgemm():.0f} GF/s")
    print("\nneighborhood attention, cutoff of 7x7 cells, float32")
    for row in TABLE:
        local(*row)
    print("\nglobal attention, 64x128, 128 channels, 4 heads")
    global_row()
    print("\nthe whole layer, projections included: local, 64x128, 128 channels, 4 heads")
    layer_row()
    print("\nuseful GF/s forward, forward + backward, share of sgemm; ps a pair and channel")
    rates()
    print(f"sgemm again {sgemm():.0f} GF/s")


def cutoff_of(nlat: int) -> float:
    return 7 * math.pi / (math.sqrt(math.pi) * nlat)


def our_inputs(grid: Grid, channels: int, heads: int, batch: int) -> list[Tensor]:
    """Head by head and point by point, as the layers hand them over."""
    shape = (batch, heads, grid.size, channels // heads)
    return [torch.randn(shape, requires_grad=True) for _ in range(3)]


def local(nlat: int, nlon: int, channels: int, heads: int, batch: int, repeats: int) -> None:
    grid = Grid.gauss(nlat, nlon)
    # The peer widens the cutoff by a thousandth: both get the same pairs.
    disk = Neighborhood.disk(grid, grid, 1.001 * cutoff_of(nlat))
    q, k, v = our_inputs(grid, channels, heads, batch)
    peer = th.NeighborhoodAttentionS2(
        channels,
        (nlat, nlon),
        (nlat, nlon),
        grid_in="legendre-gauss",
        grid_out="legendre-gauss",
        num_heads=heads,
        bias=False,
        theta_cutoff=cutoff_of(nlat),
    )
    # Their layout: channels last, heads side by side, the query already scaled.
    theirs = [
        x.detach().transpose(1, 2).reshape(batch, nlat, nlon, channels).clone().requires_grad_()
        for x in (q, k, v)
    ]
    with torch.no_grad():
        theirs[0].mul_(peer.scale)

    def their_forward() -> Tensor:
        query, key, value = theirs
        return peer.attention_handle(
            key,
            value,
            query,
            peer.quad_weights,
            peer.psi_col_idx,
            peer.psi_roff_idx,
            peer.psi_seg,
            peer.psi_seg_off,
            heads,
            nlon,
            nlat,
            nlon,
        )

    def our_forward() -> Tensor:
        return ops.neighborhood_attention(q, k, v, disk)

    with torch.no_grad():
        mine = our_forward().transpose(1, 2).reshape(batch, nlat, nlon, channels)
        difference = (their_forward() - mine).abs().max() / mine.abs().max()
    assert difference < 1e-4, f"the peer disagrees by {difference}"
    name = f"{nlat}x{nlon}, {channels} channels, {heads} heads, batch {batch}"
    with torch.no_grad():
        compare(f"{name}: forward", their_forward, our_forward, repeats)
    their_seed, our_seed = torch.randn_like(their_forward()), torch.randn_like(our_forward())
    compare(
        f"{name}: forward + backward",
        lambda: torch.autograd.grad(their_forward(), theirs, their_seed),
        lambda: torch.autograd.grad(our_forward(), (q, k, v), our_seed),
        max(repeats // 2, 3),
    )


def global_row() -> None:
    grid = Grid.gauss(64, 128)
    q, k, v = our_inputs(grid, 128, 4, 1)
    peer = th.AttentionS2(
        128, 4, grid.shape, grid.shape, grid_in="legendre-gauss", grid_out="legendre-gauss"
    )
    theirs = [x.detach().contiguous().requires_grad_() for x in (q, k, v)]
    seed = torch.randn(q.shape)

    def their_forward() -> Tensor:
        return torch.nn.functional.scaled_dot_product_attention(
            *theirs, attn_mask=peer.log_quad_weights, scale=peer.scale
        )

    compare(
        "global: forward + backward",
        lambda: torch.autograd.grad(their_forward(), theirs, seed),
        lambda: torch.autograd.grad(ops.global_attention(q, k, v, grid), (q, k, v), seed),
        5,
    )


def layer_row() -> None:
    grid = Grid.gauss(64, 128)
    peer = th.NeighborhoodAttentionS2(
        128,
        grid.shape,
        grid.shape,
        grid_in="legendre-gauss",
        grid_out="legendre-gauss",
        num_heads=4,
        bias=False,
        theta_cutoff=cutoff_of(64),
    )
    ours = SphericalAttention(128, grid, heads=4, cutoff=cutoff_of(64))
    x = torch.randn(1, 128, *grid.shape)
    compare(
        "layer: forward + backward",
        lambda: peer(x).sum().backward(),
        lambda: ours(x).sum().backward(),
        5,
    )


def rates() -> None:
    lat_lon = Grid.gauss(64, 128)
    cases = [("64x128, dim 32", lat_lon, cutoff_of(64), 128, 4)]
    cases += [("64x128, dim 64", lat_lon, cutoff_of(64), 128, 2)]
    cases += [("64x128, dim 128", lat_lon, cutoff_of(64), 128, 1)]
    cases += [("64x128, dim 16 (SegFormer's)", lat_lon, cutoff_of(64), 128, 8)]
    for name, keys in (("H32", 120), ("O48", 120)):
        grid = Grid.from_name(name)
        # A disk of area keys x 4 pi / size holds as many points.
        radius = math.acos(1 - 2 * keys / grid.size)
        cases.append((f"{name}, dim 32, {keys} keys", grid, radius, 128, 4))
    equator = math.acos(1 - 2 * 120 / lat_lon.size)
    cases.append(("64x128, dim 32, disks of that area", lat_lon, equator, 128, 4))
    for nlat in (45, 91, 181, 361, 721):
        grid = Grid.gauss(nlat, 2 * nlat if nlat < 361 else 2 * (nlat - 1))
        cases.append((f"{grid.name}, dim 32", grid, cutoff_of(nlat), 32, 1))
    for case in cases:
        rate_row(*case)


def rate_row(name: str, grid: Grid, cutoff: float, channels: int, heads: int) -> None:
    disk = Neighborhood.disk(grid, grid, cutoff)
    q, k, v = our_inputs(grid, channels, heads, 1)
    seed = torch.randn_like(q)

    def forward() -> Tensor:
        return ops.neighborhood_attention(q, k, v, disk)

    with torch.no_grad():
        once = statistics.median(beside_sgemm(forward, 7)[0])
    taken, rates = beside_sgemm(lambda: torch.autograd.grad(forward(), (q, k, v), seed), 9)
    both, rate = statistics.median(taken), statistics.median(rates)
    work = int(disk.counts().sum()) * channels
    low, share, high = quartiles([14e-6 * work / t / r for t, r in zip(taken, rates, strict=True)])
    keep("attention", f"{name}: share of sgemm", low, share, high)
    print(
        f"{name:36s} {work / channels / grid.size:5.1f} keys"
        f"  forward {4e-6 * work / once:5.1f} GF/s  f+b {14e-6 * work / both:5.1f} GF/s"
        f" ({share:4.0%}, {low:.0%} to {high:.0%}, of {rate:.0f})"
        f"  {1e9 * once / work:6.1f} ps  {1e9 * both / work:6.1f} ps"
    )


if __name__ == "__main__":
    main()
