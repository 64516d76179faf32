"""Files that are whole or not there, and a plain word when one is damaged."""

import json
import os
from pathlib import Path
from typing import Any


def write_whole(path: Path, content: str | bytes) -> None:
    """Under another name first, to disk, then renamed: a reader sees the old content or the new."""
    new = path.with_name(f"{path.name}.new")
    try:
        with new.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def require_new(path: Path) -> None:
    """What a user made, or an earlier command, is not written over."""
    if path.exists():
        raise FileExistsError(f"{path} exists: remove it, or choose another name")


def write_json(path: Path, values: Any) -> None:
    """Indented, for people to read."""
    write_whole(path, json.dumps(values, indent=2) + "\n")


def read_json(path: Path, *keys: str, **types: type) -> dict[str, Any]:
    """The object in a file, with at least these keys, and those of some type."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist") from None
    except IsADirectoryError:
        raise ValueError(f"{path}: expected a file, got a directory") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: expected an object, got {type(values).__name__}")
    if missing := sorted({*keys, *types} - values.keys()):
        raise ValueError(f"{path} lacks {', '.join(missing)}")
    for key, kind in types.items():
        if type(values[key]) is not kind:
            raise ValueError(f"{path}: {key}={values[key]!r:.80} must be of type {kind.__name__}")
    return values
