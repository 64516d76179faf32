"""What happened in a run: one line of JSON a record, and TensorBoard where it is installed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from spherule.files import write_whole


class Journal:
    """Records of one run. A run that is resumed forgets what came after its checkpoint."""

    def __init__(self, path: Path, *, after: int = 0, board: Path | None = None) -> None:
        kept = [r for r in read_journal(path) if r["step"] <= after] if after else []
        write_whole(path, "".join(json.dumps(record) + "\n" for record in kept))
        self._file = path.open("a", encoding="utf-8")
        self._board = None if board is None else _board(board, after)

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


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records; lines that a kill cut short or somebody damaged are left out."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(record, dict) and _is_whole(record):
            records.append(record)
    return records


def _is_whole(record: dict[str, Any]) -> bool:
    """It has a step, and where it has losses, they are numbers."""
    step, validation = record.get("step"), record.get("validation", {"loss": {"mean": 0.0}})
    if type(step) is not int or not 0 <= step < 2**63:
        return False
    mean = validation
    for name in ("loss", "mean"):
        mean = mean.get(name) if isinstance(mean, dict) else None
    training = record.get("training_loss")
    numbers = (record.get("loss", 0.0), 0.0 if training is None else training, mean)
    return all(type(number) is float for number in numbers)


def _board(path: Path, after: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(path, purge_step=after + 1)


def _scalars(record: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from ((f"{name}/{k}", v["mean"]) for k, v in value.items() if isinstance(v, dict))
        elif isinstance(value, float):
            yield f"training/{name}", value
