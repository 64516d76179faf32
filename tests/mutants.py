"""make mutants: does a test fail when a line is wrong?

    python tests/mutants.py [--count 200] [--seed 0] [--package ops nn]

Each mutant is the tree with one token of one line changed: an operator, a comparison, a constant,
a `not` that is dropped. All tests are collected once; a mutant is a fork of that process in which
the functions of its file have the code of the changed text, and csrc's a library that is built
anew. It runs the tests that know its file best, those that speak of its function first; csrc's at
last the sanitizers' program. What is computed while modules are imported needs a fresh import, and
comes last.

A mutant is killed by a test that fails, ends its process or hangs, and passes well within the time
limit where nothing is wrong. What survives is a test that is missing, or a line that is. Results
are kept in build/mutants: a mutant is not tried again while its file is the same and, where it
survived, its tests are; so a run may be stopped at any time and goes on where it was, and several
may run at once. What is known to be equivalent is not tried.
"""

import argparse
import ast
import contextlib
import functools
import gc
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
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import mutant_builds

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
EQUIVALENT = {
    "data/panorama_store.py '1' -> '2' ZstdCodec(level=1": "how hard is compressed, not what",
    "data/panorama_store.py '0' -> '1' workers: int = 0": "what is written is the same",
    "geometry/harmonics.py '0' -> '1' (-1) ** m if m < 0": "(-1) ** 0 is 1",
    "geometry/harmonics.py '1' -> '2' .reshape(-1,": "numpy takes any negative size for the rest",
    "nn/spectral.py '1' -> '2' lmax + 1)": "below the diagonal are no more columns than rows",
    "tasks/fields.py '+' -> '-' state + self._noise(state)": "noise has either sign",
    "objectives/derivatives.py '%' -> '*' if group.nphi % 2 == 0": "irfft drops what this makes 0",
    "ops/global_attention/__init__.py '0' -> '1' like = q.detach().new_empty(0,": "its dtype and "
    "device are asked for, not its values",
    "ops/longitudes.py '1' -> '2' group.nphi // 2 + 1)": "irfft takes nphi // 2 + 1 of them",
    "geometry/arcs.py '1.0' -> '0.5' / np.where(whole, 1.0, below)": "whole rings need no sine",
    "rooms/fittings.py '<' -> '<=' if rng.random() < 0.75": "one draw in 2^53 is 0.75",
    "rooms/kinds.py '<' -> '<=' 3 if side < 0 else 2": "side is -1 or 1",
    "rooms/textures.py '1' -> '2' 0.12 * grain + 0.16 * wide, 0, 1": "the sum is at most 0.93",
    "rooms/trace.py '>' -> '>=' (inside > 0) & (t > 0)": "no camera is on an ellipsoid",
    "runs/scores.py '+' -> '-' (at + d) % BINS": "these are as many to either side",
}
"""File, change and the part of the line that it is in: what no test can notice, and why. They are
not counted as killed.
"""
LEFT_OUT = ["browser", "distributed", "gpu", "real", "fuzz", "malformed", "recipes", "report"]
NATIVE = {
    "attention": ["ops/test_neighborhood_attention", "ops/test_free_rings"],
    "disco": ["ops/test_disco"],
    "legendre": ["ops/test_legendre", "ops/test_sht"],
    "norm": ["ops/test_norm"],
    "pointwise": ["ops/test_pointwise"],
    "ring_spectra": ["ops/test_sht"],
    "library": ["native/test_library", "ops/test_arguments", "ops/test_legendre", "ops/test_disco"],
}
FILES = 14  # of tests for a mutant
SECONDS, TEST_SECONDS, SOUND_SECONDS, WAITED = 60, 30, 10, 600
"""No test starts when a mutant has computed so long: it survives. One that computes or waits so
long hangs, if it takes a third of that where nothing is wrong; else it tells nothing.
"""


# What takes long is imported once, before the forks.
SLOW_IMPORTS = ["matplotlib.pyplot", "scipy.special", "torch._dynamo", "beartype", "jaxtyping"]
SLOW_IMPORTS += ["hypothesis.extra.numpy", "xarray", "zarr", "healpy", "ducc0", "xdist.plugin"]


SLOW_WORDS = {"subprocess", "compile", "export", "opcheck"}
"""What a test that comes last speaks of: it imports everything anew, or waits for a compiler."""


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
        # What never happens is said, not done.
        said = token.line[:column].endswith("strict=") or token.line.lstrip().startswith("assert ")
        if not ((unary and old in "+-*@**") or separator or decorator or said):
            found.append(Mutant(path, line, column, old, SWAPS[old]))
    return found


def drawn(root: Path, count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """As many of each package, in turns. What is drawn is decided by the text of its line, so that
    a change elsewhere leaves it drawn.
    """
    groups = []
    for package in packages:
        files = sorted(
            p for s in ("py", "h", "cpp") for p in (root / SOURCE / package).rglob(f"*.{s}")
        )
        # Need a GPU, or several processes.
        files = [p for p in files if "triton" not in p.stem and p.stem not in ("gpu", "ranks")]
        ranked = [
            (hashlib.sha256(f"{seed} {mutant.path} {change}".encode()).digest(), mutant)
            for path in files
            for mutant, change in changes(root, path.relative_to(root))
        ]
        groups.append([mutant for _, mutant in sorted(ranked)])
    longest = max(map(len, groups))
    turns = [group[i] for i in range(longest) for group in groups if i < len(group)]
    return turns[:count]


def changes(root: Path, path: Path) -> Iterator[tuple[Mutant, str]]:
    """Each mutant of a file with its line before and after."""
    lines = (root / path).read_text().splitlines()
    for mutant in mutants(root, path):
        before = lines[mutant.line - 1]
        after = before[: mutant.column] + mutant.new + before[mutant.column + len(mutant.old) :]
        yield mutant, f"{before.strip()} -> {after.strip()}"


@functools.cache
def tests_of(root: Path, path: Path) -> list[str]:
    """Files of tests, first the one of the same name, then those that say most of its names."""
    package, *parts = path.relative_to(SOURCE).with_suffix("").parts
    if package == "csrc":
        return [f"tests/{name}.py" for user in users(root, path) for name in NATIVE[user.stem]]
    source = (root / path).read_text()
    names = set(re.findall(r"^\s*(?:def|class) ([a-zA-Z]\w{3,})", source, re.M))
    names |= set(re.findall(r"^([A-Z][A-Z_]{3,}) =", source, re.M))
    names |= {part for part in parts if part != "__init__"} or {package}
    scores = {}
    for test in sorted((root / "tests").glob("*/test_*.py")):
        folder = test.parent.name
        if folder in LEFT_OUT:
            continue
        said = len(names & words(test))
        own = any(test.stem == f"test_{part}" for part in parts) and folder == package
        score = 100 * own + said + 3 * (folder == package)
        if said or folder == package:
            scores[f"tests/{folder}/{test.name}"] = score
    return sorted(scores, key=lambda test: -scores[test])[:FILES]


@functools.cache
def words(path: Path) -> set[str]:
    return set(re.findall(r"\w+", path.read_text()))


@functools.cache
def users(root: Path, path: Path) -> list[Path]:
    """The files to compile after a change in one of csrc."""
    sources = sorted((root / SOURCE / "csrc").glob("*.cpp"))
    needed = (
        subprocess.run(["c++", "-MM", s], capture_output=True, text=True).stdout for s in sources
    )
    return [s for s, files in zip(sources, needed, strict=True) if f"/{path.name}" in files]


def runs_later(mutant: Mutant, text: str) -> bool:
    """Whether its line is in a function's body, so that nothing has come of it at import."""
    if mutant.path.suffix != ".py":
        return True
    place = (mutant.line, mutant.column)
    return any(
        (part.lineno, part.col_offset) <= place < (part.end_lineno, part.end_col_offset)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for part in node.body
    )


def names_of(text: str, line: int) -> set[str]:
    """The functions and classes that a line is in, and those of its file that use them."""
    defined = [
        n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.FunctionDef | ast.ClassDef)
    ]
    around = [n for n in defined if n.lineno <= line <= (n.end_lineno or 0)]
    names = {n.name for n in around}
    # What compilers are told has no name; one kind of test asks for it.
    for decorator in (d for n in around if n.name == "_" for d in n.decorator_list):
        if isinstance(decorator, ast.Attribute) and decorator.attr == "register_fake":
            names |= {"opcheck", ast.unparse(decorator.value)}
    while True:
        plain = {name for name in names if not name.startswith("__")}
        more = {
            user.name
            for user in defined
            for n in ast.walk(user)
            if (isinstance(n, ast.Name) and n.id in plain)
            or (isinstance(n, ast.Attribute) and n.attr in plain)
        }
        if more <= names:
            return plain
        names |= more


def module_name(path: Path) -> str:
    return path.parent.name if path.stem == "__init__" else path.stem


def code_objects(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from code_objects(constant)


def put_in(path: Path, text: str) -> None:
    """Gives the functions of a file, wherever they are held, the code of another text of it."""
    (module,) = (m for m in sys.modules.values() if getattr(m, "__file__", None) == str(path))
    compiled = module.__spec__.loader.source_to_code(text.encode(), str(path))  # with its hooks
    code = {(c.co_qualname, c.co_firstlineno): c for c in code_objects(compiled)}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename == str(path):
            thing.__code__ = code[thing.__code__.co_qualname, thing.__code__.co_firstlineno]


def forget() -> None:
    """Empties what the package has kept so far."""
    for thing in gc.get_objects():
        kept = type(thing) is functools._lru_cache_wrapper
        if kept and str(thing.__module__).startswith("spherule"):
            thing.cache_clear()


Run = Callable[[list[str], "Mutant | None"], int]
"""Runs tests, files or one by its id, of a mutant or of none; 0 if no test failed."""


class Tree:
    """A copy of the sources and tests in which one line at a time is wrong."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "build" / "tests.log"
        self.sound: dict[str, bool] = {"": True, SANITIZERS: True}
        self.hung = False  # whether the last test that failed did so by the clock
        shutil.rmtree(directory, ignore_errors=True)
        leave = shutil.ignore_patterns(
            ".venv", "build", "dist", "out", ".git", "__pycache__", "results"
        )
        shutil.copytree(ROOT, directory, ignore=leave, symlinks=True)
        for library in (directory / SOURCE).glob("_spherule*"):
            library.unlink()
        (directory / "build").mkdir()
        self.library = mutant_builds.library(directory, directory.parent / "_spherule.so")
        self.sanitizer = mutant_builds.sanitizer(directory, directory.parent / "sanitize")
        self.offer()

    def killer(self, mutant: Mutant, run: Run) -> str | None:
        """The test that kills it, if one does."""
        while (failed := self.with_mutant(mutant, run)) is not None:
            if failed not in self.sound:
                hung = self.hung
                passed = self.in_fork(lambda: run([failed], None)) is None
                quick = DURATIONS.get(failed, 0.0) < SOUND_SECONDS
                self.sound[failed] = passed and (quick or not hung)
                if not self.sound[failed]:
                    print(f"left out: {failed} tells nothing", flush=True)
            if self.sound[failed]:
                break
        return failed

    def with_mutant(self, mutant: Mutant, run: Run) -> str | None:
        """The first test that fails, "" where none could be run."""
        place = self.directory / mutant.path
        original = place.read_text()
        tests = tests_of(self.directory, mutant.path)
        stale = [] if mutant.path.suffix == ".py" else users(self.directory, mutant.path)
        try:
            place.write_text(mutant.text(original))
            if not stale:
                return self.in_fork(lambda: run(tests, mutant))
            if not self.library.anew(stale):
                return ""
            self.offer()
            failed = self.in_fork(lambda: run(tests, mutant))
            return failed if failed is not None else self.sanitized(stale)
        finally:
            place.write_text(original)
            if stale:
                self.library.restore()
                self.offer()

    def offer(self) -> None:
        """Put the library where it is looked for, as another file: the last one may be in use."""
        place = self.directory / SOURCE / "_spherule.so"
        place.unlink(missing_ok=True)
        shutil.copy(self.library.out, place)

    def sanitized(self, stale: list[Path]) -> str | None:
        """The sanitizers' program, where it ends badly with these files as they are now."""
        sound = self.sanitizer.anew(stale) and mutant_builds.passes(self.sanitizer.out)
        self.sanitizer.restore()
        return None if sound else SANITIZERS

    def in_fork(self, run: Callable[[], int]) -> str | None:
        """The first test that fails, ends the process or hangs; "" where none was run."""
        self.log.write_text("")
        child = os.fork()
        if not child:
            code = BROKEN
            try:
                os.setpgid(0, 0)
                output = os.open(self.log, os.O_WRONLY | os.O_APPEND)
                os.dup2(output, 1)
                os.dup2(output, 2)
                code = run()
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
        text = self.log.read_text(errors="replace")
        for test, seconds in re.findall(r"^passed (.+) in (\S+) s$", text, re.M):
            DURATIONS[test] = float(seconds)
        if status == 0:
            return None
        started = re.findall(r"^started (.+)$", text, re.M)
        code = os.waitstatus_to_exitcode(status)
        self.hung = code in (-signal.SIGVTALRM, -signal.SIGALRM)
        if code == COLLECTION_FAILED and not started:
            return ""
        if not started or code > 1:
            raise RuntimeError(f"the tests could not be run:\n{text[-3000:]}")
        return started[-1]


COLLECTION_FAILED, BROKEN = 2, 77  # exit codes: pytest's, and one of our own
SANITIZERS = "make sanitize"
DURATIONS: dict[str, float] = {}  # of tests that have passed


class Watch:
    """A plugin of pytest that says which test runs, and ends the process where one hangs."""

    def pytest_runtest_setup(self, item: Any) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, TEST_SECONDS)
        signal.alarm(WAITED)
        self.start = time.process_time()
        os.write(1, f"\nstarted {item.nodeid}\n".encode())

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "teardown" and report.passed:
            seconds = time.process_time() - self.start
            os.write(1, f"\npassed {report.nodeid} in {seconds:.2f} s\n".encode())


@functools.cache
def words_of(function: Any) -> set[str]:
    return set(re.findall(r"\w+", inspect.getsource(function)))


def run_items(session: Any, items: list[Any], names: set[str], package: str) -> int:
    """First tests that speak of a name, then those of the package; of each test one case before
    the second of any; and what is known to be fast.
    """
    cases: Counter[Any] = Counter()
    keys = {}
    for item in items:
        spoken = words_of(item.function)
        keys[item] = (
            bool(SLOW_WORDS & spoken - names),
            not names & spoken,
            item.path.parent.name != package,
            cases[item.function],
            DURATIONS.get(item.nodeid, 0.5),
        )
        cases[item.function] += 1
    items = sorted(items, key=keys.__getitem__)
    end = computed() + SECONDS
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.testsfailed:
            return 1
        if computed() > end:
            break
    return 0


class Warm:
    """A plugin of pytest that, with all tests collected, tries mutants in forks."""

    def __init__(self, tree: Tree, judge: Callable[[Run], None]) -> None:
        self.tree, self.judge = tree, judge

    def pytest_runtestloop(self, session: Any) -> bool:
        self.session = session
        for item in session.items:
            words_of(item.function)
        gc.collect()
        self.judge(self.run)
        return True

    def run(self, tests: list[str], mutant: Mutant | None) -> int:
        names: set[str] = set()
        forget()
        if mutant and mutant.path.suffix == ".py":
            place = self.tree.directory / mutant.path
            text = place.read_text()
            put_in(place, text)
            names = names_of(text, mutant.line) | {module_name(mutant.path)}
            names |= {name.lstrip("_") for name in names}
        items = [i for i in self.session.items if {i.nodeid, i.nodeid.split("::")[0]} & {*tests}]
        items = [i for i in items if self.tree.sound.get(i.nodeid, True)]
        package = mutant.path.relative_to(SOURCE).parts[0] if mutant else ""
        return run_items(self.session, items, names, package)


class Cold:
    """A plugin of pytest that runs what was collected after the package was imported anew."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree

    def pytest_runtestloop(self, session: Any) -> bool:
        items = [i for i in session.items if self.tree.sound.get(i.nodeid, True)]
        run_items(session, items, set(), "")
        return True

    def run(self, tests: list[str], mutant: Mutant | None) -> int:
        return pytest_main(self.tree, tests, self)


def pytest_main(tree: Tree, tests: list[str], plugin: Any) -> int:
    import pytest

    os.chdir(tree.directory)
    os.environ |= {"PYTHONPATH": f"{tree.directory / 'src'}", "OMP_NUM_THREADS": "1"}
    sys.path[:0] = [str(tree.directory / "src"), str(tree.directory)]
    # An editable installation answers first, with the sources that are right.
    sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
    sys.dont_write_bytecode = True  # a second is too coarse to tell two mutants apart
    options = ["-q", "-s", "-n", "0", "-m", "not slow", "-p", "no:cacheprovider"]
    options += ["-o", "tmp_path_retention_policy=none"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported already
    return int(pytest.main([*options, *tests], plugins=[Watch(), plugin]))


class Results:
    """What has become of each mutant, a line each."""

    def __init__(self, path: Path, tree: Path) -> None:
        self.path, self.tree = path, tree
        path.parent.mkdir(parents=True, exist_ok=True)

    def killed(self, mutant: Mutant) -> bool | None:
        """None where it has to be tried. Read anew each time: others may be at work too."""
        text = self.path.read_text() if self.path.exists() else ""
        lines = [json.loads(line) for line in text.splitlines()]
        known = {(r["mutant"], r["file"], r.get("tests")): r["killed"] for r in lines}
        name, file, tests = self.key(mutant)
        return known.get((name, file, None)) or known.get((name, file, tests))

    def key(self, mutant: Mutant) -> tuple[str, str, str]:
        tests = tests_of(self.tree, mutant.path)
        return str(mutant), self.hash([str(mutant.path)]), self.hash(tests)

    def hash(self, files: list[str]) -> str:
        text = b"".join((self.tree / file).read_bytes() for file in files)
        return hashlib.sha256(text).hexdigest()[:12]

    def add(self, mutant: Mutant, killer: str | None, seconds: float) -> None:
        name, file, tests = self.key(mutant)
        line = {"mutant": name, "file": file, "killed": killer is not None, "seconds": seconds}
        line |= {"tests": tests} if killer is None else {"by": killer}
        with self.path.open("a") as journal:
            journal.write(json.dumps(line) + "\n")


def why_equivalent(mutant: Mutant) -> str | None:
    line = (ROOT / mutant.path).read_text().splitlines()[mutant.line - 1]
    for which, why in EQUIVALENT.items():
        file, old, _, new, part = which.split(" ", 4)
        change = f"{mutant.old.strip()!r}", f"{mutant.new.strip()!r}"
        first = line.find(part)
        there = first >= 0 and first <= mutant.column < first + len(part)
        if SOURCE / file == mutant.path and (old, new) == change and there:
            return f"(equivalent: {why})"
    return None


def computed() -> float:
    """Seconds of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def judge(tree: Tree, chosen: list[Mutant], results: Results, run: Run) -> None:
    # In an order of its own, so that several processes share the work.
    for mutant in random.Random(os.getpid()).sample(chosen, len(chosen)):
        if results.killed(mutant) is not None or why_equivalent(mutant):
            continue
        start = computed()
        killer = tree.killer(mutant, run)
        seconds = round(computed() - start, 1)
        results.add(mutant, killer, seconds)
        word = "SURVIVED" if killer is None else "killed  "
        print(f"{word} {mutant} ({seconds} s) {killer or ''}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--package", nargs="+", choices=PACKAGES, default=PACKAGES)
    options = parser.parse_args()
    kept = ROOT / "build" / "mutants"
    tree = Tree(kept / f"tree-{os.getpid()}")
    chosen = drawn(tree.directory, options.count, options.seed, options.package)
    path = kept / "results.jsonl"
    results = Results(path, tree.directory)
    for module in SLOW_IMPORTS:
        importlib.import_module(module)
    later = [m for m in chosen if runs_later(m, (tree.directory / m.path).read_text())]
    files = sorted({test for m in later for test in tests_of(tree.directory, m.path)})
    try:
        # In a process of its own: in this one the package is never imported.
        warm = os.fork()
        if not warm:
            code = 1
            try:
                all_of_them = Warm(tree, functools.partial(judge, tree, later, results))
                code = pytest_main(tree, files, all_of_them)
            finally:
                os._exit(code)
        if os.waitpid(warm, 0)[1]:
            sys.exit("the tests can't be collected")
        judge(tree, [m for m in chosen if m not in later], results, Cold(tree).run)
    finally:
        shutil.rmtree(tree.directory, ignore_errors=True)
    results = Results(path, ROOT)
    survived = [m for m in chosen if not results.killed(m)]
    print(f"{len(chosen) - len(survived)} of {len(chosen)} killed; survivors:")
    for mutant in survived:
        print(mutant, why_equivalent(mutant) or "")
    sys.exit(len(survived) > 0.1 * len(chosen))


if __name__ == "__main__":
    main()
