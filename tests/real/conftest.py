"""Where the files are, or why a test of them is skipped."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "build" / "real"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.real)


@pytest.fixture
def real():
    """A real file by package and name; GRIB only where something reads it."""

    def find(package: str, name: str) -> Path:
        path = ROOT / package / name
        if not (ROOT / package).exists():
            pytest.skip(f"{package} is not there: `make test-real` fetches it")
        assert list(path.parent.glob(path.name)), f"{package} has no {name}"
        if ".gr" in path.suffix:
            pytest.importorskip("cfgrib", reason="nothing reads GRIB: cfgrib is not there")
        return path

    return find
