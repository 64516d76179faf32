"""What only a GPU can show."""

import pytest
import torch

from tests.gpu import device as on_device
from tests.gpu.test_attention import ALL, EVERY_DAY
from tests.gpu.test_disco import ALL as CONVOLUTIONS
from tests.gpu.worker import Attention

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU: there is none"),
]

LARGE = [
    Attention("gauss:64x128", "gauss:64x128", 0.194, dim=32, value_dim=32, heads=2, dtype="bf16"),
    Attention("gauss:64x128", "gauss:64x128", 0.194, dim=128, value_dim=128, dtype="fp16"),
    Attention("gauss:64x128", "gauss:64x128", 0.194, 0.05, dim=64, value_dim=64),
    Attention("H16", "O24", 0.3, dim=64, value_dim=64, dtype="bf16", channels_first=True),
]


def check(found: dict) -> None:
    for name, (error, limit) in found.items():
        assert error <= limit, f"{name}: error {error:.2e} above {limit:.2e}"


@pytest.mark.parametrize("case", [*EVERY_DAY, *ALL, *LARGE], ids=str)
def test_attention_matches_reference(case, device) -> None:
    check(device.submit(on_device.attention, case).result())


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_convolution_matches_reference(case, device) -> None:
    check(device.submit(on_device.convolution, case).result())


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_twice_the_same_gives_the_same_bits(case, device) -> None:
    assert device.submit(on_device.repeated, case).result()


def test_global_attention_takes_the_flash_kernel(device) -> None:
    error, limit = device.submit(on_device.global_attention).result()
    assert error <= limit


def test_layers_compile_and_autocast(device) -> None:
    device.submit(on_device.compiled_layers).result()
