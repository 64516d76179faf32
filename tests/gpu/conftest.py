"""Triton looks once, when it is imported, whether to interpret; and the checks of signatures that
tests switch on would wrap its kernels. So kernels run in processes of their own.
"""

import importlib.util
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from tests.gpu import worker


@pytest.fixture(scope="session")
def interpreter() -> Iterator[ProcessPoolExecutor]:
    """A process in which Triton's kernels run on the CPU, one operation at a time."""
    with ProcessPoolExecutor(1, get_context("spawn"), worker.interpret) as pool:
        yield pool


@pytest.fixture(scope="session")
def compiler() -> Iterator[ProcessPoolExecutor]:
    """A process in which Triton compiles."""
    with ProcessPoolExecutor(1, get_context("spawn"), worker.compile_only) as pool:
        yield pool


@pytest.fixture(scope="session")
def device() -> Iterator[ProcessPoolExecutor]:
    """A process with a GPU."""
    with ProcessPoolExecutor(1, get_context("spawn"), worker.poison) as pool:
        yield pool


@pytest.fixture(autouse=True)
def _triton() -> None:
    if importlib.util.find_spec("triton") is None:
        pytest.skip("Triton is not installed")
