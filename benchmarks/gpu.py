"""On a GPU: checks the kernels against the reference, then times them beside others.

    python benchmarks/gpu.py

Ours, torch-harmonics where it is installed, and torch's dense attention (SDPA) over the same
points, which does more work, but on the kernel that is tuned best. Times are medians of many
launches.
"""

import argparse
import statistics
import sys
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from spherule import Grid, Neighborhood, cuda, ops
from spherule.nn import DiscoConv, SphericalAttention

DEVICE = "cuda"
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
CHECKS = ["gauss:32x64", "equiangular:24x48", "clenshaw_curtis:25x48", "H8", "O16"]
TABLE = [  # grid, channels, heads, batch: the paper's shapes, and those around them
    ("gauss:64x128", 128, 1, 4),
    ("gauss:64x128", 128, 4, 4),
    ("gauss:128x256", 128, 4, 1),
    ("gauss:64x128", 32, 2, 8),
    ("H64", 128, 4, 1),
    ("O96", 128, 4, 1),
    ("clenshaw_curtis:361x720", 128, 4, 1),
]
CONVOLUTIONS = {
    "encoder 3 -> 128, 128x256 to 64x128": (3, 128, "gauss:128x256", "gauss:64x128", 1),
    "decoder 128 -> 3, 128x256": (128, 3, "gauss:128x256", "gauss:128x256", 1),
    "64 -> 64, 64x128": (64, 64, "gauss:64x128", "gauss:64x128", 1),
    "depthwise 64, 64x128": (64, 64, "gauss:64x128", "gauss:64x128", 64),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=list(DTYPES))
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("benchmarks/gpu.py needs an NVIDIA GPU and a torch built for CUDA; there is none.")
    if not cuda.TRITON:
        sys.exit(f"benchmarks/gpu.py needs the GPU kernels: {cuda.kernels()}")
    torch.manual_seed(0)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {cuda.kernels()}")
    print("\nchecks: largest error over what it may be (a few roundings)")
    for name in CHECKS:
        for dtype in options.dtypes:
            check_attention(name, DTYPES[dtype])
    for dtype in options.dtypes:
        check_convolution(DTYPES[dtype])
    print("\nneighborhood attention, disks of 7x7 cells, milliseconds forward, forward + backward")
    for row in TABLE:
        for dtype in options.dtypes:
            time_attention(*row, DTYPES[dtype])
    print("\nDISCO convolution, batch 4, milliseconds forward, forward + backward")
    for name, case in CONVOLUTIONS.items():
        time_convolution(name, *case)


def qkv_on(grid: Grid, channels: int, heads: int, batch: int, dtype: torch.dtype) -> list[Tensor]:
    """Heads as views of channels-first fields, as the layers hand them over."""
    fields = [torch.randn(batch, channels, grid.size, device=DEVICE).to(dtype) for _ in range(3)]
    return [f.unflatten(1, (heads, -1)).mT.requires_grad_() for f in fields]


def check_attention(name: str, dtype: torch.dtype) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    qkv = qkv_on(grid, 64, 2, 1, dtype)
    wide = [x.detach().double().requires_grad_() for x in qkv]  # float64 runs on the reference
    out, exact = (ops.neighborhood_attention(*x, disk) for x in (qkv, wide))
    seed = torch.randn_like(exact)
    found = out, *torch.autograd.grad(out, qkv, seed.to(dtype))
    expected = exact, *torch.autograd.grad(exact, wide, seed.to(dtype).double())
    report(f"attention {name} {dtype}", found, expected, dtype)


def check_convolution(dtype: torch.dtype) -> None:
    layer = DiscoConv(8, 16, Grid.gauss(32, 64), Grid.gauss(16, 32)).to(DEVICE)
    x = torch.randn(2, 8, 32, 64, device=DEVICE).to(dtype).requires_grad_()
    weight = layer.weight.to(dtype)
    y, exact = (
        ops.disco(*pair, layer.stencil) for pair in ((x, weight), (x.double(), weight.double()))
    )
    seed = torch.randn_like(exact).to(dtype)
    found = y, *torch.autograd.grad(y, x, seed)
    report(
        f"convolution {dtype}", found, (exact, *torch.autograd.grad(exact, x, seed.double())), dtype
    )


def report(name: str, found: tuple, expected: tuple, dtype: torch.dtype) -> None:
    limit = 16 * torch.finfo(dtype).eps
    shares = [
        ((a.double() - b).abs().max() / b.abs().max()).item() / limit
        for a, b in zip(found, expected, strict=True)
    ]
    print(f"{name:48s} {max(shares):5.2f}")
    if max(shares) > 1:
        sys.exit(f"{name}: wrong by {max(shares):.1f} times what rounding explains")


def time_attention(name: str, channels: int, heads: int, batch: int, dtype: torch.dtype) -> None:
    grid = Grid.from_name(name)
    disk = Neighborhood.disk(grid, grid, grid.cutoff(7))
    q, k, v = qkv_on(grid, channels, heads, batch, dtype)
    pairs = int(disk.counts().sum()) * batch * channels
    once, both = times(lambda: ops.neighborhood_attention(q, k, v, disk), (q, k, v))
    print(
        f"{name}, {channels} channels, {heads} heads, batch {batch}, {dtype}\n"
        f"  ours           {once:8.3f} {both:8.3f}"
        f"   useful TFlop/s {4e-9 * pairs / once:.2f} {14e-9 * pairs / both:.2f}"
    )
    if grid.size <= 50_000:
        dense = [x.detach().contiguous().requires_grad_() for x in (q, k, v)]
        once, both = times(lambda: F.scaled_dot_product_attention(*dense), dense)
        print(f"  SDPA, all keys {once:8.3f} {both:8.3f}")
    if name.startswith("gauss") and dtype == torch.float32:
        time_peer(grid, channels, heads, batch)


def time_peer(grid: Grid, channels: int, heads: int, batch: int) -> None:
    """Whole layers, projections included: the peer's operator has another layout."""
    try:
        import torch_harmonics as th
    except ImportError:
        print("  torch-harmonics is not installed")
        return
    gauss = {"grid_in": "legendre-gauss", "grid_out": "legendre-gauss"}
    shape = grid.shape
    ours = SphericalAttention(channels, grid, heads=heads, cutoff=grid.cutoff(7)).to(DEVICE)
    x = torch.randn(batch, channels, *shape, device=DEVICE, requires_grad=True)
    peer = th.NeighborhoodAttentionS2(
        channels, shape, shape, **gauss, num_heads=heads, bias=False, theta_cutoff=grid.cutoff(7)
    ).to(DEVICE)
    print("  layer, ours    {:8.3f} {:8.3f}".format(*times(lambda: ours(x), [x])))
    try:
        print("  torch-harmonics{:8.3f} {:8.3f}".format(*times(lambda: peer(x), [x])))
    except (RuntimeError, NotImplementedError) as error:
        print(f"  torch-harmonics does not run here: {str(error).splitlines()[0]}")


def time_convolution(name: str, in_: int, out: int, source: str, target: str, groups: int) -> None:
    grids = Grid.from_name(source), Grid.from_name(target)
    layer = DiscoConv(in_, out, *grids, groups=groups).to(DEVICE)
    x = torch.randn(4, in_, *grids[0].shape, device=DEVICE, requires_grad=True)
    for dtype in (torch.float32, torch.bfloat16):
        with torch.autocast(DEVICE, torch.bfloat16, enabled=dtype == torch.bfloat16):
            once, both = times(lambda: layer(x), [x, layer.weight])
        print(f"{name:40s} {dtype!s:16s} {once:8.3f} {both:8.3f}")


def times(call: Callable[[], Tensor], inputs: list[Tensor]) -> tuple[float, float]:
    """Milliseconds forward, and forward with backward."""
    seed = torch.randn_like(call())
    with torch.no_grad():
        once = median(call)
    return once, median(lambda: torch.autograd.grad(call(), inputs, seed))


def median(call: Callable[[], object], repeats: int = 30) -> float:
    for _ in range(5):
        call()
    found = []
    for _ in range(repeats):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        found.append(start.elapsed_time(end))
    return statistics.median(found)


if __name__ == "__main__":
    main()
