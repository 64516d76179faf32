"""The local Transformer from 64x128 to a quarter of a degree: time and memory of a training step
and of a forward pass, batch 1, float32, beside torch-harmonics' model where that fits.

Each in a process of its own. A peer that takes longer than ten minutes or more memory than there is
has no number.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

from spherule import Grid, models
from spherule.allocator import keep_memory
from timing import THREADS, keep, set_up

# The peer's name of the rule, or none where it has no such grid.
GRIDS = {
    "gauss:64x128": "legendre-gauss",
    "gauss:128x256": "legendre-gauss",
    "gauss:256x512": "legendre-gauss",
    "clenshaw_curtis:361x720": "equiangular",
    "clenshaw_curtis:721x1440": "equiangular",
    "O320": None,
    "H256": None,
}
LIMIT = 600.0
"""Seconds for the peer."""
REPEATS = 3


def ours(name: str) -> nn.Module:
    return models.build(models.TransformerConfig(), name, 3, 3)


def peers(name: str) -> nn.Module:
    from torch_harmonics.examples.models import SphericalTransformer

    return SphericalTransformer(
        img_size=Grid.from_name(name).shape,
        grid=GRIDS[name],
        grid_internal=GRIDS[name],
        scale_factor=2,
        embed_dim=128,
        encoder_kernel_shape=(5, 4),
        normalization_layer="instance_norm",
        attention_mode="neighborhood",
        filter_basis_type="piecewise linear",
        bias=False,
    )


def measure(side: str, name: str) -> dict[str, float]:
    """Seconds of building the model, of the first step, of later ones and of a forward pass."""
    if side == "ours":
        keep_memory()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    x, y = torch.randn(2, 1, 3, *Grid.from_name(name).shape)
    start = time.perf_counter()
    model = (ours if side == "ours" else peers)(name)
    result = {"build": time.perf_counter() - start}
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    forwards, steps = [], []
    with torch.inference_mode():
        for _ in range(1 + REPEATS):
            start = time.perf_counter()
            model(x)
            forwards.append(time.perf_counter() - start)
    result["forward"] = statistics.median(forwards[1:])
    result["first forward"] = forwards[0]
    result["forward megabytes"] = megabytes()
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        steps.append(time.perf_counter() - start)
    result |= {"first step": forwards[0] + steps[0], "step": statistics.median(steps[1:])}
    return result | {"low": min(steps[1:]), "high": max(steps[1:]), "megabytes": megabytes()}


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_process(side: str, name: str) -> dict[str, float] | None:
    command = [sys.executable, __file__, "--measure", side, name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return None
    return json.loads(done.stdout) if done.returncode == 0 else None


def text(result: dict[str, float] | None) -> str:
    if result is None:
        return "does not fit"
    return (
        f"build {result['build']:.1f} s, first step {result['first step']:.1f} s, step "
        f"{result['step']:.2f} s ({result['low']:.2f} to {result['high']:.2f}) "
        f"{result['megabytes']:.0f} MB, forward {result['forward']:.2f} s "
        f"{result['forward megabytes']:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=2)
    parser.add_argument("--grids", nargs="+", default=list(GRIDS))
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        return
    set_up()
    sizes, times = [], []
    for name in arguments.grids:
        mine = in_process("ours", name)
        assert mine is not None, f"{name}: our step failed"
        points = Grid.from_name(name).size
        sizes.append(points)
        times.append(mine["step"])
        keep("scale", f"{name}: points / s", *(points / mine[q] for q in ("high", "step", "low")))
        print(f"{name}: {1e6 * mine['step'] / points:.1f} us a point; {text(mine)}", flush=True)
        if GRIDS[name] and not arguments.no_peer:
            print(f"{'':8s}peer: {text(in_process('peer', name))}", flush=True)
    if len(sizes) > 1:
        slope = statistics.linear_regression(*(list(map(math.log, v)) for v in (sizes, times)))
        print(f"the time grows as the number of points to the power {slope.slope:.3f}")


if __name__ == "__main__":
    main()
