import math
import sys

import pytest
import torch

from spherule import Grid
from spherule.ops.global_attention import flash, global_attention

DTYPES = [torch.float16, torch.bfloat16]
module = sys.modules[global_attention.__module__]


@pytest.fixture
def on_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors take the way they take on a GPU."""
    monkeypatch.setattr(module, "_on_gpu", lambda q: True)


def random_qkv(keys: int, dim: int, value_dim: int, dtype: torch.dtype) -> list[torch.Tensor]:
    sizes = ((9, dim), (keys, dim), (keys, value_dim))
    return [torch.randn(2, 3, *size).to(dtype) for size in sizes]


@pytest.mark.parametrize("scale", [0.3, 32**-0.5, -1.7, 100.0])
@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_add_the_log_weights_up_to_one_number(dtype: torch.dtype, scale: float) -> None:
    grid = Grid.gauss(128, 8)
    q, k, _ = random_qkv(grid.size, 5, 5, dtype)
    log_w = torch.tensor(grid.weights.ravel()).log()
    with_w = flash.with_log_weights(q, k, log_w.float(), scale)
    assert all(x.dtype == dtype for x in with_w)
    scores, wider = (a.double() @ b.double().mT * scale for a, b in ((q, k), with_w))
    added = wider - scores
    centered = log_w - (log_w.max() + log_w.min()) / 2
    # As exact as a mask of log weights in float32.
    assert (added - centered).abs().max() <= 2e-6


@pytest.mark.usefixtures("on_gpu")
@pytest.mark.parametrize(("dim", "value_dim"), [(16, 16), (5, 12), (250, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["gauss:12x24", "H3", "clenshaw_curtis:9x12"])
def test_flash_form_equals_mask_form_to_its_rounding(
    name: str, dtype: torch.dtype, dim: int, value_dim: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = Grid.from_name(name)
    qkv = [x.requires_grad_() for x in random_qkv(grid.size, dim, value_dim, dtype)]
    exact = global_attention(*(x.double() for x in qkv), grid)
    weight = torch.randn_like(exact)
    expected = exact, *torch.autograd.grad(exact, qkv, weight)
    called = []
    attention = flash.attention
    monkeypatch.setattr(flash, "attention", lambda *a: called.append(a[3]) or attention(*a))
    out = global_attention(*qkv, grid)
    assert len(called) == 1
    assert (called[0] is None) == (name == "H3")
    assert out.dtype == dtype
    found = out, *torch.autograd.grad(out, qkv, weight.to(dtype))
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 2 * torch.finfo(dtype).eps * b.abs().max()


@pytest.mark.usefixtures("on_gpu")
def test_what_flash_cannot_do_goes_by_the_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash, "attention", None)
    grid, pole = Grid.gauss(4, 8), Grid.equiangular(4, 8)
    qkv = random_qkv(32, 8, 8, torch.bfloat16)
    mask = torch.rand(32) > 0.5
    global_attention(*qkv, grid, key_mask=mask)
    global_attention(*qkv, grid, return_lse=True)
    global_attention(*qkv, grid, scale=0.0)
    global_attention(*(x.float() for x in qkv), grid)
    global_attention(*random_qkv(32, 254, 8, torch.bfloat16), grid)
    # The pole of weight 0 has no finite log weight.
    q, k, v = qkv
    clean = global_attention(q, k, v, pole)
    k[:, :, :8], v[:, :, :8] = math.nan, math.nan
    assert torch.equal(global_attention(q, k, v, pole), clean)


@pytest.mark.usefixtures("on_gpu", "unchecked")
def test_compiles_as_one_graph_and_exports() -> None:
    grid = Grid.gauss(4, 8)

    class Module(torch.nn.Module):
        def forward(self, q, k, v):
            return global_attention(q, k, v, grid)

    qkv = tuple(random_qkv(grid.size, 8, 8, torch.bfloat16))
    expected = Module()(*qkv)
    compiled = torch.compile(Module(), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(*qkv), expected)
    torch.testing.assert_close(torch.export.export(Module(), qkv).module()(*qkv), expected)


def test_scales_that_sixteen_bits_can_invert_are_taken() -> None:
    for scale in (2.0**-12, 2.0**12, -1.0):
        assert flash.takes(64, 64, scale)
    for scale in (2.0**-12.1, 2.0**12.1, 0.0):
        assert not flash.takes(64, 64, scale)
