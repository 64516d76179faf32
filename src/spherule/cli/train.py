"""`spherule train RECIPE`: the flags are the fields of the recipe's config."""

import contextlib
import dataclasses
import io
import json
import re
import shlex
import sys
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from spherule import recipes

if TYPE_CHECKING:
    from spherule.train import RunConfig


@dataclass(frozen=True)
class Control:
    """Where the run goes, and how it begins."""

    out: Path | None = None
    """Directory of the run."""
    resume: bool = False
    """Go on with the run in --out."""
    overwrite: bool = False
    """Begin anew even if --out holds a run."""
    init: Path | None = None
    """Start from the best weights of another run, to fine-tune them."""
    config: Path | None = None
    """A config that --print-config printed, instead of a recipe."""
    print_config: bool = False
    """Print the config with all overrides as JSON, and stop."""


@dataclass(frozen=True)
class Train:
    """Train a recipe: `spherule list` shows them, `spherule train RECIPE --help` all its flags."""

    recipe: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RECIPE")]
    """Such as swe/s2-transformer-local:tiny; `forecast` for data of your own. Not needed with
    --config or --resume."""
    control: Annotated[Control, tyro.conf.arg(name="")] = field(default_factory=Control)


def train_command(arguments: list[str]) -> None:
    """Parse the recipe first, since its config decides which flags there are. Errors name the
    flags that were given.
    """
    try:
        _train(arguments)
    except ValueError as error:
        raise type(error)(with_flags(str(error), arguments)) from error


def with_flags(message: str, arguments: list[str]) -> str:
    """A message in which arguments, `heads=3`, are the flags that gave them, `--model.heads=3`."""
    for argument in arguments:
        if argument.startswith("--"):
            flag = argument.partition("=")[0]
            inner = flag.lstrip("-").rpartition(".")[2].replace("-", "_")
            message = re.sub(rf"(?<![\w.-]){re.escape(inner)}(?=[=:\[])", flag, message)
    return message


def _train(arguments: list[str]) -> None:
    named = bool(arguments) and not arguments[0].startswith("-")
    name, rest = (arguments[0], arguments[1:]) if named else (None, arguments)
    if name is None and not {"--config", "--resume"} & {a.partition("=")[0] for a in rest}:
        tyro.cli(Train, args=[a for a in rest if a in ("-h", "--help")], prog="spherule train")
        raise AssertionError("tyro ends the program when the recipe is missing")
    control, config = _parse(_default(name, rest), rest, name)
    if control.print_config:
        print(json.dumps(config.to_dict(), indent=2))
        return
    if control.out is None:
        raise ValueError("--out DIR is missing: where the run goes")
    _run(config, control, control.out)


def _run(config: "RunConfig", control: Control, where: Path) -> None:
    from spherule.cli.progress import first_rank, progress
    from spherule.runs import train
    from spherule.train import Interrupted

    try:
        with progress() as (on_step, log):
            train(
                config,
                where,
                resume=control.resume,
                overwrite=control.overwrite,
                init=control.init,
                on_step=on_step,
                log=log,
            )
    except Interrupted as reason:
        if first_rank():
            print(f"{reason}. Go on with: spherule train --resume --out {shlex.quote(str(where))}")
        sys.exit(130)
    quoted = shlex.quote(str(where))
    if first_rank():
        print(f"done; spherule evaluate {quoted}, spherule report {quoted}")


def _default(name: str | None, rest: list[str]) -> "RunConfig":
    """The config that flags are relative to: of a file, of the run to resume, or of a recipe."""
    from spherule.runs import RunDirectory
    from spherule.train import RunConfig

    file, out = _value(rest, "--config"), _value(rest, "--out")
    if file is not None:
        if name is not None:
            raise ValueError(f"a recipe ({name}) and --config {file} exclude each other")
        return RunConfig.load(Path(file))
    if "--resume" in rest and out is not None:
        recorded = RunDirectory(Path(out)).read_config()
        if name is not None and recipes.get(name).recipe != recorded.recipe:
            raise ValueError(f"{out} holds a run of {recorded.recipe}, not of {name}")
        return recorded
    if name is None:
        raise ValueError("--out DIR is missing: which run --resume goes on with")
    return recipes.get(name)


def _parse(default: "RunConfig", rest: list[str], name: str | None) -> "tuple[Control, RunConfig]":
    unprefixed = tyro.conf.arg(name="")
    flags: Any = make_dataclass(
        "Flags",
        [
            ("control", Annotated[Control, unprefixed], field(default_factory=Control)),
            *(
                (part, Annotated[type(value), unprefixed], field(default=value))
                for part, value in (("task", default.task), ("training", default.training))
            ),
            ("model", type(default.model), field(default=default.model)),
        ],
    )
    title = f"spherule train {name}" if name else "spherule train"
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            about = f"Train {default.recipe}."
            parsed = tyro.cli(flags, args=rest, prog=title, description=about)
    except SystemExit as end:
        if reason := _value_error(said.getvalue()):
            raise ValueError(reason) from None
        sys.stderr.write(said.getvalue())
        raise end
    config = dataclasses.replace(
        default, task=parsed.task, training=parsed.training, model=parsed.model
    )
    return parsed.control, config


def _value_error(said: str) -> str:
    """What a config said of its values, without the frame that tyro draws around it."""
    lines = [line.strip(" │┃|") for line in said.splitlines()]
    inner = [line for line in lines if line and not set(line) <= set("-─━╭╮╰╯")]
    text = " ".join(inner).partition("Error parsing ")[2].partition("For full helptext")[0]
    return text.partition(": ")[2].strip()


def _value(arguments: list[str], flag: str) -> str | None:
    for i, argument in enumerate(arguments):
        if argument == flag and i + 1 < len(arguments):
            return arguments[i + 1]
        if argument.startswith(flag + "="):
            return argument[len(flag) + 1 :]
    return None
