"""The vocabulary of checks: right values pass, wrong ones are named."""

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spherule import checks


@dataclass(frozen=True)
class Settings:
    kind: Literal["sphere", "plane"] = "sphere"
    count: int = 1
    rate: float = 0.5
    flag: bool = False
    widths: tuple[int, ...] = (1, 2)
    cutoff: float | None = None
    data: Path | None = None

    def __post_init__(self) -> None:
        checks.config(self)


def test_what_fits_is_returned_in_its_own_type() -> None:
    assert checks.integer("n", np.int64(3), low=3, high=3) == 3
    assert checks.number("x", 2, above=1, below=3) == 2.0
    assert type(checks.number("x", np.float32(0.5))) is float
    assert checks.choice("k", "a", ("a", "b")) == "a"
    assert checks.instance("p", Path("x"), Path, str) == Path("x")
    Settings(rate=1, widths=(), cutoff=2, data=Path("a"))


@pytest.mark.parametrize("value", [True, 1.0, "1", None, math.nan, torch.tensor(1), np.array(1)])
def test_what_is_no_integer_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"n=.* must be an integer, got"):
        checks.integer("n", value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match=r"x=.* must be finite"):
        checks.number("x", value)


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_huge_integers_are_refused_in_a_short_line(digits: int) -> None:
    value = 10**digits
    with pytest.raises(ValueError, match=r"^n=.{1,60} must be an integer of 64 bits$"):
        checks.integer("n", value)
    with pytest.raises(ValueError, match=r"^n=.{1,60} must be <= 5$"):
        checks.integer("n", value, high=5)
    if digits > 308:
        with pytest.raises(ValueError, match=r"^x=.{1,60} must be finite$"):
            checks.number("x", value)


def test_numbers_of_numpy_become_pythons() -> None:
    settings = Settings(
        count=np.int8(100),  # type: ignore[arg-type]
        rate=np.float32(0.5),  # type: ignore[arg-type]
        widths=(1, np.int64(2)),  # type: ignore[arg-type]
        cutoff=np.float16(1),  # type: ignore[arg-type]
    )
    values = (settings.count, settings.rate, *settings.widths, settings.cutoff)
    assert [type(value) for value in values] == [int, float, int, int, float]
    assert json.loads(json.dumps(dataclasses.asdict(settings)))["count"] == 100

    @checks.arguments
    def doubled(n: int, *, m: int | None = None) -> tuple[int, int | None]:
        return 2 * n, m and 2 * m

    assert doubled(np.int8(100), m=np.int8(100)) == (200, 200)  # type: ignore[arg-type]


def test_a_shape_is_rows_and_columns() -> None:
    assert checks.shape("size", "128x256") == (128, 256)
    for value in ("128", "0x256", "128x", "x", "1x2x3", "-1x2", " 1x2", "01x2", "1.5x2", "٣x٣"):
        with pytest.raises(ValueError, match=r"size=.*: expected rows and columns, such as"):
            checks.shape("size", value)
    with pytest.raises(TypeError, match="size: expected a str, got tuple"):
        checks.shape("size", (128, 256))


@pytest.mark.parametrize("value", ["1", None, True, 1j, [1.0]])
def test_what_is_no_number_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match=r"x=.* must be a number"):
        checks.number("x", value)


def test_bounds_are_named_and_open_ones_exclude() -> None:
    with pytest.raises(ValueError, match=r"n=0 must be >= 1 and <= 4"):
        checks.integer("n", 0, low=1, high=4)
    for value in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"must be > 0 and < 1"):
            checks.number("x", value, above=0, below=1)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("kind", "Sphere", r"kind='Sphere' is not one of 'sphere', 'plane'"),
        ("kind", None, r"kind=None is not one of"),
        ("count", 1.5, r"count=1.5 must be an integer, got float"),
        ("count", True, r"count=True must be an integer, got bool"),
        ("rate", "0.5", r"rate='0.5' must be a number, got str"),
        ("rate", math.nan, r"rate=nan must be finite"),
        ("flag", 1, r"flag=1 must be a bool, got int"),
        ("widths", [1], r"widths=\[1\] must be a tuple, got list"),
        ("widths", (1, "2"), r"widths\[1\]='2' must be an integer, got str"),
        ("cutoff", "far", r"cutoff='far' must be a number"),
        ("data", 3, r"data: expected a Path, got int"),
    ],
)
def test_a_config_refuses_what_its_annotations_do_not_say(
    field: str, value: object, words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        Settings(**{field: value})  # type: ignore[arg-type]


@checks.arguments
def scaled(
    x: Float[Tensor, "..."], count: int, *, mask: Bool[Tensor, "..."] | None = None, name: str = ""
) -> Tensor:
    return x * count


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": torch.ones(2).long()}, r"x: expected a floating-point tensor, got a tensor of .*64"),
        ({"x": [1.0]}, "x: expected a floating-point tensor, got list"),
        ({"x": torch.ones(2).to_sparse()}, "x: expected a floating-point tensor"),
        ({"count": 2.0}, "count=2.0 must be an integer, got float"),
        ({"mask": torch.ones(2)}, "mask: expected a bool tensor"),
        ({"name": 3}, "name=3 must be a str, got int"),
    ],
)
def test_arguments_are_what_their_annotations_say(arguments: dict, words: str) -> None:
    right = {"x": torch.ones(2), "count": 2, "mask": torch.ones(2) > 0}
    assert scaled(torch.ones(2), 3, mask=None).tolist() == [3, 3]
    assert scaled(**right).tolist() == [2, 2]
    with pytest.raises(TypeError, match=words):
        scaled(**(right | arguments))


def test_unions_are_tried_in_their_own_order() -> None:
    @checks.arguments
    def whole_first(x: int | float) -> object:
        return x

    @checks.arguments
    def real_first(x: float | int) -> object:
        return x

    assert [type(f(np.int8(3))) for f in (whole_first, real_first)] == [int, float]
