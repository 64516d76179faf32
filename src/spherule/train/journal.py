"""`metrics.jsonl`, and TensorBoard where it is installed: what happened, one line a record."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

METRICS = "metrics.jsonl"


class Journal:
    """Records of one run. A run that is resumed forgets what came after its checkpoint."""

    def __init__(self, directory: Path, *, after: int = 0) -> None:
        self.path = directory / METRICS
        kept = [r for r in read_journal(directory) if r["step"] <= after] if after else []
        new = self.path.with_name(METRICS + ".new")
        new.write_text("".join(json.dumps(record) + "\n" for record in kept))
        os.replace(new, self.path)
        self._file = self.path.open("a")
        self._board = _board(directory, after)

    def write(self, record: dict[str, Any]) -> None:
        """A record with its step."""
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()
        if self._board is not None:
            for name, value in _scalars(record):
                self._board.add_scalar(name, value, record["step"])

    def close(self) -> None:
        self._file.close()
        if self._board is not None:
            self._board.close()


def read_journal(directory: Path) -> list[dict[str, Any]]:
    """The records of a run; a last line that was cut by a kill is left out."""
    path = directory / METRICS
    if not path.exists():
        return []
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return records


def _board(directory: Path, after: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(directory / "tensorboard", purge_step=after + 1)


def _scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{name}/{k}", v["mean"]) for k, v in value.items() if isinstance(v, dict))
        elif isinstance(value, float):
            yield f"training/{name}", value
