"""DISCO convolutions beside torch-harmonics, with the same cutoff on both sides."""

from functools import partial

import torch
import torch_harmonics as th
from torch_harmonics.quadrature import THETA_CUTOFF_EPS

from spherule import Grid
from spherule.nn import DiscoConv, Resample
from timing import compare, set_up

CASES = {
    "decoder 128 -> 3, 128x256": (128, 3, Grid.gauss(128, 256), Grid.gauss(128, 256), 1, 1),
    "encoder 3 -> 128, 128x256 to 64x128": (
        3,
        128,
        Grid.gauss(128, 256),
        Grid.gauss(64, 128),
        1,
        1,
    ),
    "depthwise 64, 64x128": (64, 64, Grid.gauss(64, 128), Grid.gauss(64, 128), 64, 1),
    "depthwise 64, 64x128, batch 4": (64, 64, Grid.gauss(64, 128), Grid.gauss(64, 128), 64, 4),
    "64 -> 64, 64x128": (64, 64, Grid.gauss(64, 128), Grid.gauss(64, 128), 1, 1),
}


def pair(
    in_channels: int, out_channels: int, grid: Grid, out_grid: Grid, groups: int
) -> tuple[torch.nn.Module, torch.nn.Module]:
    """The peer's layer and ours, with the same weights."""
    ours = DiscoConv(in_channels, out_channels, grid, out_grid, groups=groups)
    gauss = {"grid_in": "legendre-gauss", "grid_out": "legendre-gauss"}
    peer = th.DiscreteContinuousConvS2(
        *(in_channels, out_channels, grid.shape, out_grid.shape),
        kernel_shape=(5, 4),
        theta_cutoff=ours.stencil.cutoff / (1 + THETA_CUTOFF_EPS),  # the peer widens its disks
        groups=groups,
        bias=False,
        **gauss,
    ).float()
    with torch.no_grad():
        # Its azimuths begin in the north.
        turned = ours.weight[..., 1:].unflatten(-1, (2, 4)).roll(2, -1).flatten(-2)
        peer.weight.copy_(torch.cat([ours.weight[..., :1], turned], dim=-1))
    return peer, ours


def main() -> None:
    set_up()
    for name, (in_channels, out_channels, grid, out_grid, groups, batch) in CASES.items():
        peer, ours = pair(in_channels, out_channels, grid, out_grid, groups)
        x = torch.randn(batch, in_channels, *grid.shape, requires_grad=True)
        difference = (peer(x) - ours(x)).abs().max() / ours(x).abs().max()
        assert difference < 1e-5, f"the peer disagrees by {difference}"
        dy = torch.randn_like(ours(x))
        for what, u in (("x and weight", x), ("weight", x.detach())):
            both = [partial(step, layer, u, dy) for layer in (peer, ours)]
            compare(f"{name}, gradients of {what}", *both)

    with_upsampling()


def with_upsampling() -> None:
    """The decoder as the Transformer has it: bilinear from half the resolution, then 128 -> 3."""
    fine, coarse = Grid.gauss(128, 256), Grid.gauss(64, 128)
    peer, ours = pair(128, 3, fine, fine, 1)
    gauss = {"grid_in": "legendre-gauss", "grid_out": "legendre-gauss"}
    their_upsample = th.ResampleS2(*coarse.shape, *fine.shape, **gauss)
    our_upsample = Resample(coarse, fine)
    x = torch.randn(1, 128, *coarse.shape, requires_grad=True)
    dy = torch.randn(1, 3, *fine.shape)
    compare(
        "decoder with its upsampling, gradients of x and weight",
        lambda: torch.autograd.grad(peer(their_upsample(x)), [x, peer.weight], dy),
        lambda: torch.autograd.grad(ours.after(our_upsample, x), [x, ours.weight], dy),
    )


def step(layer: torch.nn.Module, x: torch.Tensor, dy: torch.Tensor) -> None:
    wanted = [x, layer.weight] if x.requires_grad else [layer.weight]
    torch.autograd.grad(layer(x), wanted, dy)


if __name__ == "__main__":
    main()
