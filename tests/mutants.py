"""make mutants: does a test fail when a line is wrong?

    python tests/mutants.py [--count 200] [--seed 0] [--workers 2] [--packages ops nn]

Each mutant is the tree with one token of one line changed: an operator, a comparison, a constant,
a `not` that is dropped, two arguments swapped. It runs the tests that cover its file, in a copy.
Those of csrc are built first. What survives is a test that is missing, or a line that is.
"""

import argparse
import io
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

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
# Where the tests of a package's file are not in the folder of its name.
ELSEWHERE = {
    "csrc": ["tests/ops/test_neighborhood_attention.py", "tests/ops/test_disco.py"],
    "train": ["tests/train", "tests/runs"],
    "models": ["tests/models"],
    "runs": ["tests/runs"],
}
PACKAGES = [
    "grids",
    "geometry",
    "ops",
    "nn",
    "models",
    "objectives",
    "pde",
    "data",
    "train",
    "csrc",
]
SECONDS = 900


class Mutant(NamedTuple):
    path: Path
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(SOURCE)}:{self.line}: {self.old!r} -> {self.new!r}"

    def text(self) -> str:
        lines = (ROOT / self.path).read_text().splitlines(keepends=True)
        line = lines[self.line - 1]
        rest = line[self.column + len(self.old) :]
        lines[self.line - 1] = line[: self.column] + self.new + rest
        return "".join(lines)

    def tests(self) -> list[str]:
        package, *_ = self.path.relative_to(SOURCE).parts
        if package in ELSEWHERE:
            return ELSEWHERE[package]
        folder = ROOT / "tests" / package
        parts = {part.removesuffix(".py") for part in self.path.relative_to(SOURCE).parts[1:]}
        own = [p for p in folder.glob("test_*.py") if p.stem.removeprefix("test_") in parts]
        return [str(p.relative_to(ROOT)) for p in own or [folder]]


def mutants(path: Path) -> list[Mutant]:
    """All of a file: tokens of code, none of strings, comments or signatures' markers."""
    text = (ROOT / path).read_text()
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
        if not (unary and old in "+-*@**") and not separator and not token.line.startswith("@"):
            found.append(Mutant(path, line, column, old, SWAPS[old]))
    return found


def drawn(count: int, seed: int, packages: list[str]) -> list[Mutant]:
    """As many of each package."""
    rng, groups = random.Random(seed), []
    for package in packages:
        files = sorted(
            p for s in ("py", "h", "cpp") for p in (ROOT / SOURCE / package).rglob(f"*.{s}")
        )
        files = [p for p in files if "triton" not in p.stem and p.stem != "gpu"]
        paths = [p.relative_to(ROOT) for p in files]
        group = [mutant for path in paths for mutant in mutants(path)]
        rng.shuffle(group)
        groups.append(group)
    turns = [
        mutant
        for turn in zip(*(g + [None] * count for g in groups), strict=False)
        for mutant in turn
    ]
    return [mutant for mutant in turns if mutant is not None][:count]


def survives(mutant: Mutant, tree: Path) -> bool:
    original = (ROOT / mutant.path).read_text()
    (tree / mutant.path).write_text(mutant.text())
    try:
        if mutant.path.suffix != ".py":
            build = tree / "build" / "mutant"
            for command in (
                ["cmake", "-S", str(tree), "-B", str(build), "-DCMAKE_BUILD_TYPE=Release"],
                ["cmake", "--build", str(build)],
            ):
                if subprocess.run(command, capture_output=True).returncode:
                    return False
            (library,) = build.glob("_spherule*")
            shutil.copy(library, tree / SOURCE)
        run = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-n",
                "0",
                "-m",
                "not slow and not browser",
                "-p",
                "no:cacheprovider",
                *mutant.tests(),
            ],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            timeout=SECONDS,
        )
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        (tree / mutant.path).write_text(original)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=PACKAGES)
    options = parser.parse_args()
    chosen = drawn(options.count, options.seed, options.packages)
    trees: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as directory:
        for i in range(options.workers):
            tree = Path(directory) / str(i)
            leave = shutil.ignore_patterns(".venv", "build", "dist", "out", ".git", "__pycache__")
            shutil.copytree(ROOT, tree, ignore=leave)
            trees.put(tree)

        def judge(mutant: Mutant) -> bool:
            tree = trees.get()
            try:
                alive = survives(mutant, tree)
            finally:
                trees.put(tree)
            print("survived" if alive else "killed  ", mutant, flush=True)
            return alive

        with ThreadPoolExecutor(options.workers) as pool:
            survived = sum(pool.map(judge, chosen))
    print(f"{len(chosen) - survived} of {len(chosen)} killed")
    sys.exit(survived > 0.1 * len(chosen))


if __name__ == "__main__":
    main()
