"""The command that makes a run."""

import shlex
from dataclasses import fields
from typing import Any

from spherule import recipes
from spherule.train import RunConfig


def train_command(config: RunConfig, out: str) -> str:
    """`spherule train` with the flags in which a run differs from its recipe; of a run of no known
    recipe, with its config in a file.
    """
    where = shlex.quote(out)
    try:
        default = recipes.get(config.recipe)
    except ValueError:
        return f"spherule train --config config.json --out {where}"
    words = ["spherule", "train", config.recipe]
    for part, prefix in (("task", ""), ("training", ""), ("model", "model.")):
        chosen, usual = getattr(config, part), getattr(default, part)
        if type(chosen) is not type(usual):
            return f"spherule train --config config.json --out {where}"
        for field in fields(chosen):
            value = getattr(chosen, field.name)
            if value != getattr(usual, field.name):
                words += _flag(prefix + field.name.replace("_", "-"), value)
    return " ".join([*(shlex.quote(word) for word in words), "--out", where])


def _flag(name: str, value: Any) -> list[str]:
    if isinstance(value, bool):
        head, _, tail = name.rpartition(".")
        return [f"--{name}" if value else f"--{head + '.' if head else ''}no-{tail}"]
    values = value if isinstance(value, tuple) else (value,)
    return [f"--{name}", *map(str, values)]
