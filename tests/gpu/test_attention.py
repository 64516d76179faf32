from concurrent.futures import ProcessPoolExecutor

import pytest

from tests.gpu import worker
from tests.gpu.worker import Attention

EVERY_DAY = [
    Attention("gauss:3x5", "gauss:3x5", 1.3, value_dim=5, mask="batches", batch=2),
    Attention("equiangular:4x9", "fejer:3x7@0.5", 1.2, 0.3, dim=3, value_dim=20, dtype="fp16"),
    Attention("H1", "O2", 1.2, dim=17, dtype="bf16", channels_first=True, weighted=False),
    Attention("4x9 3x5", dim=8, value_dim=16, mask="points"),
    Attention("clenshaw_curtis:3x18", "clenshaw_curtis:3x18", 1.6, most=0.3),
]
ALL = [
    # Grids of all kinds, with poles and without, odd sizes, offsets.
    *(
        Attention(g, g, cutoff, dim=8, value_dim=8, dtype=dtype)
        for g, cutoff in [
            ("gauss:5x10", 1.2),
            ("gauss:4x13@0.25", 1.4),
            ("clenshaw_curtis:5x9", 1.2),
            ("equiangular:5x7", 1.3),
            ("fejer:5x3", 1.5),
            ("lobatto:4x24", 1.5),
            ("H2", 0.9),
            ("O2", 1.2),
        ]
        for dtype in ("fp32", "fp16")
    ),
    # From one resolution to another: nothing divides.
    Attention("gauss:4x8", "gauss:6x18", 0.9, dtype="bf16"),
    Attention("gauss:6x18", "gauss:4x8", 1.2, dtype="fp16", mask="points"),
    Attention("H2", "gauss:3x7", 1.4, 0.5, mask="points"),
    Attention("gauss:3x7", "H2", 1.2, 0.5, dtype="bf16"),
    Attention("O3", "H1", 1.5),
    Attention("fejer:3x16@0.5", "equiangular:4x12", 1.3),
    # Arcs that are whole rings, the whole sphere, a single ring of keys.
    Attention("gauss:3x40", "gauss:3x40", 3.14159),
    Attention("lobatto:4x5", "lobatto:4x5", 2.0, 0.8),
    Attention("clenshaw_curtis:3x34", "gauss:2x3", 1.9),
    # Dimensions.
    Attention("gauss:3x6", "gauss:3x6", 1.3, dim=1, value_dim=1),
    Attention("gauss:3x6", "gauss:3x6", 1.3, dim=40, value_dim=7, dtype="bf16"),
    Attention("gauss:3x6", "gauss:3x6", 1.3, dim=128, value_dim=128, dtype="fp16"),
    Attention("gauss:3x6", "gauss:3x6", 1.3, dim=256, value_dim=256),
    Attention("gauss:3x6", "gauss:3x6", 1.3, dim=33, value_dim=130, dtype="bf16"),
    # Soft edges.
    Attention("gauss:4x9", "gauss:4x9", 1.0, 0.5, mask="batches", batch=2),
    Attention("H2", "H2", 0.8, 0.4, dtype="fp16"),
    Attention("O2", "O2", 1.2, 1.0, weighted=False),
    # Planes.
    Attention("7x20 5x7", dtype="fp16", heads=2),
    Attention("3x1 3x3", dim=5),
    Attention("6x9 3x3", dtype="bf16", mask="batches", batch=2),
    # Larger tiles, split tiles, layouts, several heads.
    Attention("gauss:4x40", "gauss:4x40", 1.0, tile=(32, 32), dtype="fp16"),
    Attention("gauss:3x70", "gauss:3x70", 1.4, tile=(64, 32)),
    Attention("gauss:3x70", "gauss:3x70", 1.4, 0.4, most=0.5, dtype="bf16", mask="points"),
    Attention("equiangular:6x40", "equiangular:6x40", 0.7, most=0.5, channels_first=True),
    Attention("gauss:3x8", "gauss:3x8", 1.3, heads=3, batch=2, channels_first=True, dtype="fp16"),
]


def check(case: Attention, interpreter: ProcessPoolExecutor) -> None:
    for name, (error, limit) in interpreter.submit(worker.attention, case).result().items():
        assert error <= limit, f"{name}: error {error:.2e} above {limit:.2e}"


@pytest.mark.parametrize("case", EVERY_DAY, ids=str)
def test_kernel_matches_reference_in_value_and_gradients(case, interpreter) -> None:
    check(case, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_kernel_matches_reference_on_all_shapes(case, interpreter) -> None:
    check(case, interpreter)


def test_masked_keys_have_no_influence_even_as_nan(interpreter) -> None:
    case = Attention("gauss:2x4", "gauss:2x4", 1.8, dim=4, value_dim=4, mask="points")
    assert interpreter.submit(worker.masked_nans, case).result()


def test_operator_on_kernels_is_registered_as_torch_expects(interpreter) -> None:
    case = Attention("H1", "gauss:2x5", 1.7, dim=3, value_dim=4, channels_first=True)
    interpreter.submit(worker.operator, case).result()
