import pytest

from tests.gpu import worker
from tests.gpu.worker import Convolution

EVERY_DAY = [
    Convolution("gauss:3x32", "gauss:2x16", 1, 3, 5),
    Convolution("O2", "gauss:3x5", 2, 4, 1, "bf16"),
]
ALL = [
    Convolution(source, target, *channels, dtype)
    for source, target in [
        ("gauss:6x12", "gauss:6x12"),
        ("gauss:8x32", "gauss:4x16"),
        ("gauss:4x8", "clenshaw_curtis:7x13"),
        ("H2", "H2"),
        ("O4", "gauss:4x9"),
    ]
    for channels, dtype in [((1, 20, 40), "fp32"), ((2, 4, 3), "fp16"), ((4, 4, 1), "fp32")]
] + [
    Convolution("gauss:4x8", "gauss:4x8", 1, 3, 5, batch=2),
    Convolution("gauss:3x16", "gauss:3x48", 2, 4, 3, "fp16"),
    Convolution("gauss:3x16", "gauss:3x48", 4, 4, 1),
]


def check(case: Convolution, interpreter) -> None:
    for name, (error, limit) in interpreter.submit(worker.convolution, case).result().items():
        assert error <= limit, f"{name}: error {error:.2e} above {limit:.2e}"


@pytest.mark.parametrize("case", EVERY_DAY, ids=str)
def test_kernel_matches_reference_in_value_and_gradients(case, interpreter) -> None:
    check(case, interpreter)


@pytest.mark.slow
@pytest.mark.parametrize("case", ALL, ids=str)
def test_kernel_matches_reference_on_all_shapes(case, interpreter) -> None:
    check(case, interpreter)


@pytest.mark.parametrize("groups", [1, 2])
def test_operators_are_registered_as_torch_expects(groups: int, interpreter) -> None:
    interpreter.submit(worker.convolution_operators, groups).result()
