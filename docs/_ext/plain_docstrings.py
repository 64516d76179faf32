"""Docstrings are plain text: only backticks, `Args:` and `>>>` mean anything in them."""

import re
from typing import Any

from sphinx.application import Sphinx

_MARKUP = re.compile(r"([*|\\]|(?<=\w)_\b(?!\w))")


def plain(lines: list[str]) -> list[str]:
    """The same text as reStructuredText: `code` as literals, all other markup escaped."""
    result, code, example = [], False, False
    for line in lines:
        if not line.strip():
            code = example = False
        example = example or line.lstrip().startswith(">>>")
        if example:
            result.append(line)
            continue
        parts = []
        for i, part in enumerate(line.split("`")):
            code = code != (i > 0)
            parts.append(part if code else _MARKUP.sub(r"\\\1", part))
        result.append("``".join(parts))
    return result


def _process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = plain(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    # Before napoleon, which turns `Args:` into fields.
    app.connect("autodoc-process-docstring", _process, priority=100)
    return {"parallel_read_safe": True}
