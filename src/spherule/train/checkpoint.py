"""Checkpoints that survive kills, full disks and bad blocks.

A checkpoint is a directory: the model as `save_pretrained` writes it, what training needs beside
it, and `SHA256SUMS` over all of them (`sha256sum -c` reads it). It is written under another name,
brought to disk, and renamed: under its own name it is whole, or somebody damaged it later.
"""

import contextlib
import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
from safetensors.torch import load_file, save_file
from torch import Tensor

from spherule.files import read_json, write_json
from spherule.models import Model

SUMS, STATE, TENSORS = "SHA256SUMS", "state.json", "training.safetensors"
STATE_KEYS = ("step", "bad", "epoch_loss", "best", "best_loss", "schedule")
KEPT = 2
"""How many of the newest stay, beside the best."""


@dataclass(frozen=True)
class Checkpoint:
    """What stands on disk. Its step is the one of its name; a whole one's state says the same."""

    path: Path
    step: int

    def state(self) -> dict[str, Any]:
        return read_json(self.path / STATE, *STATE_KEYS)

    def tensors(self) -> dict[str, Tensor]:
        return load_file(self.path / TENSORS)


def write_checkpoint(
    directory: Path, model: Model, step: int, state: dict[str, Any], tensors: dict[str, Tensor]
) -> Checkpoint:
    """Write the checkpoint of a step, then remove those that are no longer needed; `state["best"]`
    is the step of the best one.
    """
    partial, final = directory / "writing", directory / f"step-{step:08d}"
    try:
        directory.mkdir(exist_ok=True)  # not its parent: a run that was removed stays removed
        remove(partial)
        model.save_pretrained(partial)
        write_json(partial / STATE, state)
        save_file({name: t.contiguous() for name, t in tensors.items()}, partial / TENSORS)
        shutil.copymode(partial / STATE, partial / TENSORS)  # as `save_pretrained` does
        names = sorted(p.name for p in partial.iterdir())
        sums = "".join(f"{_digest(partial / name)}  {name}\n" for name in names)
        (partial / SUMS).write_text(sums)
        for path in (*partial.iterdir(), partial):
            _to_disk(path)
    except (OSError, safetensors.SafetensorError) as error:
        with contextlib.suppress(OSError):  # that of the writing is the one to name
            remove(partial)
        raise OSError(
            f"the checkpoint of step {step} could not be written to {directory} ({error}); "
            "those before it are as they were. Make room, then go on with --resume"
        ) from error
    remove(final)  # a damaged one of the same step
    partial.rename(final)
    _to_disk(directory)
    kept = {c.step for c in checkpoints(directory)[-KEPT:]} | {step, state.get("best")}
    for other in checkpoints(directory):
        if other.step not in kept:
            remove(other.path)
    return Checkpoint(final, step)


def checkpoints(directory: Path) -> list[Checkpoint]:
    """What is there, oldest first, whole or not."""
    present = []
    for path in directory.glob("step-*"):
        if match := re.fullmatch(r"step-(\d{8,18})", path.name):
            present.append(Checkpoint(path, int(match[1])))
    return sorted(present, key=lambda c: c.step)


def damage(checkpoint: Checkpoint) -> str | None:
    """What is wrong with a checkpoint, or None."""
    sums = checkpoint.path / SUMS
    try:
        listed = [line.split("  ", 1) for line in sums.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        return f"{SUMS} cannot be read: {error}"
    if not all(len(entry) == 2 for entry in listed):
        return f"{SUMS} is damaged"
    present = {p.name for p in checkpoint.path.iterdir()} - {SUMS}
    if present != {name for _, name in listed} or not {STATE, TENSORS} <= present:
        return f"{SUMS} does not list the files that are there"
    try:
        for digest, name in listed:
            if _digest(checkpoint.path / name) != digest:
                return f"{name} is not what was written"
        step = checkpoint.state()["step"]
    except (OSError, ValueError) as error:
        return str(error)
    if step != checkpoint.step:
        return f"{STATE} is of step {step}: somebody renamed it"
    return None


def newest_whole(directory: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is not damaged, and what was wrong with those after it."""
    problems: list[str] = []
    for checkpoint in reversed(checkpoints(directory)):
        problem = damage(checkpoint)
        if problem is None:
            return checkpoint, problems
        problems.append(f"{checkpoint.path.name}: {problem}")
    return None, problems


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """A file, a directory, or a link to one, which is not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
