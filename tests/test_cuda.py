import subprocess
import sys
import warnings
from unittest import mock

import pytest
import torch
from torch import Tensor

from spherule import Grid, cuda, ops
from spherule.geometry.filters import Stencil


@pytest.fixture
def without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "TRITON", False)
    cuda._warn.cache_clear()


def on_cuda(dtype: torch.dtype) -> Tensor:
    """What a dispatcher sees of a tensor on a GPU."""
    x = mock.create_autospec(Tensor, instance=True)
    x.device, x.dtype, x.shape = torch.device("cuda"), dtype, torch.Size([1, 1, 4, 8])
    return x


@pytest.mark.skipif(sys.platform != "linux", reason="Triton has wheels for Linux only")
def test_triton_is_there() -> None:
    """Without it the tests of the kernels would skip."""
    assert cuda.TRITON, cuda.kernels()


def test_without_triton_the_reference_takes_over_with_one_warning(without_triton) -> None:
    attention = sys.modules[ops.neighborhood_attention.__module__]
    disco = sys.modules[ops.disco.__module__]
    q = on_cuda(torch.float32)
    with pytest.warns(UserWarning, match="slow reference.*Triton is not installed"):
        assert attention._kernels(q, q) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert attention._kernels(q, q) is None
        assert disco._kernels(q) is disco.reference


def test_float64_stays_on_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "TRITON", True)
    q = on_cuda(torch.float64)
    assert sys.modules[ops.neighborhood_attention.__module__]._kernels(q, q) is None
    disco = sys.modules[ops.disco.__module__]
    assert disco._kernels(q) is disco.reference


def test_cpu_tensors_never_ask_for_triton(without_triton) -> None:
    grid = Grid.gauss(4, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ops.disco(torch.randn(1, 2, 4, 8), torch.randn(3, 2, 9), Stencil.hats(grid))
    assert "spherule.ops.disco.triton_kernels" not in sys.modules


def test_importing_spherule_imports_neither_triton_nor_a_compiler() -> None:
    code = "import sys, spherule; print({'triton', 'torch._dynamo'} & set(sys.modules))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert found.strip() == "set()"
