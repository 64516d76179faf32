"""Kernels compiled for GPUs that are not here."""

import pytest

from tests.gpu import worker

pytestmark = pytest.mark.slow

ARCHITECTURES = [80, 90, 100]


def check(compiler, **case) -> None:
    found = compiler.submit(worker.resources, **case).result()
    assert found["tensor_core"] > 0
    assert found["spills"] == found["local"] == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("dtype", ["fp16", "bf16"])
@pytest.mark.parametrize("dim", [32, 64, 128])
@pytest.mark.parametrize("name", ["forward", "backward_queries", "backward_keys"])
def test_all_kernels_run_on_tensor_cores_without_spills(
    name: str, dim: int, dtype: str, architecture: int, compiler
) -> None:
    check(compiler, name=name, dim=dim, dtype=dtype, architecture=architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", ["forward", "backward_queries", "backward_keys"])
def test_soft_edges_and_masks_do_not_spill_either(name: str, architecture: int, compiler) -> None:
    case = {"name": name, "dim": 64, "dtype": "bf16", "architecture": architecture}
    check(compiler, **case, SOFT=True, MASKED=True)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_convolution_runs_on_tensor_cores_without_spills(
    name: str, architecture: int, compiler
) -> None:
    check(compiler, name=name, dim=64, dtype="bf16", architecture=architecture)


@pytest.mark.parametrize(
    ("name", "constants"),
    [
        ("merge", {}),
        ("add_parts", {}),
        ("backward_queries", {"LSE": True, "MASKED": True}),
        ("forward", {"PRECISION": "tf32"}),
        ("backward_keys", {"PRECISION": "tf32", "SOFT": True}),
        ("convolve", {"DEPTHWISE": True}),
        ("correlate", {"DEPTHWISE": True}),
        ("convolve", {"PRECISION": "tf32"}),
        ("convolve", {"SHIFTS": False}),
        ("correlate", {"SHIFTS": False}),
        ("correlate", {"SHIFTS": False, "DEPTHWISE": True}),
        # Numbers that are 1 become constants at a launch.
        ("forward", dict.fromkeys(("batch_heads", "heads", "queries", "parts", "mask_b"), 1)),
        ("backward_queries", dict.fromkeys(("batch_heads", "heads", "parts", "q_n", "k_n"), 1)),
        ("backward_keys", dict.fromkeys(("batch_heads", "heads", "queries", "parts", "dk_n"), 1)),
        ("convolve", dict.fromkeys(("groups", "in_channels", "out_channels"), 1)),
        ("correlate", dict.fromkeys(("batch", "groups", "in_channels", "tiles", "tiles_each"), 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_every_variant_compiles(name: str, constants: dict, dtype: str, compiler) -> None:
    case = {"name": name, "dim": 40, "dtype": dtype, "architecture": 80}
    found = compiler.submit(worker.resources, **case, **constants).result()
    assert found["local"] == 0
