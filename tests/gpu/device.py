"""What happens on a GPU, in a process of its own (conftest.py)."""

import torch
from torch import Tensor

from spherule import Grid, ops
from spherule.nn import DiscoConv, SphericalAttention
from tests.gpu import worker


def attention(case: worker.Attention) -> dict[str, tuple[float, float]]:
    """The public operator, against the reference on the CPU."""
    return worker.attention(case, _by_operator)


def _by_operator(inputs: list[Tensor], nb, mask: Tensor | None) -> dict[str, Tensor]:
    *qkv, grad = (x.cuda() for x in inputs)
    leaves = [x.requires_grad_() for x in qkv]
    mask = None if mask is None else mask.cuda()
    out, lse = ops.neighborhood_attention(*leaves, nb, scale=0.4, key_mask=mask, return_lse=True)
    there = lse > -torch.inf
    lse = torch.where(there, lse, 0)
    total = (out * grad).double().sum() + (lse * worker._weights(lse)).double().sum()
    found = (out, lse, *torch.autograd.grad(total, leaves))
    return worker._named(x.cpu() for x in found)


def convolution(case: worker.Convolution) -> dict[str, tuple[float, float]]:
    return worker.convolution(case, "cuda")


def repeated(case: worker.Attention) -> bool:
    """Whether twice the same gives the same bits."""
    inputs, mask = case.inputs()
    first, second = (_by_operator(inputs, case.neighborhood, mask) for _ in range(2))
    return all(torch.equal(value, second[name]) for name, value in first.items())


def global_attention() -> tuple[float, float]:
    """The flash form against float64 by the mask."""
    grid = Grid.gauss(16, 32)
    qkv = [torch.randn(2, 4, grid.size, 32, device="cuda").bfloat16() for _ in range(3)]
    exact = ops.global_attention(*(x.double() for x in qkv), grid)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        out = ops.global_attention(*qkv, grid)
    limit = 2 * torch.finfo(torch.bfloat16).eps * exact.abs().max().item()
    return (out - exact).abs().max().item(), limit


def compiled_layers() -> None:
    """Layers under torch.compile and autocast, against the CPU."""
    grid = Grid.gauss(16, 32)
    layers = torch.nn.Sequential(
        DiscoConv(3, 32, grid), SphericalAttention(32, grid, heads=2, cutoff=grid.cutoff(7))
    )
    x = torch.randn(2, 3, *grid.shape)
    expected = layers(x)
    layers, x = layers.cuda(), x.cuda()
    compiled = torch.compile(layers, fullgraph=True)
    # torch's own products may be TF32.
    torch.testing.assert_close(compiled(x).cpu(), expected, rtol=0, atol=5e-3)
    with torch.autocast("cuda", torch.bfloat16):
        y = compiled(x)
    torch.testing.assert_close(y.float().cpu(), expected, rtol=0.05, atol=0.05)
    y.float().square().mean().backward()
    assert all(p.grad.isfinite().all() for p in layers.parameters())
