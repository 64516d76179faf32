"""Mean and variance over points: the library beside the plain formulation."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from spherule.ops import norm
from spherule.ops.norm import reference

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own

SHAPES = [(1, 1, 1), (2, 3, 5), (3, 6, 130), (2, 4, 2051)]
"""Batch, channels, points: no multiples of vectors or runs."""


def field(shape: tuple[int, ...], dtype: torch.dtype = torch.float64) -> Tensor:
    return (torch.randn(shape, dtype=dtype) + 3).requires_grad_()


def normed(ops: object, x: Tensor, weights: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    mean, variance = ops.moments(x, weights)  # type: ignore[attr-defined]
    scale = gain * (variance + 1e-5).rsqrt()
    return ops.standardize(x, mean, scale, shift)  # type: ignore[attr-defined]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which functions of the library were called."""
    seen: list[str] = []
    real = norm.cpu.native.call

    def note(name: str, *arguments: object) -> None:
        seen.append(name)
        real(name, *arguments)

    monkeypatch.setattr(norm.cpu.native, "call", note)
    return seen


def in_one(x: Tensor, weights: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return norm.instance_norm(x, weights, gain, shift, 1e-5)


def in_two(x: Tensor, weights: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    return normed(norm, x, weights, gain, shift)


CALLS = {
    in_one: ("instance_norm", "instance_norm_backward"),
    in_two: ("moments", "standardize", "standardize_backward", "moments_backward"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("own_weights", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("how", CALLS)
def test_norm_is_the_plain_one_in_value_and_gradients(
    shape, own_weights, dtype, how, calls
) -> None:
    x = field(shape, dtype)
    batch, channels, points = shape
    weights = torch.rand((batch, points) if own_weights else points, dtype=dtype)
    gain, shift = (torch.randn(channels, dtype=dtype).requires_grad_() for _ in range(2))
    y = how(x, weights, gain, shift)
    dy = torch.randn_like(y)
    exact = [t.detach().double().requires_grad_() for t in (x, gain, shift)]
    plain = normed(reference, exact[0], weights.double(), *exact[1:])
    allowed = 1e-11 if dtype == torch.float64 else 1e-3
    accuracy = {"rtol": allowed, "atol": allowed}
    torch.testing.assert_close(y.double(), plain, **accuracy)
    ours = torch.autograd.grad(y, (x, gain, shift), dy)
    theirs = torch.autograd.grad(plain, exact, dy.double())
    if points > 1:  # the gradient of a single point is a difference of large numbers
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a.double(), b, **accuracy)
    assert calls == [f"spherule_{name}" for name in CALLS[how]]


def test_moments_are_those_of_the_definition_where_the_mean_is_large() -> None:
    x = (torch.randn(2, 3, 5000) + 1000).requires_grad_()
    weights = torch.rand(5000)
    mean, variance = norm.moments(x, weights)
    exact, shares = x.detach().double(), (weights / weights.double().sum()).double()
    centered = exact - (exact @ shares)[..., None]
    torch.testing.assert_close(mean.double(), exact @ shares, rtol=1e-6, atol=0)
    torch.testing.assert_close(variance.double(), centered.square() @ shares, rtol=1e-5, atol=0)


def test_no_weight_at_all_leaves_zeros() -> None:
    x = field((2, 3, 40))
    weights = torch.stack([torch.rand(40), torch.zeros(40)]).double()
    mean, variance = norm.moments(x, weights)
    assert not mean[1].any()
    assert not variance[1].any()
    assert mean[0].all()
    (dx,) = torch.autograd.grad(mean.sum() + variance.sum(), x)
    assert not dx[1].any()
    assert dx[0].any()
    ones = torch.ones(3).double()
    one, two = (how(x, weights, ones, ones) for how in CALLS)
    torch.testing.assert_close(one, two)
    dx, other = (torch.autograd.grad(y.pow(3).sum(), x)[0] for y in (one, two))
    torch.testing.assert_close(dx, other)


@pytest.mark.parametrize("how", CALLS)
def test_fields_of_any_strides_and_expanded_gradients(how) -> None:
    wide, weights = torch.randn(4, 10, 50, dtype=torch.float64), torch.rand(50).double()
    gain = torch.ones(6).double()
    for x in (wide[:, 2:8], wide[::2, 4:], wide[:, :6].mT.contiguous().mT, wide[:1, :6]):
        x = x.detach().requires_grad_()
        sides = [how(x, weights, gain, gain), normed(reference, x, weights, gain, gain)]
        torch.testing.assert_close(*sides)
        torch.testing.assert_close(*(torch.autograd.grad(y.sum(), x)[0] for y in sides))


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("how", CALLS)
def test_bits_do_not_depend_on_threads(how, threads: int) -> None:
    x, weights = field((3, 20, 2000), torch.float32), torch.rand(2000)
    gain, results = torch.randn(20), []
    for count in (1, threads):
        torch.set_num_threads(count)
        y = how(x, weights, gain, gain)
        results.append((y, *torch.autograd.grad(y.square().sum(), x)))
    for first, second in zip(*results, strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("how", CALLS)
def test_first_and_second_derivatives_are_slopes(how) -> None:
    weights = torch.rand(2, 5, dtype=torch.float64)
    given = (field((2, 3, 5)), *(torch.randn(3).double().requires_grad_() for _ in range(2)))

    def f(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
        return how(x, weights, gain, shift)

    assert gradcheck(f, given)
    assert gradgradcheck(f, given, fast_mode=True)


@pytest.mark.parametrize("how", CALLS)
def test_forward_mode_and_functional_transforms_go_by_the_reference(how, calls) -> None:
    x, weights, gain = field((2, 3, 20)).detach(), torch.rand(20).double(), torch.ones(3).double()

    def f(x: Tensor) -> Tensor:
        return how(x, weights, gain, gain)

    tangent = torch.randn_like(x)
    _, slope = torch.func.jvp(f, (x,), (tangent,))
    stacked = torch.func.vmap(f)(torch.stack([x, 2 * x]))[1]
    assert not calls
    ahead, behind = f(x + 1e-6 * tangent), f(x - 1e-6 * tangent)
    torch.testing.assert_close(slope, (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(stacked, f(2 * x))


def test_autocast_leaves_32_bits_to_norms() -> None:
    x, weights = 100 + torch.randn(2, 3, 50), torch.rand(50)
    wanted = norm.moments(x, weights)
    with torch.autocast("cpu", torch.bfloat16):
        found = norm.moments(x, weights)
        y = norm.standardize(x, *found, torch.zeros(3))
        short = norm.standardize(x.bfloat16(), *found, torch.zeros(3).bfloat16())
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)
    assert torch.equal(y, norm.standardize(x, *wanted, torch.zeros(3)))
    assert (y.dtype, short.dtype) == (torch.float32, torch.bfloat16)
    ones = torch.ones(3)
    with torch.autocast("cpu", torch.bfloat16):
        found = norm.instance_norm(x, weights, ones, ones, 1e-5)
        short = norm.instance_norm(x.bfloat16(), weights, ones, ones, 1e-5)
    assert torch.equal(found, norm.instance_norm(x, weights, ones, ones, 1e-5))
    assert short.dtype == torch.bfloat16
