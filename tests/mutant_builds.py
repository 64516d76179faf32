"""What is built of csrc for its mutants: the library that tests load, and the program of `make
sanitize`, which sees what is read or written beyond an end.
"""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Any

CSRC, DRIVERS = Path("src/spherule/csrc"), Path("tests/native")
COMMON = ["-std=gnu++17", "-O1", "-fopenmp", "-w", "-DSPHERULE_ISA=baseline"]
LIBRARY = ["-fPIC", "-fno-math-errno", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden"]
SANITIZED = ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
SILENT: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
SECONDS = 300


class Build:
    """A library or a program, of which single files can be compiled anew."""

    def __init__(self, root: Path, out: Path, drivers: str, compiled: list[str], linked: list[str]):
        sources = [*sorted((root / CSRC).glob("*.cpp")), *sorted((root / DRIVERS).glob(drivers))]
        self.out, self.linked = out, linked
        self.compile = ["c++", *COMMON, *compiled, f"-I{root / CSRC}"]
        self.scratch = out.parent / f"{out.name}-anew"
        text = b"".join(p.read_bytes() for s in sources for p in sorted(s.parent.glob("*.*")))
        digest = hashlib.sha256(text).hexdigest()[:12]
        self.kept = out.parent / f"{out.name}-{digest}"
        if not (self.kept / out.name).exists():
            if not self._make(sources, self.kept):
                raise RuntimeError(f"{out.name} can't be built")
            shutil.move(out, self.kept / out.name)
        self.restore()

    def anew(self, sources: list[Path]) -> bool:
        """With these files as they are now; whether that could be built."""
        try:
            return self._make(sources, self.scratch)
        finally:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def restore(self) -> None:
        self.out.unlink(missing_ok=True)
        shutil.copy(self.kept / self.out.name, self.out)

    def _make(self, sources: list[Path], place: Path) -> bool:
        place.mkdir(exist_ok=True)
        for source in sources:
            what = ["-c", str(source), "-o", str(place / f"{source.stem}.o")]
            if subprocess.run([*self.compile, *what], **SILENT).returncode:
                return False
        objects = {o.name: o for p in (self.kept, place) for o in p.glob("*.o")}
        self.out.unlink(missing_ok=True)
        link = ["c++", "-fopenmp", *self.linked, *map(str, objects.values()), "-o", str(self.out)]
        return not subprocess.run(link, **SILENT).returncode


def library(root: Path, out: Path) -> Build:
    return Build(root, out, "-", LIBRARY, ["-shared"])


def sanitizer(root: Path, out: Path) -> Build:
    return Build(root, out, "sanitize*.cpp", SANITIZED, SANITIZED)


def passes(program: Path) -> bool:
    """Whether a program ends well, and soon."""
    try:
        return not subprocess.run([program], timeout=SECONDS, **SILENT).returncode
    except subprocess.TimeoutExpired:
        return False
