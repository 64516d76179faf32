"""Operators of torch's: what compiled and exported programs call by name.

As `torch.library.custom_op`, less its import of the compiler at the first call, which takes
seconds and 150 MB of everybody who compiles nothing; and less torch's dispatcher where nobody but
autograd has anything to say, which goes from Python to C++ and back twice and takes as long as a
small field.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import Parameter

from spherule.ops.forward_mode import has_tangent

_NAMESPACE = "spherule"
_library = torch.library.Library(_NAMESPACE, "FRAGMENT")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Operator:
    """A function without side effects, on tensors, numbers and strings, on every device."""

    def __init__(
        self, name: str, function: Callable[..., Any], schema: str | None, linear: int
    ) -> None:
        self.name = f"{_NAMESPACE}::{name}"
        schema = schema or torch.library.infer_schema(function, mutates_args=())
        _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, function, "CompositeExplicitAutograd")
        self.overload = getattr(getattr(torch.ops, _NAMESPACE), name).default
        self.function, self.linear = function, linear
        self.__doc__ = function.__doc__
        parameters = inspect.signature(function).parameters.values()
        self._count = len(parameters)
        self._defaults = tuple(p.default for p in parameters if p.default is not p.empty)
        self._gives_list = str(self.overload._schema.returns[0].type) == "List[Tensor]"
        self._recorded: type[torch.autograd.Function] | None = None

    def __call__(self, *inputs: Any) -> Any:
        if has_tangent(*inputs):
            return self._differentiate_forward(inputs)
        if _somebody_listens() or not all(map(_plain, inputs)):
            return self.overload(*inputs)
        if missing := self._count - len(inputs):
            inputs += self._defaults[-missing:]
        if self._recorded and torch.is_grad_enabled() and any(map(_requires_grad, inputs)):
            output = self._recorded.apply(*inputs)
            return list(output) if self._gives_list else output
        return self._below_autograd(inputs)

    def register_fake(self, function: _Function) -> _Function:
        """Shapes and dtypes of what comes out, without values."""
        return torch.library.register_fake(self.name, function, lib=_library)

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[..., None]
    ) -> None:
        torch.library.register_autograd(
            self.name, backward, setup_context=setup_context, lib=_library
        )
        # torch's Function looks for tensors in no list: none may come in, and what comes out as
        # one is a tuple to it.
        assert "Tensor[]" not in str(self.overload._schema).partition("->")[0]

        def forward(ctx: Any, *inputs: Any) -> Any:
            output = self._below_autograd(inputs)
            setup_context(ctx, inputs, output)
            return tuple(output) if self._gives_list else output

        def backward_of_all(ctx: Any, *gradients: Any) -> Any:
            return backward(ctx, [*gradients]) if self._gives_list else backward(ctx, *gradients)

        parts = {"forward": staticmethod(forward), "backward": staticmethod(backward_of_all)}
        self._recorded = type(self.name, (torch.autograd.Function,), parts)

    def _differentiate_forward(self, inputs: tuple[Any, ...]) -> Any:
        """Tangents, which torch would drop silently: the sum over the inputs that have one of the
        operator with it in its input's place.
        """
        tensors, rest = inputs[: self.linear], inputs[self.linear :]
        if has_tangent(*rest):
            raise NotImplementedError(
                f"{self.name} does not differentiate forward; take reverse mode"
            )
        primals, tangents = zip(*map(forward_ad.unpack_dual, tensors), strict=True)
        output = self(*primals, *rest)
        terms = [
            self(*primals[:i], tangent, *primals[i + 1 :], *rest)
            for i, tangent in enumerate(tangents)
            if tangent is not None
        ]
        if isinstance(output, Tensor):
            return forward_ad.make_dual(output, sum(terms[1:], terms[0]))
        slope = sum((term[0] for term in terms[1:]), terms[0][0])
        return forward_ad.make_dual(output[0], slope), *output[1:]

    def _below_autograd(self, inputs: tuple[Any, ...]) -> Any:
        with torch._C._AutoDispatchBelowAutograd():
            return self.function(*inputs)


def operator(
    name: str, schema: str | None = None, *, linear: int = 0
) -> Callable[[Callable[..., Any]], Operator]:
    """Register a function as `spherule::name`; what is annotated gives the schema. What it gives
    first is linear in each of the first `linear` arguments, which is all that forward mode needs.
    """
    return lambda function: Operator(name, function, schema, linear)


def _somebody_listens() -> bool:
    """Whether the dispatcher has others to ask: a compiler, a tracer, a functional transform, a
    mode, a profiler.
    """
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._get_tracing_state() is not None
        or torch.autograd._profiler_enabled()
    )


def _plain(x: Any) -> bool:
    """Whether an input is no tensor, or one that only autograd and autocast have to do with: of
    torch's own classes, with values, and not to be negated, batched or filled with zeros first.
    """
    if isinstance(x, list):
        return all(map(_plain, x))
    if not isinstance(x, Tensor):
        return True
    return type(x) in (Tensor, Parameter) and _keys(x) in _plain_keys(x.device.type)


def _keys(x: Tensor) -> int:
    """Who has to do with a tensor, as bits."""
    return torch._C._dispatch_keys(x).raw_repr()


@cache
def _plain_keys(device: str) -> frozenset[int]:
    """Of tensors with nothing special about them."""
    kinds = []
    for mode in (False, True):
        with torch.inference_mode(mode):
            kinds.append(torch.empty(0, device=device))
    return frozenset(_keys(x) for x in kinds if not x.is_meta)


def _requires_grad(x: Any) -> bool:
    return isinstance(x, Tensor) and x.requires_grad
