"""The command line: one dataclass a command, its fields are the flags."""

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import Annotated

import tyro

import spherule
from spherule.cli.data import Data
from spherule.cli.demo import Demo
from spherule.cli.info import Info
from spherule.cli.plot import Plot
from spherule.cli.regrid import Regrid
from spherule.cli.runs import Compare, Evaluate, List, Predict, ReportCommand, RollOut
from spherule.cli.train import Train, train_command
from spherule.cli.view import View

Command = (
    Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Data, tyro.conf.subcommand("data")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Predict, tyro.conf.subcommand("predict")]
    | Annotated[Regrid, tyro.conf.subcommand("regrid")]
    | Annotated[RollOut, tyro.conf.subcommand("rollout")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[ReportCommand, tyro.conf.subcommand("report")]
    | Annotated[View, tyro.conf.subcommand("view")]
)
DESCRIPTION = f"{spherule.__doc__}\n\n--import FILE, before the command, loads tasks of your own."


def main() -> None:
    try:
        arguments = _import_own(sys.argv[1:])
        if arguments[:1] == ["train"]:
            train_command(arguments[1:])
            return
        command = tyro.cli(
            Command,
            args=arguments,
            prog="spherule",
            description=DESCRIPTION,
            config=(tyro.conf.OmitArgPrefixes,),
        )
        assert not isinstance(command, Train)
        command.run()
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        sys.exit(f"spherule: {error}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spherule"):
            raise
        sys.exit(f"spherule: {error}")


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
