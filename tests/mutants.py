"""make mutants: does a test fail when a line is wrong?

    python tests/mutants.py [--count 200] [--seed 0] [--package ops nn]

Each mutant is the tree with one token of one line changed: an operator, a comparison, a constant,
a `not` that is dropped. In a copy of the tree it runs the tests that know its file best; those of
csrc are built first. What survives is a test that is missing, or a line that is. Results are kept
in build/mutants: what was killed is not tried again while its file is the same, so a run may be
stopped at any time and goes on where it was.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import tokenize
import traceback
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
SOURCE = Path("src/spherule")
SWAPS = {
    "+": "-",
    "-": "+",
    "*": "/",
    "/": "*",
    "//": "/",
    "**": "*",
    "@": "*",
    "%": "*",
    "<": "<=",
    "<=": "<",
    ">": ">=",
    ">=": ">",
    "==": "!=",
    "!=": "==",
    "and": "or",
    "or": "and",
    "not": "",
    "True": "False",
    "False": "True",
    "0": "1",
    "1": "2",
    "2": "3",
    "0.0": "1.0",
    "1.0": "0.5",
    "0.5": "1.0",
    "min": "max",
    "max": "min",
    "sin": "cos",
    "cos": "sin",
    "&&": "||",
    "||": "&&",
}
# What draws and prints is left out: people look at it. So are ranks: their tests start processes,
# minutes a mutant.
PACKAGES = ["grids", "geometry", "ops", "nn", "objectives", "pde", "rooms", "models", "data"]
PACKAGES += ["train", "tasks", "runs", "csrc"]
NATIVE = ["native/test_library", "ops/test_neighborhood_attention", "ops/test_free_rings"]
NATIVE += ["ops/test_disco", "ops/test_arguments"]
FILES = 8  # of tests for a mutant
TEST_SECONDS, SECONDS = 240, 480
"""A test that takes so long hangs: the mutant is killed. One that is alive at the end survives."""
COMPILE = ["-std=gnu++17", "-O1", "-fopenmp", "-fPIC", "-fno-math-errno", "-fno-exceptions"]
COMPILE += ["-fno-rtti", "-w", "-fvisibility=hidden", "-DSPHERULE_ISA=baseline"]


class Mutant(NamedTuple):
    path: Path
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        place = f"{self.path.relative_to(SOURCE)}:{self.line}:{self.column}"
        return f"{place}: {self.old.strip()!r} -> {self.new.strip()!r}"

    def text(self, original: str) -> str:
        lines = original.splitlines(keepends=True)
        line = lines[self.line - 1]
        rest = line[self.column + len(self.old) :]
        lines[self.line - 1] = line[: self.column] + self.new + rest
        return "".join(lines)


def mutants(root: Path, path: Path) -> list[Mutant]:
    """All of a file: tokens of code, none of strings, comments or signatures' markers."""
    text = (root / path).read_text()
    found: list[Mutant] = []
    if path.suffix != ".py":
        for number, line in enumerate(text.splitlines(), 1):
            code = line.split("//")[0]
            if code.lstrip().startswith(("#", "*")) or '"' in code:
                continue
            for old in (" + ", " - ", " * ", " < ", " <= ", " > ", " >= ", " == ", " && ", " || "):
                if (column := code.find(old)) >= 0:
                    found.append(Mutant(path, number, column, old, f" {SWAPS[old.strip()]} "))
        return found
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        (line, column), old = token.start, token.string
        if old not in SWAPS or token.type == tokenize.STRING or "import" in token.line:
            continue
        unary = (
            token.type == tokenize.OP and before.string in "([{,=:"
        ) or before.string == "return"
        separator = old in "*/" and after.string in ",)"
        decorator = token.line.lstrip().startswith("@")
        if not (unary and old in "+-*@**") and not separator and not decorator:
            found.append(Mutant(path, line, column, old, SWAPS[old]))
    return found


def drawn(root: Path, count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """As many of each package, in turns."""
    groups = []
    for package in packages:
        files = sorted(
            p for s in ("py", "h", "cpp") for p in (root / SOURCE / package).rglob(f"*.{s}")
        )
        files = [p for p in files if "triton" not in p.stem and p.stem != "gpu"]  # need a GPU
        group = [mutant for path in files for mutant in mutants(root, path.relative_to(root))]
        random.Random(f"{seed} {package}").shuffle(group)
        groups.append(group)
    longest = max(map(len, groups))
    turns = [group[i] for i in range(longest) for group in groups if i < len(group)]
    return turns[:count]


def tests_of(root: Path, path: Path) -> list[str]:
    """Files of tests, first the one of the same name, then those that say most of its names."""
    package, *parts = path.relative_to(SOURCE).with_suffix("").parts
    if package == "csrc":
        return [f"tests/{name}.py" for name in NATIVE]
    source = (root / path).read_text()
    names = set(re.findall(r"^\s*(?:def|class) ([a-zA-Z]\w{3,})", source, re.M))
    names |= set(re.findall(r"^([A-Z][A-Z_]{3,}) =", source, re.M))
    names |= {part for part in parts if part != "__init__"} or {package}
    scores = {}
    for test in sorted((root / "tests").glob("*/test_*.py")):
        folder = test.parent.name
        if folder in ("browser", "distributed", "gpu"):
            continue
        text = test.read_text()
        said = sum(bool(re.search(rf"\b{name}\b", text)) for name in names)
        own = any(test.stem == f"test_{part}" for part in parts) and folder == package
        score = 100 * own + said + 3 * (folder == package)
        if said or folder == package:
            scores[f"tests/{folder}/{test.name}"] = score
    return sorted(scores, key=lambda test: -scores[test])[:FILES]


class Tree:
    """A copy of the sources and tests in which one line at a time is wrong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.sound: dict[str, bool] = {}
        shutil.rmtree(directory, ignore_errors=True)
        leave = shutil.ignore_patterns(
            ".venv", "build", "dist", "out", ".git", "__pycache__", "results"
        )
        shutil.copytree(ROOT, directory, ignore=leave, symlinks=True)
        for library in (directory / SOURCE).glob("_spherule*"):
            library.unlink()
        self.build(sorted((directory / SOURCE / "csrc").glob("*.cpp")))

    def build(self, sources: list[Path]) -> bool:
        """The native library, of which these files are compiled anew; whether they could be."""
        objects = self.directory / "build"
        objects.mkdir(exist_ok=True)
        for source in sources:
            out = objects / f"{source.stem}.o"
            if subprocess.run(["c++", *COMPILE, "-c", source, "-o", out], **SILENT).returncode:
                return False
        library = self.directory / SOURCE / "_spherule.so"
        library.unlink(missing_ok=True)
        link = ["c++", "-shared", "-fopenmp", *objects.glob("*.o"), "-o", library]
        return not subprocess.run(link, **SILENT).returncode

    def users(self, path: Path) -> list[Path]:
        """The files to compile after a change in one of csrc."""
        sources = sorted((self.directory / SOURCE / "csrc").glob("*.cpp"))
        needed = (
            subprocess.run(["c++", "-MM", s], capture_output=True, text=True).stdout
            for s in sources
        )
        return [s for s, files in zip(sources, needed, strict=True) if f"/{path.name}" in files]

    def kills(self, mutant: Mutant) -> bool:
        tests = tests_of(self.directory, mutant.path)
        while (failed := self.with_mutant(mutant, tests)) is not None:
            if self.is_sound(failed):
                return True
        return False

    def with_mutant(self, mutant: Mutant, tests: list[str]) -> str | None:
        """The first test that fails."""
        place = self.directory / mutant.path
        original = place.read_text()
        stale = [] if mutant.path.suffix == ".py" else self.users(mutant.path)
        try:
            place.write_text(mutant.text(original))
            if stale and not self.build(stale):
                return ""
            return self.failing(tests)
        finally:
            place.write_text(original)
            if stale:
                self.build(stale)

    def failing(self, tests: list[str]) -> str | None:
        """The first test that fails, if any does; "" where the process ended or a test hung.

        They run in a fork of this process, which has everything but the package imported.
        """
        log = self.directory / "build" / "tests.log"
        child = os.fork()
        if not child:
            code = 1
            try:
                left_out = [test for test, sound in self.sound.items() if not sound]
                code = run_tests(self.directory, tests, left_out, log)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(code)
        try:
            _, status = os.waitpid(child, 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # what its tests have started
        if status == 0:
            return None
        failure = re.search(r"^(?:FAILED|ERROR) (tests/\S+(?:\[.*?\])?)", log.read_text(), re.M)
        if failure is None and os.WIFEXITED(status):
            raise RuntimeError(f"no tests were run:\n{log.read_text()[-3000:]}")
        return failure[1] if failure else ""

    def is_sound(self, test: str) -> bool:
        """Whether a test passes where nothing is wrong: else it tells nothing, here and later."""
        if test and test not in self.sound:
            self.sound[test] = self.failing([test]) is None
            if not self.sound[test]:
                print(f"left out: {test} fails without any mutant", flush=True)
        return self.sound.get(test, True)


SILENT: Any = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


class Limits:
    """A plugin of pytest: a test that hangs ends the process, and no test starts late."""

    def __init__(self) -> None:
        self.end = time.monotonic() + SECONDS

    def pytest_runtest_setup(self) -> None:
        import pytest

        signal.alarm(TEST_SECONDS)
        if time.monotonic() > self.end:
            pytest.exit("no test has failed so far", returncode=0)


def run_tests(tree: Path, tests: list[str], left_out: list[str], log: Path) -> int:
    import pytest

    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": f"{tree / 'src'}", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(tree / "src"), str(tree)]
    # An editable installation answers first, with the sources that are right.
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
    sys.dont_write_bytecode = True  # a second is too coarse to tell two mutants apart
    options = ["-q", "-x", "-n", "0", "-m", "not slow and not browser", "-p", "no:cacheprovider"]
    options += [f"--deselect={test}" for test in left_out]
    return int(pytest.main([*options, *tests], plugins=[Limits()]))


class Results:
    """What has become of each mutant, a line each."""

    def __init__(self, path: Path, tree: Path) -> None:
        self.path, self.tree = path, tree
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = path.read_text().splitlines() if path.exists() else []
        self.killed = {(r["mutant"], r["file"]) for r in map(json.loads, lines) if r["killed"]}

    def key(self, mutant: Mutant) -> tuple[str, str]:
        return str(mutant), hashlib.sha256((self.tree / mutant.path).read_bytes()).hexdigest()[:12]

    def add(self, mutant: Mutant, killed: bool) -> None:
        name, file = self.key(mutant)
        with self.path.open("a") as file_of_results:
            line = {"mutant": name, "file": file, "killed": killed}
            file_of_results.write(json.dumps(line) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", nargs="+", choices=PACKAGES, default=PACKAGES)
    options = parser.parse_args()
    kept = ROOT / "build" / "mutants"
    tree = Tree(kept / f"tree-{os.getpid()}")
    chosen = drawn(tree.directory, options.count, options.seed, options.package)
    results = Results(kept / "results.jsonl", tree.directory)
    import matplotlib  # noqa: F401  (what takes long is imported once, before the forks)
    import scipy.special  # noqa: F401
    import torch._dynamo  # noqa: F401

    survived = []
    try:
        for mutant in chosen:
            if results.key(mutant) in results.killed:
                continue
            start = time.monotonic()
            killed = tree.kills(mutant)
            results.add(mutant, killed)
            word = "killed  " if killed else "SURVIVED"
            print(f"{word} {mutant} ({time.monotonic() - start:.0f} s)", flush=True)
            if not killed:
                survived.append(mutant)
    finally:
        shutil.rmtree(tree.directory, ignore_errors=True)
    print(f"{len(chosen) - len(survived)} of {len(chosen)} killed; survivors:", *survived, sep="\n")
    sys.exit(len(survived) > 0.1 * len(chosen))


if __name__ == "__main__":
    main()
