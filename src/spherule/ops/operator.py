"""Operators of torch's: what compiled and exported programs call by name.

As `torch.library.custom_op`, less its import of the compiler at the first call, which takes
seconds and 150 MB of everybody who compiles nothing.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

_NAMESPACE = "spherule"
_library = torch.library.Library(_NAMESPACE, "FRAGMENT")
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Operator:
    """A function without side effects, on tensors, numbers and strings, on every device."""

    def __init__(self, name: str, function: Callable[..., Any], schema: str | None) -> None:
        self.name = f"{_NAMESPACE}::{name}"
        schema = schema or torch.library.infer_schema(function, mutates_args=())
        _library.define(name + schema, tags=(torch.Tag.pt2_compliant_tag,))
        _library.impl(name, function, "CompositeExplicitAutograd")
        self.overload = getattr(getattr(torch.ops, _NAMESPACE), name).default
        self.__doc__ = function.__doc__

    def __call__(self, *inputs: Any) -> Any:
        return self.overload(*inputs)

    def register_fake(self, function: _Function) -> _Function:
        """Shapes and dtypes of what comes out, without values."""
        return torch.library.register_fake(self.name, function, lib=_library)

    def register_autograd(
        self, backward: Callable[..., Any], *, setup_context: Callable[..., None]
    ) -> None:
        torch.library.register_autograd(
            self.name, backward, setup_context=setup_context, lib=_library
        )


def operator(name: str, schema: str | None = None) -> Callable[[Callable[..., Any]], Operator]:
    """Register a function as `spherule::name`; what is annotated gives the schema."""
    return lambda function: Operator(name, function, schema)
