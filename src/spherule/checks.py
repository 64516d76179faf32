"""What arguments must be: one vocabulary of checks for the public surface.

Each returns the value in the type that it stands for, or raises a TypeError or ValueError that
names the argument, what came and what was expected.
"""

import contextlib
import dataclasses
import functools
import inspect
import itertools
import math
import numbers
import operator
import re
import types
import typing
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np
import torch

Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")


def arguments(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """A function whose arguments are checked to be what their annotations say, before it runs: the
    kind of number, of object, of tensor and of its entries. Ranges and shapes are its own business.
    Numbers of numpy become Python's, which have no few bits to overflow.
    """
    parameters = inspect.signature(function).parameters
    names, empty = tuple(parameters), inspect.Parameter.empty
    hints = {n: p.annotation for n, p in parameters.items() if p.annotation is not empty}
    hints.pop("cls", None)  # of a class method
    checkers = {name: _checker(hint) for name, hint in hints.items()}

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        # Compilers trace what this guards, and would trace this too.
        if not torch.compiler.is_compiling():
            # Not self; and names that it lacks Python itself refuses.
            args = tuple(  # type: ignore[assignment]
                checkers[name](name, value) if name in checkers else value
                for name, value in itertools.zip_longest(names[: len(args)], args)
            )
            kwargs |= {  # type: ignore[assignment]
                name: checkers[name](name, value)
                for name, value in kwargs.items()
                if name in checkers
            }
        return function(*args, **kwargs)

    return checked


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """A whole number in [low, high], of 64 bits; a bool is none, nor is an array of one."""
    whole = None if isinstance(value, bool | torch.Tensor | np.ndarray) else _index(value)
    if whole is None:
        raise TypeError(f"{name}={_shown(value)} must be an integer, got {_kind(value)}")
    _within(name, whole, low, high, None, None)
    if not -(2**63) <= whole < 2**63:
        raise ValueError(f"{name}={_shown(whole)} must be an integer of 64 bits")
    return whole


def number(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> float:
    """A finite number in [low, high], or beyond `above` and below `below`, which don't belong to
    it themselves.
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}={_shown(value)} must be a number, got {_kind(value)}")
    try:
        real = float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise ValueError(f"{name}={_shown(value)} must be finite")
    _within(name, real, low, high, above, below)
    return real


def radius(name: str, value: Any) -> float:
    """An angle in (0, pi] radians; what rounding moved beyond pi is pi."""
    angle = number(name, value)
    if not 0 < angle <= math.pi + 1e-11:
        degrees = f"; {angle:g} looks like degrees: use math.radians({angle:g})"
        hint = degrees if angle > math.pi else ""
        raise ValueError(f"{name}={angle:g} must be in (0, pi] radians{hint}")
    return min(angle, math.pi)


def choice(name: str, value: Value, choices: Collection[Any]) -> Value:
    """One of these; another spelling is another value."""
    if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={_shown(value)} is not one of {known}")
    return value


def instance(name: str, value: Any, *kinds: type[Value]) -> Value:
    """An object of one of these classes."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: expected {_article(wanted)} {wanted}, got {_kind(value)}")
    return value


def shape(name: str, value: Any) -> tuple[int, int]:
    """Rows and columns of a text such as 128x256."""
    sizes = re.fullmatch(r"([1-9][0-9]{0,17})x([1-9][0-9]{0,17})", instance(name, value, str))
    if sizes is None:
        raise ValueError(f"{name}={_shown(value)}: expected rows and columns, such as 128x256")
    return int(sizes[1]), int(sizes[2])


def config(values: Any) -> None:
    """Every field of a dataclass is what its annotation says: literals, numbers, texts, tuples.
    Numbers of numpy become Python's, which JSON knows.
    """
    for name, check in _fields(values.__class__).items():
        value = getattr(values, name)
        checked = check(name, value)
        if checked is not value:
            object.__setattr__(values, name, checked)  # of a frozen one, too


@functools.cache
def _fields(kind: type) -> dict[str, Callable[[str, Any], Any]]:
    """The checkers of a dataclass."""
    hints = typing.get_type_hints(kind)
    return {field.name: _checker(hints[field.name]) for field in dataclasses.fields(kind)}


def _checker(hint: Any) -> Callable[[str, Any], Any]:
    """For a hint, what gives a value that fits back, in Python's own type where it is a number.
    A hint is read once, because arguments are checked at every call; but not kept for others like
    it, since unions are equal whatever the order in which they are tried.
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return lambda name, value: choice(name, value, inner)
    if origin in (typing.Union, types.UnionType):
        options = [(kind, _checker(kind)) for kind in inner]
        return lambda name, value: _one_of(name, value, options)
    if origin is tuple:
        kinds = [... if kind is ... else _checker(kind) for kind in inner]
        return lambda name, value: _entries(name, value, kinds)
    if hint is int:
        return _plain_integer
    if hint is float:
        return _plain_number
    fits = _test(hint)
    entry_checker = _checker(inner[0]) if origin is Sequence else None

    def check(name: str, value: Any) -> Any:
        if not fits(value):
            if hint is bool or hint is str:
                wanted = _words(hint)
                raise TypeError(f"{name}={_shown(value)} must be {wanted}, got {_kind(value)}")
            raise TypeError(f"{name}: expected {_words(hint)}, got {_came(value)}")
        if entry_checker:
            for i, entry in enumerate(value):
                entry_checker(f"{name}[{i}]", entry)
        return value

    return check


def _one_of(name: str, value: Any, options: list[tuple[Any, Callable[[str, Any], Any]]]) -> Any:
    """`options`: kinds, and their checkers."""
    if value is None and any(kind is type(None) for kind, _ in options):
        return None
    for _, check in options:
        with contextlib.suppress(TypeError, ValueError):
            return check(name, value)
    rest = [check for kind, check in options if kind is not type(None)]
    if len(rest) == 1:
        rest[0](name, value)  # says it better
    wanted = " or ".join(_words(kind) for kind, _ in options)
    raise TypeError(f"{name}={_shown(value)}: expected {wanted}, got {_kind(value)}")


def _entries(name: str, value: Any, kinds: list[Any]) -> Any:
    """`kinds`: a checker for each entry, or one and an ellipsis."""
    if not isinstance(value, tuple):
        raise TypeError(f"{name}={_shown(value)} must be a tuple, got {_kind(value)}")
    if kinds[-1:] == [...]:
        kinds = kinds[:1] * len(value)
    if len(kinds) != len(value):
        shown = _shown(value)
        raise ValueError(f"{name}={shown}: expected {len(kinds)} entries, got {len(value)}")
    entries = tuple(
        check(f"{name}[{i}]", entry)
        for i, (entry, check) in enumerate(zip(value, kinds, strict=True))
    )
    return value if all(map(operator.is_, entries, value)) else entries


def _plain_integer(name: str, value: Any) -> Any:
    whole = integer(name, value)
    return value if isinstance(value, int) else whole


def _plain_number(name: str, value: Any) -> Any:
    real = number(name, value)
    return value if isinstance(value, int | float) else real


def _test(hint: Any) -> Callable[[Any], bool]:
    """Whether a value is of a class, of a collection, of a tensor with such entries. What cannot be
    asked, such as a type variable, is granted.
    """
    kind = typing.get_origin(hint) or hint
    if hasattr(hint, "array_type"):  # jaxtyping's: dtypes, or a mark that every one will do
        is_array, known = _test(hint.array_type), hint.dtypes

        @functools.cache
        def entries(dtype: Any) -> bool:
            every = not isinstance(known, list | tuple)
            return every or str(dtype).removeprefix("torch.") in known

        return lambda value: is_array(value) and entries(value.dtype)
    if kind is Callable:
        return callable
    protocol = getattr(kind, "_is_protocol", False)
    if not isinstance(kind, type) or (
        protocol and not getattr(kind, "_is_runtime_protocol", False)
    ):
        return lambda value: True
    if issubclass(kind, torch.Tensor):
        return lambda value: isinstance(value, kind) and dense(value)
    # A class is no object of itself, though it has all that a protocol asks for; a text is no
    # sequence of anything but texts, and nothing that a protocol describes.
    others = (
        (type, str, bytes) if (issubclass(kind, Sequence) or protocol) and kind is not str else type
    )
    return lambda value: isinstance(value, kind) and not isinstance(value, others)


_TENSORS = {
    "Float": "a floating-point",
    "Complex": "a complex",
    "Bool": "a bool",
    "Shaped": "a torch",
}


def _words(hint: Any) -> str:
    """What a hint asks for, with its article."""
    if hasattr(hint, "array_type"):
        array = "tensor" if issubclass(hint.array_type, torch.Tensor) else "array"
        entries = hint.dtype.__name__
        return f"{_TENSORS.get(entries, f'an {entries.lower()}')} {array}"
    kind = typing.get_origin(hint) or hint
    if hint is torch.Tensor:
        return "a torch tensor"
    if hint is type(None):
        return "None"
    name = getattr(kind, "__name__", str(hint))
    return f"{_article(name)} {name}"


def dense(x: torch.Tensor) -> bool:
    """Whether a tensor is an array of numbers to compute with: not sparse, not nested, not of 8-bit
    floats.
    """
    short = x.dtype.is_floating_point and x.dtype.itemsize == 1
    return x.layout == torch.strided and not x.is_nested and not short


def _came(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return _kind(value)
    if value.is_nested or value.layout != torch.strided:
        return "a nested tensor" if value.is_nested else f"a tensor of {value.layout}"
    return f"a tensor of {value.dtype}"


def _index(value: Any) -> int | None:
    try:
        return operator.index(value)
    except TypeError:
        return None


def _within(
    name: str,
    value: float,
    low: float | None,
    high: float | None,
    above: float | None,
    below: float | None,
) -> None:
    bounds = {">=": low, "<=": high, ">": above, "<": below}
    holds = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
    if any(bound is not None and not holds[sign](value, bound) for sign, bound in bounds.items()):
        wanted = " and ".join(f"{sign} {b:g}" for sign, b in bounds.items() if b is not None)
        raise ValueError(f"{name}={_shown(value)} must be {wanted}")


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__


def _shown(value: Any) -> str:
    """Short: arrays have nothing to say in a line."""
    try:
        text = "..." if getattr(value, "shape", ()) else repr(value)
    except ValueError:  # more digits than Python writes
        text = "..."
    return text if len(text) <= 60 else f"{text[:57]}..."


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"
