"""What arguments must be: one vocabulary of checks for the public surface.

Each returns the value in the type that it stands for, or raises a TypeError or ValueError that
names the argument, what came and what was expected.
"""

import dataclasses
import math
import numbers
import operator
import re
import types
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal, TypeVar

Value = TypeVar("Value")


def integer(name: str, value: Any, *, low: int | None = None, high: int | None = None) -> int:
    """A whole number in [low, high]; a bool is none."""
    if isinstance(value, bool):
        raise TypeError(f"{name}={value!r} must be an integer, got bool")
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}={value!r} must be an integer, got {_kind(value)}") from None
    _within(name, whole, low, high, None, None)
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
        raise TypeError(f"{name}={value!r} must be a number, got {_kind(value)}")
    real = float(value)
    if not math.isfinite(real):
        raise ValueError(f"{name}={real} must be finite")
    _within(name, real, low, high, above, below)
    return real


def choice(name: str, value: Value, choices: Collection[Any]) -> Value:
    """One of these; another spelling is another value."""
    if not any(value is c or (type(value) is type(c) and value == c) for c in choices):
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name}={value!r} is not one of {known}")
    return value


def instance(name: str, value: Any, *kinds: type[Value]) -> Value:
    """An object of one of these classes."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{name}: expected {_article(wanted)} {wanted}, got {_kind(value)}")
    return value


def shape(name: str, value: Any) -> tuple[int, int]:
    """Rows and columns of a text such as 128x256."""
    sizes = re.fullmatch(r"([1-9][0-9]*)x([1-9][0-9]*)", instance(name, value, str))
    if sizes is None:
        raise ValueError(f"{name}={value!r}: expected rows and columns, such as 128x256")
    return int(sizes[1]), int(sizes[2])


def config(values: Any) -> None:
    """Every field of a dataclass is what its annotation says: literals, numbers, texts, tuples."""
    hints = typing.get_type_hints(type(values))
    for field in dataclasses.fields(values):
        _annotated(field.name, getattr(values, field.name), hints[field.name])


def _annotated(name: str, value: Any, hint: Any) -> None:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        choice(name, value, inner)
    elif origin in (typing.Union, types.UnionType):
        if type(None) not in inner or value is not None:
            rest = [kind for kind in inner if kind is not type(None)]
            if len(rest) == 1:
                _annotated(name, value, rest[0])
            elif not any(_fits(name, value, kind) for kind in rest):
                raise TypeError(f"{name}={value!r}: expected {hint}, got {_kind(value)}")
    elif origin is tuple:
        if not isinstance(value, tuple):
            raise TypeError(f"{name}={value!r} must be a tuple, got {_kind(value)}")
        kinds = [inner[0]] * len(value) if inner[-1:] == (...,) else inner
        if len(kinds) != len(value):
            raise ValueError(f"{name}={value!r}: expected {len(kinds)} entries, got {len(value)}")
        for i, (entry, kind) in enumerate(zip(value, kinds, strict=True)):
            _annotated(f"{name}[{i}]", entry, kind)
    elif hint is int:
        integer(name, value)
    elif hint is float:
        number(name, value)
    elif hint in (bool, str, Path) and not isinstance(value, hint):
        raise TypeError(f"{name}={value!r} must be a {hint.__name__}, got {_kind(value)}")


def _fits(name: str, value: Any, hint: Any) -> bool:
    try:
        _annotated(name, value, hint)
    except (TypeError, ValueError):
        return False
    return True


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
        raise ValueError(f"{name}={value} must be {wanted}")


def _kind(value: Any) -> str:
    return type(value).__name__


def _article(word: str) -> str:
    return "an" if word[:1].lower() in "aeiou" else "a"
