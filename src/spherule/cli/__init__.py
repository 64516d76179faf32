"""The command line: one dataclass a command, its fields are the flags.

A command's module is imported when it is called: torch takes seconds, and help needs none.
"""

import difflib
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import NamedTuple

import spherule
from spherule.threads import spin_briefly


class Command(NamedTuple):
    """Where a command stands, and what it does."""

    module: str
    name: str
    help: str


COMMANDS = {
    "info": Command("info", "Info", "versions, threads, and which kernels are active and why"),
    "demo": Command("demo", "Demo", "train small models, and write a page about them"),
    "plot": Command("plot", "Plot", "pictures of grids, neighborhoods and rooms"),
    "data": Command("data", "Data", "make data to train on"),
    "list": Command("list", "List", "the recipes: every row of the paper's tables"),
    "train": Command("train", "Train", "train a recipe, or a forecast of your own data"),
    "evaluate": Command("runs", "Evaluate", "measure a run's model on test samples"),
    "predict": Command("runs", "Predict", "apply a run's model to a file"),
    "rollout": Command("runs", "RollOut", "let a forecast follow itself, beside what happens"),
    "compare": Command("runs", "Compare", "a table of several runs"),
    "report": Command("runs", "ReportCommand", "one page about one run or several"),
    "publish": Command("runs", "Publish", "a run's model for others, with a card"),
    "regrid": Command("regrid", "Regrid", "bring a file's fields onto another grid"),
    "view": Command("view", "View", "a globe to turn, of a file or of a run's attention"),
}


def main() -> None:
    spin_briefly()
    try:
        _run(_import_own(sys.argv[1:]))
        sys.stdout.flush()
    except BrokenPipeError:  # as in `spherule list | head`: nobody reads any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        sys.exit("spherule: interrupted")
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        sys.exit(f"spherule: {_rank()}{error}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spherule"):
            raise
        sys.exit(f"spherule: {error}")


def _rank() -> str:
    """Which process speaks, where torchrun has started several."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    return f"rank {os.environ['RANK']}: " if several else ""


def _run(arguments: list[str]) -> None:
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return
    name, *rest = arguments
    if name in ("-V", "--version"):
        print(f"spherule {spherule.__version__}")
        return
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        print(f"spherule: no command {name!r}{hint} spherule --help shows all", file=sys.stderr)
        sys.exit(2)
    command = COMMANDS[name]
    module = importlib.import_module(f"spherule.cli.{command.module}")
    if name == "train":
        module.train_command(rest)
        return
    import tyro

    flags = (tyro.conf.OmitArgPrefixes,)
    tyro.cli(getattr(module, command.name), args=rest, prog=f"spherule {name}", config=flags).run()


def _help() -> str:
    wide = max(map(len, COMMANDS))
    lines = [f"  {name:{wide}}  {command.help}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: spherule [--import FILE] COMMAND ...",
            "",
            str(spherule.__doc__),
            "",
            *lines,
            "",
            "spherule COMMAND --help shows a command's flags, spherule --version the version.",
            "--import FILE, before the command, loads tasks of your own.",
        ]
    )


def _import_own(arguments: list[str]) -> list[str]:
    """Load each `--import FILE` or `--import module` that stands before the command: tasks and
    recipes from outside the package. Nothing that a run's files say is ever loaded.
    """
    while arguments[:1] == ["--import"]:
        if len(arguments) < 2:
            raise ValueError("--import needs a Python file or the name of a module")
        name, arguments = arguments[1], arguments[2:]
        if not name.endswith(".py"):
            importlib.import_module(name)
            continue
        path = Path(name)
        if not path.is_file():
            raise FileNotFoundError(f"--import {name}: there is no such file")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module  # workers that load data find the classes by it
        spec.loader.exec_module(module)
    return arguments
