"""Look into a wheel, then install it into a fresh environment of every Python on this machine.

    python packaging/try_wheel.py dist/spherule-*.whl

Where pip has a CPU build of the torch in constraints.txt, `spherule info` and the tests of the
kernels run. Where it has none, what needs no torch: pip takes the wheel, every file compiles, and
the library is found and loads. torch with CUDA is never fetched.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = (3, 10)
KERNEL_TESTS = ["tests/ops/test_neighborhood_attention.py", "tests/ops/test_disco.py"]
LIBRARY = "spherule/_spherule.so"
WITHOUT_TORCH = """
import compileall, ctypes, importlib.machinery, importlib.metadata, pathlib
files = importlib.metadata.files("spherule")
package = pathlib.Path(next(f for f in files if f.name == "py.typed").locate()).parent
assert compileall.compile_dir(str(package), quiet=1), "does not compile"
found = importlib.machinery.PathFinder.find_spec("spherule._spherule", [str(package)])
assert found is not None and found.origin, f"no library in {package}"
library = ctypes.CDLL(found.origin)
library.spherule_isa.restype = ctypes.c_char_p
print("library", library.spherule_isa().decode())
"""


def main(wheel: Path) -> None:
    look_inside(wheel)
    for python in pythons():
        with tempfile.TemporaryDirectory() as directory:
            print(f"== {version(python)}: {try_on(python, wheel, Path(directory))}", flush=True)


def look_inside(wheel: Path) -> None:
    """One wheel for every Python, with license and types, and nothing of the machine it is from."""
    assert "-py3-none-" in wheel.name, f"{wheel.name}: expected the tag py3-none-<platform>"
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        for name in ("spherule/py.typed", LIBRARY):
            assert name in names, f"{wheel.name} has no {name}"
        assert any(n.endswith("licenses/LICENSE") for n in names), f"{wheel.name} has no LICENSE"
        others = [n for n in names if re.search(r"csrc|omp.*\.(so|dylib)|__pycache__|^tests", n)]
        assert not others, f"{wheel.name} should not hold {others}"
        places = re.findall(
            rb"/(?:home|root|tmp|Users|project|build|work)/[\w./-]*", archive.read(LIBRARY)
        )
        assert not places, f"{LIBRARY} names places of the machine it was built on: {places}"


def pythons() -> list[str]:
    """One interpreter a version, from the search path and from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    names = [sys.executable, *(shutil.which(f"python3.{minor}") for minor in range(10, 20))]
    found: dict[tuple[int, ...], str] = {}
    for python in (*filter(None, names), *map(str, pyenv.glob("versions/3.*/bin/python"))):
        number = version(python)
        if number is not None and number[:2] >= OLDEST:
            found.setdefault(number[:2], python)
    return [found[key] for key in sorted(found)]


def version(python: str) -> tuple[int, ...] | None:
    """None for what does not start, such as pyenv's shims of versions that it has not."""
    ask = [python, "-c", "import sys; print(*sys.version_info[:3])"]
    answer = subprocess.run(ask, capture_output=True, text=True, check=False)
    return tuple(map(int, answer.stdout.split())) if answer.returncode == 0 else None


def try_on(python: str, wheel: Path, directory: Path) -> str:
    run(python, "-m", "venv", directory)
    inside = directory / "bin" / "python"
    pip = (inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    if not fetch_torch(pip):
        run(*pip, "--no-deps", wheel)
        return run(inside, "-c", WITHOUT_TORCH, cwd=directory).strip() + "; no CPU torch at hand"
    run(*pip, f"{wheel}[test]", "--constraint", ROOT / "constraints.txt")
    info = run(directory / "bin" / "spherule", "info", cwd=directory)
    assert "native CPU library" in info, info
    assert sys.platform != "linux" or re.search(r"OpenMP\s+1:", info), info
    tests = run(inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", *KERNEL_TESTS, cwd=ROOT)
    return f"{info}{tests.splitlines()[-1]}"


def fetch_torch(pip: tuple[str | Path, ...]) -> bool:
    """Only a build without CUDA: on Linux its version says so, elsewhere there is no other."""
    (pin,) = re.findall(r"^(torch==\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    build = f"{pin}+cpu" if sys.platform == "linux" else pin
    return subprocess.run([*pip, build], stderr=subprocess.DEVNULL, check=False).returncode == 0


def run(*command: str | Path, cwd: Path | None = None) -> str:
    result = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
