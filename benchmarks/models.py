"""Training steps (forward, backward, Adam) and forward passes beside torch-harmonics' own models.

128x256, 3 channels in and out, the paper's configurations; each in a process of its own so
that peak memory can be read. Shares are useful flops (`useful_flops`) over sgemm's rate in the same
process.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import torch
from torch import Tensor, nn

from spherule.allocator import keep_memory
from timing import beside_sgemm, compare, keep, milliseconds, quartiles, set_up

GRID = (128, 256)


@dataclass(frozen=True)
class Case:
    kind: str = "transformer"
    local: bool = True
    batch: int = 1
    train: bool = True
    precision: str = "float32"
    compiled: bool = False
    repeats: int = 7
    peer: bool = True

    @property
    def name(self) -> str:
        words = [self.kind, "local" if self.local else "global"]
        words += ["training" if self.train else "forward", f"batch {self.batch}"]
        words += [self.precision] * (self.precision != "float32")
        return ", ".join(words + ["compiled"] * self.compiled)


LOCAL = Case()
CASES = [
    replace(LOCAL, repeats=9),
    replace(LOCAL, batch=4),
    replace(LOCAL, batch=8, peer=False),
    replace(LOCAL, batch=4, compiled=True, peer=False),
    replace(LOCAL, batch=4, precision="bfloat16", peer=False),
    replace(LOCAL, train=False, repeats=15),
    Case("segformer", repeats=9),
    Case("segformer", batch=4),
    Case(local=False, repeats=3),
    Case(local=False, precision="bfloat16", repeats=3),
]
THEIR_REPEATS = 3


def ours(case: Case) -> nn.Module:
    from spherule import models

    configs = {"transformer": models.TransformerConfig, "segformer": models.SegformerConfig}
    return models.build(configs[case.kind](local=case.local), "gauss:128x256", 3, 3)


def peers(case: Case) -> nn.Module:
    from torch_harmonics.examples import models

    common = {
        "img_size": GRID,
        "grid": "legendre-gauss",
        "grid_internal": "legendre-gauss",
        "attention_mode": "neighborhood" if case.local else "global",
        "filter_basis_type": "piecewise linear",
        "bias": False,
    }
    if case.kind == "transformer":
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


def useful_flops(model: nn.Module, *, train: bool) -> float:
    """Of one sample through our Transformer: products over channels, 4 pairs x dim of attention,
    hats by their nonzeros; the backward pass is twice that, of attention 2.5 times.
    """
    attentions = [block.attention for block in model.blocks]
    points = attentions[0].grid.size
    products = 2 * points * sum(p.numel() for p in model.parameters() if p.dim() > 1)
    hats = 2 * sum(c.stencil.nonzeros * 3 for c in (model.encoder, model.decoder))
    pairs = sum(
        int(a.neighborhood.counts().sum()) if a.neighborhood else points**2 for a in attentions
    )
    attention = 4 * pairs * model.config.width
    return 3 * (products + hats) + 3.5 * attention if train else products + hats + attention


def step(side: str, model: nn.Module, case: Case) -> Callable[[], None]:
    x, y = torch.randn(2, case.batch, 3, *GRID)

    def forward() -> Tensor:
        low = case.precision != "float32"
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=low):
            return model(x)

    if not case.train:

        def infer() -> None:
            with torch.inference_mode():
                forward()

        model.eval()
        return infer
    optimizer = optimizer_of(side, model)

    def train() -> None:
        for p in model.parameters():
            p.grad = None
        (forward().float() - y).square().mean().backward()
        optimizer()

    return train


def optimizer_of(side: str, model: nn.Module) -> Callable[[], None]:
    """As each side trains: ours does without torch's classes, which import its compiler."""
    if side == "peer":
        return torch.optim.Adam(model.parameters(), 1e-3).step
    from spherule.train import TrainingConfig
    from spherule.train.optim import Adam

    adam = Adam(model.parameters(), TrainingConfig())
    return lambda: adam.step(1e-3)


def measure(side: str, case: Case) -> dict:
    if side == "ours":
        keep_memory()  # as training and prediction do
    torch.set_num_threads(2)
    torch.manual_seed(0)
    model = (ours if side == "ours" else peers)(case)
    call = step(side, torch.compile(model) if case.compiled else model, case)
    first = milliseconds(call)
    times, rates = beside_sgemm(call, case.repeats if side == "ours" else THEIR_REPEATS)
    low, median, high = quartiles(times)
    result = {"first": first, "low": low, "median": median, "high": high}
    result["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result["parameters"] = sum(p.numel() for p in model.parameters())
    result["sgemm"] = statistics.median(rates)
    if side == "ours" and case.kind == "transformer":
        flops = case.batch * useful_flops(model, train=case.train)
        result["flops"] = flops
        result["shares"] = quartiles(
            [1e-6 * flops / t / r for t, r in zip(times, rates, strict=True)]
        )
    return result


def in_process(side: str, case: Case) -> dict:
    command = [sys.executable, __file__, "--measure", side, json.dumps(asdict(case))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def row(case: Case) -> None:
    mine = in_process("ours", case)
    text = f"{case.name:46s} ours {mine['median']:7.0f} ms"
    text += f" ({mine['low']:.0f} to {mine['high']:.0f})"
    text += f" {mine['megabytes']:5.0f} MB"
    if "flops" in mine:
        low, share, high = mine["shares"]
        keep("models", f"{case.name}: share of sgemm", low, share, high)
        text += f"  {1e-9 * mine['flops']:.0f} GF, {share:.0%} ({low:.0%} to {high:.0%})"
        text += f" of {mine['sgemm']:.0f}"
    if case.peer:
        theirs = in_process("peer", case)
        low, high = theirs["low"] / mine["high"], theirs["high"] / mine["low"]
        ratio = theirs["median"] / mine["median"]
        keep("models", case.name, low, ratio, high)
        text += f"  peer {theirs['median']:7.0f} ms {theirs['megabytes']:5.0f} MB"
        text += f"  ratio {ratio:.2f} ({low:.2f} to {high:.2f})"
    keep("models", f"{case.name}: 1 / MB", *3 * [1 / mine["megabytes"]])
    print(text, flush=True)


def precisions() -> None:
    """float32 and bfloat16 in turns, in one process."""
    steps = []
    for precision in ("float32", "bfloat16"):
        case = replace(LOCAL, batch=4, precision=precision)
        steps.append(step("ours", ours(case), case))
    compare("local, training, batch 4: float32 over bfloat16", *steps, 9)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", nargs=2)
    arguments = parser.parse_args()
    if arguments.measure:
        side, case = arguments.measure
        print(json.dumps(measure(side, Case(**json.loads(case)))))
        return
    set_up()
    print("128x256, 3 channels; shares: useful flops over sgemm's GF/s in the same process")
    for case in CASES:
        row(case)
    precisions()


if __name__ == "__main__":
    main()
