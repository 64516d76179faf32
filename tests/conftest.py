"""Shapes and types in signatures are checked while tests run."""

from pathlib import Path

from spherule.threads import spin_briefly

spin_briefly()  # before torch

from jaxtyping import install_import_hook  # noqa: E402

import tests.signatures  # noqa: E402, F401  (the hook looks it up by name)

install_import_hook("spherule", "tests.signatures.checked")

import jaxtyping  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("spherule", deadline=None, derandomize=True)
settings.load_profile("spherule")


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


@pytest.fixture
def little_memory():
    """Four gigabytes more than there is: sizes from outside must not fill the machine."""
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_AS)
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except FileNotFoundError:  # not Linux
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + 2**32, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, limits)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory):
    """A run that nothing disturbed."""
    from spherule.runs import train
    from tests.tiny import silent, tiny

    torch.set_num_threads(1)  # before the fixture that does it for tests
    return train(tiny(), tmp_path_factory.mktemp("finished") / "run", log=silent)
