"""How pages and figures look: one style sheet, one set of colors, figures inside the page."""

import base64
import html
import io
import re
import sys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from spherule.optional import require

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RUN_COLORS = (
    "#0b6e8f",
    "#d1603d",
    "#6b8f2a",
    "#7a4fa3",
    "#b8860b",
    "#4a4a4a",
    "#c2417c",
    "#2a9d8f",
)
"""Of the first run, the second, ..."""
_LINES = ("-", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_ERROR_LINES = ("--", (0, (2, 2)), (0, (9, 3)), (0, (9, 2, 2, 2)))
_HATCHES = ("", "///", "...", "xxx")
"""When colors come again."""
_LONGEST = 60
"""Characters of a name beside a line; the page has the rest."""

_CSS = """
:root { --ink: #1d2733; --soft: #5b6877; --line: #dde3ea; --paper: #ffffff; --tint: #f4f7fa;
        --mark: #0b6e8f; }
* { box-sizing: border-box; }
body { margin: 0; background: var(--tint); color: var(--ink);
       font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1140px; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; }
h2 { font-size: 1.25rem; margin: 0 0 .5rem; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
p.lead { font-size: 1.1rem; color: var(--soft); }
p.note { color: var(--soft); font-size: .9rem; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px;
          padding: 1.3rem 1.5rem; margin: 1.3rem 0; }
figure { margin: .8rem 0 0; }
figure img { width: 100%; height: auto; display: block; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
        font-variant-numeric: tabular-nums; }
th, td { padding: .5rem .45rem; text-align: right; border-bottom: 1px solid var(--line);
         white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
th { color: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; }
p.bad { color: #b3261e; }
td.long { white-space: normal; overflow-wrap: anywhere; min-width: 15rem; }
td.best { font-weight: 700; color: var(--mark); }
details { margin-top: .8rem; }
summary { cursor: pointer; color: var(--mark); }
pre { background: var(--tint); border: 1px solid var(--line); border-radius: 8px; padding: .8rem;
      overflow-x: auto; font-size: .85rem; }
footer { color: var(--soft); font-size: .85rem; }
"""

_FIGURES = {
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 12,
    "svg.fonttype": "path",
    "svg.hashsalt": "spherule",
    # Names and titles are users' own: a dollar sign is no formula.
    "text.parse_math": False,
    "text.usetex": False,
}

_Inputs = ParamSpec("_Inputs")
_Output = TypeVar("_Output")


def run_style(number: int) -> dict[str, Any]:
    """Color and line of a run; colors come again with another line."""
    turn, place = divmod(number, len(_RUN_COLORS))
    return {"color": _RUN_COLORS[place], "linestyle": _LINES[turn % len(_LINES)]}


def error_style(number: int) -> dict[str, Any]:
    """Of the error of a run."""
    turn, place = divmod(number, len(_RUN_COLORS))
    return {"color": _RUN_COLORS[place], "linestyle": _ERROR_LINES[turn % len(_ERROR_LINES)]}


def bar_style(number: int) -> dict[str, Any]:
    """Color and pattern of a run's bars."""
    turn, place = divmod(number, len(_RUN_COLORS))
    return {"color": _RUN_COLORS[place], "hatch": _HATCHES[turn % len(_HATCHES)]}


def printable(text: str) -> str:
    """What fonts, XML and UTF-8 can hold: control characters and halves of characters, which names
    from elsewhere may have, become �.
    """
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", "�", text)


def label(name: str, longest: int = _LONGEST) -> str:
    """A name on one line of a figure, cut where it is too long."""
    text = " ".join(printable(name).split())
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    # matplotlib leaves out of legends what is empty or starts with an underscore.
    return text if text and text[0] != "_" else f" {text}"


def page(title: str, body: str) -> str:
    """A whole document that needs nothing from elsewhere."""
    return printable(
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>"
    )


def section(heading: str, text: str, *parts: str) -> str:
    """A part of a page: heading, a paragraph (already markup), and what follows."""
    inner = "\n".join(parts)
    return f"<section>\n<h2>{html.escape(heading)}</h2>\n<p>{text}</p>\n{inner}\n</section>"


def embedded(figure: "Figure", description: str, *, vector: bool = False, dpi: int = 130) -> str:
    """The figure as markup: lines as SVG, pictures as WebP, a tenth of PNG's size. The figure is
    closed.
    """
    data = io.BytesIO()
    if vector:
        save(figure, data, format="svg", metadata={"Date": None})
    else:
        save(figure, data, format="webp", dpi=dpi, pil_kwargs={"quality": 80})
    media = "svg+xml" if vector else "webp"
    text = base64.b64encode(data.getvalue()).decode()
    alt = html.escape(re.sub(r"\s+", " ", description), quote=True)
    return f'<figure><img alt="{alt}" src="data:image/{media};base64,{text}"></figure>'


def save(figure: "Figure", to: Any, **options: Any) -> None:
    """Write a figure to a path or a stream, whatever its names are, and close it."""
    import matplotlib.pyplot as plt
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_text(printable(text.get_text()))
    figure.savefig(to, **options)
    plt.close(figure)


def pyplot() -> Any:
    """matplotlib, without a display unless the user has chosen one."""
    require("PIL.Image", "a figure")  # writes WebP and movies
    if "matplotlib.pyplot" not in sys.modules:
        require("matplotlib", "a figure").use("Agg")
    return require("matplotlib.pyplot", "a figure")


def styled(draw: Callable[_Inputs, _Output]) -> Callable[_Inputs, _Output]:
    """A function that draws in this style, and leaves the user's as it was. What is missing for
    figures is missed before it does anything.
    """

    @wraps(draw)
    def drawn(*args: _Inputs.args, **options: _Inputs.kwargs) -> _Output:
        with pyplot().rc_context(_FIGURES):
            return draw(*args, **options)

    return drawn


def logarithmic(ax: Any, *, x: bool = False) -> None:
    """Make the vertical axis logarithmic, or both; its numbers are text, since formulas are off."""
    ticker = require("matplotlib.ticker", "a figure")

    class Numbers(ticker.LogFormatter):
        def __call__(self, value: float, pos: int | None = None) -> str:
            return number(value) if super().__call__(value, pos) else ""

    ax.set(yscale="log", **({"xscale": "log"} if x else {}))
    for axis in (ax.yaxis, ax.xaxis) if x else (ax.yaxis,):
        axis.set_major_formatter(Numbers())
        axis.set_minor_formatter(Numbers(minor_thresholds=(1, 0.4)))


def number(value: float) -> str:
    """0.02, 500, 3·10⁻⁷."""
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{float(f'{value:.3g}'):g}"
    mantissa, exponent = f"{value:.2e}".split("e")
    digits = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    factor = f"{float(mantissa):g}·"
    return f"{'' if factor == '1·' else factor}10{digits}"
