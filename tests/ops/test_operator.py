"""Operators: what they need, what they don't, and who may listen to them."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from spherule.ops.operator import _somebody_listens, operator

PROGRAM = """
import sys
import torch
from spherule import Grid, models

grid = Grid.gauss(8, 16)
model = models.build(models.TransformerConfig(width=8, depth=1, skip="spectral"), grid, 3, 3)
x = torch.randn(1, 3, 8, 16)
with torch.inference_mode():
    model(x)
model(x).sum().backward()
print("torch._dynamo" in sys.modules)
"""


def test_a_model_runs_forward_and_backward_without_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


@operator("test_scaled")
def _scaled(x: Tensor, y: Tensor | None, factor: float = 3.0) -> tuple[Tensor, Tensor]:
    """x y factor, and what is no function of it."""
    return (x if y is None else x * y) * factor, torch.ones_like(x)


@_scaled.register_fake
def _(x: Tensor, y: Tensor | None, factor: float = 3.0) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x)


def _keep(ctx: Any, inputs: tuple, output: tuple) -> None:
    x, y, ctx.factor = inputs
    ctx.save_for_backward(x, y)
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)


def _backward(ctx: Any, g: Tensor | None, none: Tensor | None) -> tuple:
    x, y = ctx.saved_tensors
    assert g is not None
    if y is None:
        return g * ctx.factor, None, None
    wanted = ctx.needs_input_grad[1]
    return g * y * ctx.factor, g * x * ctx.factor if wanted else None, None


_scaled.register_autograd(_backward, setup_context=_keep)


def _leaves() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(5, requires_grad=True), torch.randn(5, requires_grad=True)


@pytest.mark.parametrize("given", [(), (2.0,)])
@pytest.mark.parametrize("second", [True, False])
def test_called_by_itself_and_by_the_dispatcher_it_is_the_same_function(
    given: tuple[float, ...], second: bool
) -> None:
    results = []
    for call in (_scaled, _scaled.overload):
        x, y = _leaves()
        out, rest = call(x, y if second else None, *given)
        assert out.requires_grad
        assert not rest.requires_grad
        (gx,) = torch.autograd.grad(out.square().sum(), x, create_graph=True)
        assert gx is not None
        results.append((out, rest, gx, torch.autograd.grad(gx.sum(), x)[0]))
    for mine, theirs in zip(*results, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=0)


@operator("test_parts", "(Tensor x, int[] widths) -> Tensor[]")
def _parts(x: Tensor, widths: list[int]) -> list[Tensor]:
    return [part.clone() for part in x.split(widths)]


_parts.register_autograd(
    lambda ctx, gradients: (torch.cat(gradients), None),
    setup_context=lambda ctx, inputs, output: None,
)


@pytest.mark.parametrize("call", [_parts, _parts.overload])
def test_lists_of_tensors_come_out_with_their_gradients(call: Callable[..., Any]) -> None:
    x, y = _leaves()
    parts = call(x, [2, 3])
    assert isinstance(parts, list)
    (only_second,) = torch.autograd.grad((parts[1] * y[2:]).sum(), x)
    torch.testing.assert_close(only_second, torch.cat([torch.zeros(2), y[2:]]))


def test_gradients_are_recorded_only_where_they_are_wanted() -> None:
    x, y = _leaves()
    assert not _scaled(x.detach(), y.detach())[0].requires_grad
    with torch.no_grad():
        assert not _scaled(x, y)[0].requires_grad
    with torch.inference_mode():
        assert _scaled(x, y)[0].is_inference()
    assert _scaled(x.detach(), y)[0].requires_grad


class _Names(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        self.seen.append(str(function))
        return function(*args, **kwargs or {})


class _Calls(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
        self.seen.append(str(function))
        return function(*args, **kwargs or {})


@pytest.mark.parametrize("mode", [_Names, _Calls])
def test_modes_see_the_operator(mode: Callable[[], Any]) -> None:
    x, y = _leaves()
    with mode() as listening:
        _scaled(x, y)
    assert any("spherule.test_scaled" in name for name in listening.seen)


def test_functional_transforms_are_left_to_the_dispatcher() -> None:
    """Their tensors hold no values that a kernel could read."""
    heard = []

    def within(x: Tensor) -> Tensor:
        heard.append(_somebody_listens())
        return x.sum()

    torch.vmap(within)(torch.randn(2, 3))
    torch.func.grad(within)(torch.randn(3))
    assert heard == [True, True]


def test_profilers_see_the_operator() -> None:
    x, y = _leaves()
    with torch.profiler.profile() as profile, torch.no_grad():
        _scaled(x, y)
    assert "spherule::test_scaled" in {event.key for event in profile.key_averages()}


def test_what_has_no_values_keeps_its_shape() -> None:
    assert _scaled(torch.empty(7, device="meta"), None)[0].is_meta
    with torch._subclasses.FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.randn(4))
    assert _scaled(fake, None)[0].shape == (4,)


def test_subclasses_of_tensors_are_asked() -> None:
    class Own(Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            return "asked"

    assert _scaled(torch.randn(3).as_subclass(Own), None) == "asked"


@operator("test_product", linear=2)
def _product(x: Tensor, y: Tensor, power: float) -> tuple[Tensor, Tensor]:
    """x y power, and what is no function of it."""
    return x * y * power, torch.ones_like(x)


def test_forward_mode_is_linear_in_what_is_said_to_be() -> None:
    x, y, dx, dy = torch.randn(4, 5).unbind()
    with forward_ad.dual_level():
        out, other = _product(forward_ad.make_dual(x, dx), forward_ad.make_dual(y, dy), 2.0)
        value, slope = forward_ad.unpack_dual(out)
        assert forward_ad.unpack_dual(other).tangent is None
    assert torch.equal(value, 2 * x * y)
    assert torch.allclose(slope, 2 * (dx * y + x * dy))


def test_forward_mode_is_refused_by_all_others() -> None:
    x = torch.randn(5)
    with forward_ad.dual_level():
        _scaled(x, None)
        with pytest.raises(NotImplementedError, match="test_scaled does not differentiate forward"):
            _scaled(forward_ad.make_dual(x, x), None)
