"""Files that no program reads here say what pyproject.toml and the Makefile say."""

import re
import sys
from pathlib import Path

import pytest

import spherule
from spherule import native

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def text(name: str) -> str:
    return (ROOT / name).read_text()


def bounds() -> dict[str, str]:
    """What the package asks for at least."""
    (block,) = re.findall(r"^dependencies = \[(.*?)^\]", text("pyproject.toml"), re.M | re.S)
    return dict(re.findall(r'"([\w-]+)>=([\d.]+)"', block))


def test_types_go_with_the_package() -> None:
    assert (Path(spherule.__file__).parent / "py.typed").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc is Linux's")
def test_the_library_asks_for_no_newer_glibc_than_wheels_for_old_systems_may() -> None:
    library, _ = native.load()
    assert library is not None
    asked = re.findall(rb"GLIBC_2\.(\d+)", Path(library._name).read_bytes())
    assert max(int(version) for version in asked) <= 17


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_run_targets_of_the_makefile_only(workflow: Path) -> None:
    targets = re.findall(r"^([\w-]+):(?!=)", text("Makefile"), re.MULTILINE)
    runs = re.findall(r"\brun: (.*)", workflow.read_text())
    assert runs
    for run in runs:
        program, target, *_ = run.split()
        assert program == "make"
        assert target in targets


def test_conda_recipe_has_the_version_and_the_bounds() -> None:
    recipe = text("packaging/conda/recipe.yaml")
    (version,) = re.findall(r'^version = "(.*)"', text("pyproject.toml"), re.MULTILINE)
    assert f"version: {version}\n" in recipe
    for name, bound in bounds().items():
        assert f"- {'pytorch' if name == 'torch' else name} >={bound}\n" in recipe


def test_oldest_environment_has_the_lower_bounds() -> None:
    pins = dict(re.findall(r"^(\w+)==([\d.]+)", text("packaging/oldest.txt"), re.MULTILINE))
    assert pins.keys() == {"torch", "numpy"}
    assert all(pin.startswith(bounds()[name] + ".") for name, pin in pins.items())
