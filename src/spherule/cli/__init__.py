"""The command line: one dataclass a command, its fields are the flags."""

import sys
from typing import Annotated

import tyro

import spherule
from spherule.cli.data import Data
from spherule.cli.demo import Demo
from spherule.cli.info import Info
from spherule.cli.plot import Plot
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
    | Annotated[RollOut, tyro.conf.subcommand("rollout")]
    | Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[ReportCommand, tyro.conf.subcommand("report")]
    | Annotated[View, tyro.conf.subcommand("view")]
)


def main() -> None:
    try:
        if sys.argv[1:2] == ["train"]:
            train_command(sys.argv[2:])
            return
        command = tyro.cli(
            Command,
            prog="spherule",
            description=spherule.__doc__,
            config=(tyro.conf.OmitArgPrefixes,),
        )
        command.run()
    except (ValueError, OSError, FloatingPointError, MemoryError) as error:
        sys.exit(f"spherule: {error}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spherule"):
            raise
        sys.exit(f"spherule: {error}; pip install 'spherule[data,plot]'")
