"""Tables are made once and kept: those that inference made first must serve training too."""

from collections.abc import Callable

import pytest
import torch

from spherule import ops
from spherule.geometry import Neighborhood
from spherule.geometry.filters import Stencil
from spherule.grids import Grid
from spherule.ops.disco import reference as disco_reference
from spherule.ops.neighborhood_attention import reference as attention_reference

# Sizes that no other test has, so that nothing is made yet.
REGULAR, REDUCED = Grid.gauss(7, 26), Grid.octahedral(9)


def attend(x: torch.Tensor) -> torch.Tensor:
    q = x.flatten(1)[None, None].transpose(-1, -2)
    near = Neighborhood.disk(REGULAR, REGULAR, 1.234)
    return attention_reference.neighborhood_attention(q, q, q, near, 1.0, None)[0]


def convolve(x: torch.Tensor) -> torch.Tensor:
    stencil = Stencil.hats(REGULAR, cutoff=1.5)
    return disco_reference.convolve(x.flatten(1)[None], torch.ones(1, 1, 2, 9), stencil, False)[0]


OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "sht": lambda x: ops.sht(x, REGULAR, 4).abs(),
    "isht": lambda x: ops.isht(ops.sht(x, REGULAR, 5), REDUCED),
    "resample": lambda x: ops.resample(x, REGULAR, REDUCED),
    "nearest": lambda x: ops.resample(x, REGULAR, REDUCED, mode="nearest"),
    "attention": attend,
    "disco": convolve,
    "global": lambda x: ops.global_attention(
        *[x.flatten(1)[None, None].transpose(-1, -2)] * 3, REGULAR
    ),
}


@pytest.mark.parametrize("name", OPS)
def test_what_inference_made_serves_training(name: str) -> None:
    op = OPS[name]
    x = torch.randn(2, *REGULAR.shape)
    with torch.inference_mode():
        op(x)
    x.requires_grad_()
    op(x).square().sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
