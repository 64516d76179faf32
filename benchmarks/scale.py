"""The local Transformer from 64x128 to a quarter of a degree: time and memory of a training step
and of a forward pass, batch 1, float32, beside torch-harmonics' model where that fits.

Each in a process of its own, so that its first step has all tables to make. A peer that takes
longer than ten minutes or more memory than there is has no number.
"""

import argparse
import json
import math
import resource
import signal
import statistics
import subprocess
import sys
import time

import torch
from torch import nn

from spherule import Grid, models
from spherule.allocator import keep_memory
from spherule.train import TrainingConfig
from spherule.train.optim import Adam
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


def measure(side: str, name: str, what: str) -> dict[str, float]:
    """Seconds of building the model, of the first step or forward pass and of later ones, and peak
    memory.
    """
    if side == "ours":
        keep_memory()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    x, y = torch.randn(2, 1, 3, *Grid.from_name(name).shape)
    start = time.perf_counter()
    model = (ours if side == "ours" else peers)(name)
    built = time.perf_counter() - start
    optimizer = Adam(model.parameters(), TrainingConfig())

    def forward() -> None:
        with torch.inference_mode():
            model(x)

    def step() -> None:
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step(1e-3)

    times = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        {"forward": forward, "step": step}[what]()
        times.append(time.perf_counter() - start)
    first, *later = times
    result = {"build": built, "first": first, "median": statistics.median(later)}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return result | {"low": min(later), "high": max(later), "megabytes": memory}


def in_process(side: str, name: str, what: str) -> dict[str, float] | str:
    """Of a step or a forward pass; or why there is nothing to tell."""
    command = [sys.executable, __file__, "--measure", side, name, what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return f"more than {LIMIT:.0f} s"
    if done.returncode == -signal.SIGKILL:
        return "more memory than there is"
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.splitlines()[-1]


def text(what: str, r: dict[str, float] | str) -> str:
    if isinstance(r, str):
        return f"{what}: {r}"
    return (
        f"{what}: built in {r['build']:.1f} s, first {r['first']:.1f} s, later {r['median']:.2f} s "
        f"({r['low']:.2f} to {r['high']:.2f}), {r['megabytes']:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=3)
    parser.add_argument("--grids", nargs="+", default=list(GRIDS))
    parser.add_argument("--no-peer", action="store_true")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure)))
        return
    set_up()
    sizes, times = [], []
    for name in arguments.grids:
        points = Grid.from_name(name).size
        step = in_process("ours", name, "step")
        assert not isinstance(step, str), f"{name}: {step}"
        sizes.append(points)
        times.append(step["median"])
        rates = (points / step[q] for q in ("high", "median", "low"))
        keep("scale", f"{name}: points / s", *rates)
        print(f"{name}: {1e6 * times[-1] / points:.1f} us a point; {text('step', step)}")
        forward = in_process("ours", name, "forward")
        print(f"{'':8s}{text('forward', forward)}", flush=True)
        for what in ("step", "forward") if GRIDS[name] and not arguments.no_peer else ():
            print(f"{'':8s}peer, {text(what, in_process('peer', name, what))}", flush=True)
    if len(sizes) > 1:
        slope = statistics.linear_regression(*(list(map(math.log, v)) for v in (sizes, times)))
        print(f"the time grows as the number of points to the power {slope.slope:.3f}")


if __name__ == "__main__":
    main()
