"""What every op does with tensors of size 0, of another device, of another dtype."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from spherule import Grid, native, ops
from spherule.geometry.filters import Stencil
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.neighborhood_attention.reference import neighborhood_attention as reference
from spherule.ops.pointwise import linear

pytestmark = pytest.mark.usefixtures("unchecked")

GRID, OTHER = Grid.gauss(6, 16), Grid.octahedral(3)
DISK = Neighborhood.disk(GRID, GRID, 1.1)
STENCIL = Stencil.hats(GRID)
POINTS = GRID.size


def tensors(batch: int = 2, heads: int = 2, dim: int = 3, value_dim: int = 4) -> list[Tensor]:
    return [torch.randn(batch, heads, POINTS, n) for n in (dim, dim, value_dim)]


ATTENTIONS: dict[str, Callable] = {
    "neighborhood": lambda *qkv, **options: ops.neighborhood_attention(*qkv, DISK, **options),
    "global": lambda *qkv, **options: ops.global_attention(*qkv, GRID, **options),
}


@pytest.mark.parametrize("scale", [None, 1.0])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_heads_without_channels_are_refused(name: str, scale: float | None) -> None:
    with pytest.raises(ValueError, match=r"dim of q and k must be at least 1, got q \(2, 2, 96, 0"):
        ATTENTIONS[name](*tensors(dim=0), scale=scale)


@pytest.mark.parametrize("mask", [None, "points", "batches"])
@pytest.mark.parametrize("empty", ["batch", "heads", "value_dim"])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_nothing_in_nothing_out(name: str, empty: str, mask: str | None) -> None:
    qkv = [x.requires_grad_() for x in tensors(**{empty: 0})]
    shape = {None: None, "points": (POINTS,), "batches": (qkv[0].shape[0], POINTS)}[mask]
    key_mask = None if shape is None else torch.ones(shape, dtype=torch.bool)
    out, lse = ATTENTIONS[name](*qkv, return_lse=True, key_mask=key_mask)
    alone = ATTENTIONS[name](*qkv, key_mask=key_mask)
    assert out.shape == alone.shape == (*qkv[0].shape[:3], qkv[2].shape[3])
    grads = torch.autograd.grad(out.sum() + lse.sum(), qkv)
    assert all(g.shape == x.shape and g.isfinite().all() for g, x in zip(grads, qkv, strict=True))
    if empty == "value_dim":
        full = ATTENTIONS[name](*qkv[:2], torch.randn(2, 2, POINTS, 1), return_lse=True)[1]
        torch.testing.assert_close(lse, full)


@pytest.mark.parametrize("name", ["sht", "isht", "resample", "nearest", "rotate", "integrate"])
def test_an_empty_batch_gives_an_empty_batch(name: str) -> None:
    u, coeffs = torch.zeros(0, 3, *GRID.shape), torch.zeros(0, 3, 5, 5, dtype=torch.complex64)
    y = {
        "sht": lambda: ops.sht(u, GRID, 4),
        "isht": lambda: ops.isht(coeffs, OTHER),
        "resample": lambda: ops.resample(u, GRID, OTHER),
        "nearest": lambda: ops.resample(u, GRID, OTHER, mode="nearest"),
        "rotate": lambda: ops.rotate(coeffs, torch.eye(3)),
        "integrate": lambda: ops.integrate(u, GRID),
    }[name]()
    assert y.shape[:2] == (0, 3)


@pytest.mark.parametrize("shapes", [((2, 0), (3, 0)), ((2, 0), (0, 1)), ((2, 4), (0, 4))])
def test_convolution_without_channels_is_refused(shapes) -> None:
    x, weight = torch.zeros(*shapes[0], *GRID.shape), torch.zeros(*shapes[1], STENCIL.basis)
    with pytest.raises(ValueError, match="x and weight need a channel at least"):
        ops.disco(x, weight, STENCIL)


COEFFS = torch.randn(5, 5, dtype=torch.complex64)
FIELD, WEIGHT = torch.randn(2, 4, *GRID.shape), torch.randn(6, 4, STENCIL.basis)
CALLS: dict[str, tuple[Callable, list[Tensor]]] = {
    **{name: (attention, tensors()) for name, attention in ATTENTIONS.items()},
    "disco": (lambda *x: ops.disco(*x, STENCIL), [FIELD, WEIGHT]),
    "wind": (lambda *x: ops.wind(*x, GRID), [COEFFS, COEFFS]),
    "spectral_filter": (ops.spectral_filter, [COEFFS, torch.ones(5)]),
}


@pytest.mark.parametrize("name", CALLS)
def test_tensors_of_two_devices_are_refused(name: str) -> None:
    op, arguments = CALLS[name]
    op(*arguments)
    for i in range(len(arguments)):
        elsewhere = [x.to("meta") if j == i else x for j, x in enumerate(arguments)]
        with pytest.raises(ValueError, match=r"must be on one device, got .*meta"):
            op(*elsewhere)


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64, torch.complex128, torch.bool])
@pytest.mark.parametrize("name", CALLS)
def test_dtypes_that_do_not_fit_are_refused(name: str, dtype: torch.dtype) -> None:
    op, arguments = CALLS[name]
    for i, x in enumerate(arguments):
        if (name, i, dtype) == ("spectral_filter", 1, torch.float64) or (
            name == "spectral_filter" and i == 0 and dtype == torch.complex128
        ):
            continue  # a response of any precision fits
        other = [x.real.to(dtype) if j == i else x for j, x in enumerate(arguments)]
        with pytest.raises(TypeError, match=r"expected|share a dtype"):
            op(*other)


@pytest.mark.parametrize("size", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_averages_of_ones_are_one_however_large_the_logits(size, dtype, monkeypatch) -> None:
    q, k, v = (x.to(dtype) for x in tensors())
    q, k, v = q * size, k + 1, torch.ones_like(v)
    monkeypatch.setattr(native, "load", lambda: (None, "absent"))
    for attention in ATTENTIONS.values():
        out, lse = attention(q, k, v, return_lse=True)
        torch.testing.assert_close(out, torch.ones_like(out))
        assert lse.isfinite().all()


@pytest.mark.parametrize("doublings", [4, 8, 16, 22])
def test_gradients_are_right_however_large_the_logits(doublings: int) -> None:
    """Scores are whole multiples of 2^doublings in base 2, so that float32 holds them exactly: of
    many keys with the same score, each has its share.
    """
    disk = Neighborhood.disk(GRID, GRID, 1.0, weighted=False)
    q, k, v = (torch.randint(-2, 3, x.shape).float() for x in tensors())
    weights = torch.randn(v.shape)
    scale = 2.0**doublings * math.log(2)

    def gradients(dtype: torch.dtype, attention: Callable) -> list[torch.Tensor]:
        leaves = [x.to(dtype).requires_grad_() for x in (q, k, v)]
        out = attention(*leaves)
        return [g.double() for g in torch.autograd.grad((out * weights.to(dtype)).sum(), leaves)]

    ours = gradients(torch.float32, lambda *x: ops.neighborhood_attention(*x, disk, scale=scale))
    wanted = gradients(torch.float64, lambda *x: reference(*x, disk, scale, None)[0])
    for gradient, right in zip(ours, wanted, strict=True):
        error = (gradient - right).abs().max() / right.abs().max()
        assert error < 1e-5, error


def test_the_library_refuses_what_it_cannot_walk() -> None:
    """Sizes that the checks in Python let pass nowhere."""
    from spherule.ops.neighborhood_attention import cpu

    q, k, v = tensors()
    out, lse = torch.empty(2, 2, POINTS, 4), torch.empty(2, 2, POINTS)
    with pytest.raises(ValueError, match="spherule_attention_forward: a size"):
        cpu.forward(q[..., :0], k[..., :0], v, DISK, 1.0, None, out, lse)
    with pytest.raises(ValueError, match="its table does not fit the sizes"):
        cpu.forward(q[:, :, 1:], k, v, DISK, 1.0, None, out, lse)


@pytest.mark.parametrize("threads", [0, -1, 2**31 - 1])
def test_threads_that_no_machine_has_are_refused(threads: int, monkeypatch) -> None:
    """OpenMP would end the process."""
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    x = torch.randn(1, 2, *GRID.shape)
    with pytest.raises(ValueError, match="number of threads is out of range"):
        ops.neighborhood_attention(*tensors(), DISK)
    with pytest.raises(ValueError, match="number of threads is out of range"):
        ops.disco(x, torch.randn(2, 2, STENCIL.basis), STENCIL)
    with pytest.raises(ValueError, match="number of threads is out of range"):
        linear(x.flatten(2), torch.randn(3, 2))
