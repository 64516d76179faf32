"""What may be given for a parameter: values that fit it, and values that don't, by kind."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from spherule import Grid

GRID = Grid.gauss(8, 16)
Call = tuple[Callable[..., Any], dict[str, "Kind"]]
"""What is called, and what may be given for its parameters."""


class Kind(NamedTuple):
    right: tuple[Any, ...]
    wrong: tuple[Any, ...]

    def optional(self) -> "Kind":
        return Kind((*self.right, None), tuple(v for v in self.wrong if v is not None))

    def but(self, *right: Any) -> "Kind":
        """With other values that fit."""
        return Kind(right, self.wrong)


NOTHING: tuple[Any, ...] = (None, "a word", [1, 2], {}, object(), 1j, slice(3))


def count(low: int, *right: int, high: int | None = None) -> Kind:
    bad = (True, 2.5, math.nan, math.inf, "3", np.float64(2), low - 1, -(10**30), torch.ones(2))
    bad += (10**30, 10**3000, np.uint64(2**63), torch.tensor(low), np.array(low))
    return Kind(right or (low,), (*bad, *NOTHING, *(() if high is None else (high + 1,))))


def real(*right: float, beyond: tuple[float, ...] = ()) -> Kind:
    """`beyond` are the numbers that are out of range."""
    bad = (True, "1.5", math.nan, math.inf, -math.inf, 10**400, -(10**3000), torch.tensor(0.5))
    return Kind(right, (*bad, *beyond, *NOTHING))


def tensor(*right: Tensor, leading: bool = True, alone: bool = False, grid: bool = True) -> Kind:
    """Floats or complex numbers, of whose shape nothing may change; unless `leading`, dimensions
    before it may, and unless on a `grid`, the points. Where it is not `alone`, others are on the
    CPU.
    """
    x = right[0]
    other = x.real if x.is_complex() else x.to(torch.complex64)
    bad = [x.real.long(), x.real > 0, other, x.new_tensor(1.0), 1.5]
    bad += [x.tolist(), x.numpy(), torch.nonzero(x.real > 0), x.real.to(torch.uint8)]
    bad += [x.to_sparse()]
    if not x.is_complex() and x.ndim > 1:
        bad += [x.to(torch.float8_e4m3fn), torch.nested.nested_tensor(list(x), layout=torch.jagged)]
    if grid:
        bad += [x[..., :0], x[..., :-1]]
    if grid and x.shape[-1:] != x.shape[-2:-1] and x.ndim > 1:
        bad.append(x.mT)
    if not alone:
        bad.append(x.to("meta"))
    if leading:
        bad += [x[None], x[0]]
    return Kind(right, (*bad, *NOTHING))


def mask(*right: Tensor) -> Kind:
    x = right[0]
    bad = [x.float(), x.long(), torch.nonzero(x), torch.nonzero(x.flatten())[:, 0], x[..., :-1]]
    bad += [torch.tensor(True), x.numpy(), x.tolist(), x.to("meta"), x[..., :0], "mask"]
    return Kind((None, *right), (*bad, *([x.mT] if x.ndim > 1 else [])))


def labels(*right: Tensor) -> Kind:
    x = right[0]
    bad = (x.float(), x > 0, x.int(), x + 100, x - 100, x.mT, x[0], x[:, None], x.numpy())
    return Kind(right, (*bad, x.to("meta"), torch.tensor(1), *NOTHING))


def array(*right: Any) -> Kind:
    """Numbers of a fixed shape, as lists or in numpy."""
    x = np.asarray(right[0])
    bad = (x * math.nan, x + 1j, x[..., :0], x[None, None], x[:-1], [["a"]], [[1.0], [1.0, 2.0]])
    return Kind(right, (*bad, x.astype(str), 1e30 * x, *(v for v in NOTHING if v is not None), ()))


def choice(*right: Any) -> Kind:
    bad = tuple(v.upper() for v in right if isinstance(v, str))
    return Kind(right, (*bad, "", 0, 1.5, b"x", ("a",), *NOTHING))


FLAG = Kind((True, False), (None, 0, 1, "True", "", 1.0, [], math.nan))
WORD = Kind(("a name",), (0, 1.5, b"x", ("a",), None, [1], object()))
GRIDS = Kind((GRID,), ("gauss:8x16", GRID.name, (8, 16), 8, torch.ones(8, 16), Grid, *NOTHING))
NAMES = Kind(
    ("gauss:8x16", "fejer:6x12@0.5", "H2", "O3", "clenshaw_curtis:5x8"),
    (
        *("", "gauss", "gauss:8", "gauss:8x", "gauss:0x4", "gauss:-8x16", "Gauss:8x16", "H0"),
        *(
            "gauss:8x16@1.5",
            "gauss:8x16@",
            "gauss:8x16@1.2.3",
            "H",
            "N7",
            "rings:00",
            "gauss:8x16 ",
        ),
        *("gauss:999999999x2", "H999999999", "O99999999", "gauss:2x9999999999", "fejer:٣x٤"),
        *(8, (8, 16), b"H2", *(v for v in NOTHING if v != "a word")),
    ),
)
PLACES = Kind(GRIDS.right + NAMES.right[:1], NAMES.wrong)  # a grid or its name
