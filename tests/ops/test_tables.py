"""Tables are made once and kept: under which of torch's modes they were made must not matter."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch

from spherule import ops
from spherule.geometry import Neighborhood
from spherule.geometry.filters import Stencil
from spherule.grids import Grid
from spherule.ops.disco import reference as disco_reference
from spherule.ops.neighborhood_attention import reference as attention_reference
from spherule.ops.tables import table

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


MODES: list[Callable[[], AbstractContextManager]] = [
    torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16),
    lambda: torch.device("meta"),
    torch.no_grad,
]


@pytest.mark.parametrize("mode", MODES, ids=["inference", "autocast", "meta", "no_grad"])
def test_tables_are_made_outside_of_modes(mode: Callable[[], AbstractContextManager]) -> None:
    @table(maxsize=2)
    def make(n: int) -> torch.Tensor:
        return torch.arange(float(n * n)).reshape(n, n) @ torch.eye(n)

    with mode():
        made = make(3)
    assert not made.is_inference()
    assert made.dtype == torch.float32
    assert torch.equal(made, torch.arange(9.0).reshape(3, 3))
    assert make(3) is made


def test_tables_do_not_belong_to_a_functional_transform() -> None:
    @table(maxsize=2)
    def make(n: int) -> torch.Tensor:
        return torch.arange(float(n)) + 1

    x = torch.ones(3)
    slope = torch.func.grad(lambda x: (x * make(3)).sum())(x)
    assert not torch._C._functorch.is_gradtrackingtensor(make(3))
    assert torch.equal(slope, make(3))


def test_what_is_handed_out_may_be_changed() -> None:
    like = torch.empty(0, dtype=torch.float64)
    weights = torch.ops.spherule.log_weights(REGULAR.name, REGULAR.size, like)
    wanted = weights.clone()
    weights.zero_()
    assert torch.equal(torch.ops.spherule.log_weights(REGULAR.name, REGULAR.size, like), wanted)


def test_what_is_exported_leaves_nothing_behind() -> None:
    grid = Grid.gauss(7, 28)

    class Transform(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ops.sht(x, grid, 3).abs()

    x = torch.randn(2, *grid.shape)
    torch.export.export(Transform(), (x,), strict=False)
    assert type(ops.sht(x, grid, 3)) is torch.Tensor


def test_errors_come_through() -> None:
    @table(maxsize=2)
    def make(n: int) -> torch.Tensor:
        raise ValueError(f"n={n}")

    with pytest.raises(ValueError, match="n=4"):
        make(4)
