"""Shapes and types in signatures are checked while tests run."""

import sys
from collections.abc import Iterator

from jaxtyping import install_import_hook

import tests.signatures  # noqa: F401  (the hook looks it up by name)

install_import_hook("spherule", "tests.signatures.checked")

import jaxtyping  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("spherule", deadline=None, derandomize=True)
settings.load_profile("spherule")


def _skipped_without_zarr() -> Iterator[None]:
    """Zarr 3 has no release for Python 3.10: what needs it is skipped there, and only there."""
    try:
        return (yield)
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None and getattr(cause, "name", None) != "zarr":
            cause = cause.__cause__ or cause.__context__
        if cause is not None and sys.version_info < (3, 11):
            pytest.skip("Zarr 3 needs Python 3.11")
        raise


pytest_runtest_setup = pytest_runtest_call = pytest.hookimpl(wrapper=True)(_skipped_without_zarr)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)
    # Tests run side by side: threads of small products would wait for each other.
    torch.set_num_threads(1)


@pytest.fixture
def unchecked():
    """Signature checks off: what users get when their input does not fit."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory):
    """A run that nothing disturbed."""
    from spherule.runs import train
    from tests.tiny import silent, tiny

    torch.set_num_threads(1)  # before the fixture that does it for tests
    return train(tiny(), tmp_path_factory.mktemp("finished") / "run", log=silent)
