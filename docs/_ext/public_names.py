"""The directive `public`: all of a package's `__all__`; a name without docs is a warning, and so no
strict build.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging

_logger = logging.getLogger(__name__)


def _home(package: ModuleType, name: str) -> str | None:
    """The module in which a docstring stands below this constant."""
    top = package.__name__.partition(".")[0]
    for module in [package.__name__, *sorted(m for m in sys.modules if m.startswith(top))]:
        if getattr(sys.modules[module], name, None) is not getattr(package, name):
            continue
        if ("", name) in ModuleAnalyzer.for_module(module).find_attr_docs():
            return module
    return None


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """What a class itself defines and shows."""
    for name, value in vars(cls).items():
        if not name.startswith("_") and inspect.isroutine(value):
            yield name, getattr(cls, name)


def undocumented(package: ModuleType) -> list[str]:
    """The public names of a package, and methods of its classes, that nobody has described."""
    missing = []
    for name in package.__all__:
        value, full = getattr(package, name), f"{package.__name__}.{name}"
        if inspect.ismodule(value) or inspect.isclass(value) or callable(value):
            # Dataclasses write a signature where nobody wrote a word.
            if not value.__doc__ or value.__doc__.startswith(f"{name}("):
                missing.append(full)
        elif _home(package, name) is None:
            missing.append(full)
        if inspect.isclass(value):
            missing += [f"{full}.{key}" for key, own in _methods(value) if not inspect.getdoc(own)]
    return missing


def _directive(package: ModuleType, name: str) -> list[str]:
    value, full = getattr(package, name), f"{package.__name__}.{name}"
    if inspect.ismodule(value):
        return [f".. automodule:: {value.__name__}", "   :members:"]
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return [f".. auto{kind}:: {full}", "   :members:"]
    if callable(value):
        # One signature, that with the shapes, in place of those of each overload.
        analyzer = ModuleAnalyzer.for_module(value.__module__)
        analyzer.analyze()
        analyzer.overloads.pop(name, None)
        return [f".. autofunction:: {full}"]
    home = _home(package, name) or package.__name__
    lines = [f".. autodata:: {home}.{name}", "   :no-value:"]
    # Of another package, which has it in its own index.
    return lines if home.startswith(package.__name__) else [*lines, "   :no-index:"]


class Public(Directive):
    """`.. public:: spherule.ops`"""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        package = importlib.import_module(self.arguments[0])
        for name in undocumented(package):
            _logger.warning("%s is public and has no docstring", name, type="public")
        body = [line for name in package.__all__ for line in (*_directive(package, name), "")]
        node = nodes.Element()
        source = f"{package.__name__}.__all__"
        self.state.nested_parse(StringList(body, source), self.content_offset, node)
        return node.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("public", Public)
    return {"parallel_read_safe": True}
