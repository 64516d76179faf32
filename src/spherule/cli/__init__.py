"""The command line: one dataclass a command, its fields are the flags."""

import sys
from typing import Annotated

import tyro

import spherule
from spherule.cli.data import Data
from spherule.cli.demo import Demo
from spherule.cli.info import Info
from spherule.cli.plot import Plot

Command = (
    Annotated[Info, tyro.conf.subcommand("info")]
    | Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[Plot, tyro.conf.subcommand("plot")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


def main() -> None:
    try:
        command = tyro.cli(
            Command,
            prog="spherule",
            description=spherule.__doc__,
            config=(tyro.conf.OmitArgPrefixes,),
        )
        command.run()
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"spherule: {error}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("spherule"):
            raise
        sys.exit(f"spherule: {error}; pip install 'spherule[data,plot]'")
