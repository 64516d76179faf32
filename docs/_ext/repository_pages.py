"""Pages whose text stands elsewhere in the repository, and links to them.

A page that is one `{include}` of such a file takes its text; links between files, which work on
GitHub, become links between pages.
"""

import os
import re
from pathlib import Path

from sphinx.application import Sphinx

_INCLUDE = re.compile(r"```\{(?:literal)?include\} (\S+)\n(?:.*\n)*?```\n")
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def _included(page: Path) -> Path | None:
    """The file that a page includes, where there is one."""
    found = _INCLUDE.search(page.read_text())
    return (page.parent / found[1]).resolve() if found else None


def _resolve(app: Sphinx, docname: str, source: list[str]) -> None:
    docs = Path(app.srcdir)
    page = docs / f"{docname}.md"
    pages = {file: p for p in sorted(docs.rglob("*.md")) if (file := _included(p))}
    file = _included(page)
    base = page.parent
    if file and file.suffix == ".md":
        source[0], base = file.read_text(), file.parent

    def link(match: re.Match[str]) -> str:
        target = (base / match[1]).resolve()
        target = pages.get(target, target)
        return f"]({os.path.relpath(target, page.parent)}{match[2] or ''})"

    source[0] = _LINK.sub(link, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _resolve)
    return {"parallel_read_safe": True}
