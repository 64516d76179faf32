"""Products with sparse matrices: the library beside dense products, and torch's own."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spherule.ops.sparse import SparseMap, cpu, reference, sparse_map


def matrix(rows: int, columns: int, entries: int, dtype: torch.dtype, seed: int = 0) -> SparseMap:
    rng = np.random.default_rng(seed)
    row, column = rng.integers(0, rows, entries), rng.integers(0, columns, entries)
    weight = rng.standard_normal(entries)
    return SparseMap.build(row, column, weight, (rows, columns), dtype, torch.device("cpu"))


def dense(m: SparseMap) -> Tensor:
    rows, columns = m.start.numel() - 1, m.transposed_start.numel() - 1
    whole = torch.zeros(rows, columns, dtype=torch.float64)
    row = torch.repeat_interleave(torch.arange(rows), m.start.diff())
    return whole.index_put_((row, m.column), m.weight.double(), accumulate=True)


@given(
    fields=st.integers(0, 40),
    rows=st.integers(1, 70),
    columns=st.integers(1, 70),
    entries=st.integers(0, 300),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    threads=st.integers(1, 3),
    channels_last=st.booleans(),
)
def test_maps_and_gradients_are_dense_products(
    fields, rows, columns, entries, dtype, threads, channels_last
) -> None:
    m = matrix(rows, columns, entries, dtype)
    x = torch.randn(fields, columns, dtype=dtype)
    x = x.T.contiguous().T if channels_last else x
    torch.set_num_threads(threads)
    x.requires_grad_()
    y, exact = m(x), x.double() @ dense(m).T
    dy = torch.randn_like(y)
    (dx,) = torch.autograd.grad(y, x, dy)
    torch.set_num_threads(1)
    accuracy = 100 * torch.finfo(dtype).eps
    torch.testing.assert_close(y.double(), exact, rtol=accuracy, atol=accuracy)
    wanted = dy.double() @ dense(m)
    torch.testing.assert_close(dx.double(), wanted, rtol=accuracy, atol=accuracy)
    torch.testing.assert_close(reference.sparse_map(x, *m[:3]), y)
    assert torch.equal(cpu.sparse_map(x.detach(), *m[:3]), y)


def test_missing_values_reach_only_the_rows_that_hold_them() -> None:
    m = matrix(50, 30, 200, torch.float32)
    x = torch.randn(5, 30)
    x[2, 7] = torch.nan
    hit = torch.zeros(5, 50, dtype=torch.bool)
    hit[2] = dense(m)[:, 7] != 0
    assert torch.equal(m(x).isnan(), hit)


@pytest.mark.parametrize("autocast", [False, True])
def test_the_library_is_taken_whatever_autocast_says(autocast: bool, monkeypatch) -> None:
    monkeypatch.setattr(reference, "sparse_map", None)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        assert matrix(5, 6, 7, torch.float32)(torch.randn(2, 6)).dtype == torch.float32


@pytest.mark.parametrize("fault", ["backward", "short", "negative", "beyond"])
def test_tables_that_lead_outside_are_refused(fault: str) -> None:
    start, column, weight, *_ = (t.clone() for t in matrix(4, 5, 9, torch.float32))
    if fault == "backward":
        start[1], start[2] = 9, 0
    elif fault == "short":
        start[-1] -= 1
    else:
        column[3] = -1 if fault == "negative" else 5
    with pytest.raises(ValueError, match="spherule_sparse_map"):
        cpu.sparse_map(torch.randn(2, 5), start, column, weight)


def test_compilers_are_told_the_right_shapes() -> None:
    x, m = torch.randn(3, 6, requires_grad=True), matrix(5, 6, 7, torch.float32)
    tests = ("test_schema", "test_faketensor", "test_autograd_registration")
    torch.library.opcheck(sparse_map.overload, (x, *m), test_utils=tests)
