"""One training step (forward, backward, Adam) beside torch-harmonics' own models.

128x256, 3 channels in and out, the paper's configurations; each in a process of its own so
that peak memory can be read.
"""

import argparse
import resource
import subprocess
import sys
import time

import torch
from torch import nn

from spherule.allocator import keep_memory
from timing import keep, set_up

CASES = {
    "transformer, local": ("transformer", True, 3, 1),
    "transformer, local, batch 4": ("transformer", True, 3, 4),
    "transformer, global": ("transformer", False, 2, 1),
    "segformer, local": ("segformer", True, 3, 1),
    "segformer, local, batch 4": ("segformer", True, 3, 4),
}
GRID = (128, 256)


def ours(kind: str, local: bool) -> nn.Module:
    from spherule import models

    configs = {"transformer": models.TransformerConfig, "segformer": models.SegformerConfig}
    return models.build(configs[kind](local=local), "gauss:128x256", 3, 3)


def peers(kind: str, local: bool) -> nn.Module:
    from torch_harmonics.examples import models

    common = {
        "img_size": GRID,
        "grid": "legendre-gauss",
        "grid_internal": "legendre-gauss",
        "attention_mode": "neighborhood" if local else "global",
        "filter_basis_type": "piecewise linear",
        "bias": False,
    }
    if kind == "transformer":
        return models.SphericalTransformer(
            scale_factor=2,
            embed_dim=128,
            encoder_kernel_shape=(5, 4),
            normalization_layer="instance_norm",
            **common,
        )
    return models.SphericalSegformer(
        embed_dims=[16, 32, 64, 128],
        kernel_shape=(5, 4),
        mlp_ratio=1.0,
        drop_path_rate=0.0,
        **common,
    )


def measure(side: str, kind: str, local: bool, steps: int, batch: int) -> None:
    """Print the median step in milliseconds, the peak memory in megabytes, the parameters, and the
    shortest and the longest step.
    """
    if side == "ours":
        keep_memory()  # as training does
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = (ours if side == "ours" else peers)(kind, local)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    x, y = torch.randn(2, batch, 3, *GRID)
    times = []
    for _ in range(steps + 1):
        start = time.perf_counter()
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    count = sum(p.numel() for p in model.parameters())
    low, *_, high = ordered = sorted(1e3 * t for t in times[1:])
    print(ordered[len(ordered) // 2], peak, count, low, high)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=5)
    arguments = parser.parse_args()
    if arguments.measure:
        side, kind, local, steps, batch = arguments.measure
        measure(side, kind, local == "True", int(steps), int(batch))
        return
    set_up()
    print("one training step, 128x256, batch 1 unless said, 3 channels")
    for name, (kind, local, steps, batch) in CASES.items():
        results = {}
        for side in ("peer", "ours"):
            case = (side, kind, str(local), str(steps), str(batch))
            command = [sys.executable, __file__, "--measure", *case]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            results[side] = [float(word) for word in done.stdout.split()]
        peer_ms, peer_mb, peer_n, peer_low, peer_high = results["peer"]
        our_ms, our_mb, our_n, our_low, our_high = results["ours"]
        keep("models", name, peer_low / our_high, peer_ms / our_ms, peer_high / our_low)
        keep("models", f"{name}: 1 / MB", 1 / our_mb, 1 / our_mb, 1 / our_mb)
        print(
            f"{name:28s} peer {peer_ms:8.0f} ms {peer_mb:6.0f} MB {peer_n:9.0f} parameters"
            f"  ours {our_ms:8.0f} ms {our_mb:6.0f} MB {our_n:9.0f}  ratio {peer_ms / our_ms:5.2f}"
        )


if __name__ == "__main__":
    main()
