"""make mutants: does a test fail when a line is wrong?

    python tests/mutants.py [--count 200] [--seed 0] [--package ops nn]

Each mutant is the tree with one token of one line changed: an operator, a comparison, a constant,
a `not` that is dropped. In a copy of the tree it runs the tests that know its file best; those of
csrc are built first. What survives is a test that is missing, or a line that is. Results are kept
in build/mutants: a mutant is not tried again while its file is the same and, where it survived, its
tests are; so a run may be stopped at any time and goes on where it was.
"""

import argparse
import contextlib
import hashlib
import importlib
import inspect
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
TEST_SECONDS, SECONDS, WAITED = 60, 90, 600
"""A test that computes so long, or waits so long, hangs: the mutant is killed. One that is alive
at the end survives.
"""
COMPILE = ["-std=gnu++17", "-O1", "-fopenmp", "-fPIC", "-fno-math-errno", "-fno-exceptions"]
COMPILE += ["-fno-rtti", "-w", "-fvisibility=hidden", "-DSPHERULE_ISA=baseline"]


# What takes long is imported once, before the forks.
SLOW_IMPORTS = ["matplotlib.pyplot", "scipy.special", "torch._dynamo", "beartype", "jaxtyping"]
SLOW_IMPORTS += ["hypothesis.extra.numpy", "xarray", "zarr", "healpy", "ducc0", "xdist.plugin"]


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
        (directory / "build").mkdir()
        self.library = directory / SOURCE / "_spherule.so"
        csrc = sorted((directory / SOURCE / "csrc").iterdir())
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in csrc)).hexdigest()[:12]
        self.objects = directory.parent / f"objects-{digest}"
        if not (self.objects / self.library.name).exists():
            if not self.build([path for path in csrc if path.suffix == ".cpp"], self.objects):
                raise RuntimeError("the native library can't be built")
            self.library.rename(self.objects / self.library.name)
        shutil.copy(self.objects / self.library.name, self.library)

    def build(self, sources: list[Path], objects: Path) -> bool:
        """The native library, of which these files are compiled anew; whether they could be."""
        objects.mkdir(exist_ok=True)
        for source in sources:
            out = objects / f"{source.stem}.o"
            if subprocess.run(["c++", *COMPILE, "-c", source, "-o", out], **SILENT).returncode:
                return False
        linked = {o.name: o for place in (self.objects, objects) for o in place.glob("*.o")}
        link = ["c++", "-shared", "-fopenmp", *linked.values(), "-o", self.library]
        self.library.unlink(missing_ok=True)
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
        while True:
            # A file of tests that can't be collected at all would be the answer for ever.
            listed = tests_of(self.directory, mutant.path)
            tests = [test for test in listed if self.sound.get(test, True)]
            failed = self.with_mutant(mutant, tests)
            if failed is None or self.is_sound(failed):
                return failed is not None

    def with_mutant(self, mutant: Mutant, tests: list[str]) -> str | None:
        """The first test that fails."""
        place, objects = self.directory / mutant.path, self.directory / "build" / "mutant"
        original = place.read_text()
        stale = [] if mutant.path.suffix == ".py" else self.users(mutant.path)
        try:
            place.write_text(mutant.text(original))
            if stale and not self.build(stale, objects):
                return ""
            return self.failing(tests, around(original, mutant.line))
        finally:
            place.write_text(original)
            if stale:
                shutil.rmtree(objects)
                shutil.copy(self.objects / self.library.name, self.library)

    def failing(self, tests: list[str], name: str = "") -> str | None:
        """The first test that fails, if any does; "" where the process ended or a test hung.

        They run in a fork of this process, which has everything but the package imported; first
        those that speak of a name.
        """
        log = self.directory / "build" / "tests.log"
        child = os.fork()
        if not child:
            code = 1
            try:
                left_out = [test for test, sound in self.sound.items() if not sound]
                code = run_tests(self.directory, tests, left_out, log, name)
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


def around(text: str, line: int) -> str:
    """The function or class that a line of Python is in."""
    above = re.findall(r"^\s*(?:def|class) (\w+)", "\n".join(text.splitlines()[:line]), re.M)
    return above[-1] if above else ""


class Limits:
    """A plugin of pytest: tests that speak of `name` come first, one that hangs ends the process,
    and none starts late.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.end = time.process_time() + SECONDS

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        said = {i: re.search(rf"\b{self.name}\b", inspect.getsource(i.function)) for i in items}
        items.sort(key=lambda item: said[item] is None)

    def pytest_runtest_setup(self) -> None:
        import pytest

        signal.setitimer(signal.ITIMER_VIRTUAL, TEST_SECONDS)
        signal.alarm(WAITED)
        if time.process_time() > self.end:
            pytest.exit("no test has failed so far", returncode=0)


def run_tests(tree: Path, tests: list[str], left_out: list[str], log: Path, name: str) -> int:
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
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported already
    options += [f"--deselect={test}" for test in left_out]
    return int(pytest.main([*options, *tests], plugins=[Limits(name)]))


class Results:
    """What has become of each mutant, a line each."""

    def __init__(self, path: Path, tree: Path) -> None:
        self.path, self.tree = path, tree
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.loads(line) for line in path.open()] if path.exists() else []
        self.known = {(r["mutant"], r["file"], r.get("tests")): r["killed"] for r in lines}

    def killed(self, mutant: Mutant) -> bool | None:
        """None where it has to be tried."""
        name, file, tests = self.key(mutant)
        return self.known.get((name, file, None)) or self.known.get((name, file, tests))

    def key(self, mutant: Mutant) -> tuple[str, str, str]:
        tests = tests_of(self.tree, mutant.path)
        return str(mutant), self.hash([str(mutant.path)]), self.hash(tests)

    def hash(self, files: list[str]) -> str:
        text = b"".join((self.tree / file).read_bytes() for file in files)
        return hashlib.sha256(text).hexdigest()[:12]

    def add(self, mutant: Mutant, killed: bool) -> None:
        name, file, tests = self.key(mutant)
        line = {"mutant": name, "file": file, "killed": killed}
        with self.path.open("a") as journal:
            journal.write(json.dumps(line if killed else line | {"tests": tests}) + "\n")


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
    for module in SLOW_IMPORTS:
        importlib.import_module(module)
    survived = []
    try:
        for mutant in chosen:
            start = time.monotonic()
            killed = results.killed(mutant)
            if killed is None:
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
