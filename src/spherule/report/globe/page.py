"""A globe as markup: everything it needs is inside, and nothing is fetched."""

import base64
import html
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from spherule.files import write_whole
from spherule.report.globe.colors import color_maps
from spherule.report.globe.payload import ROOM, START, make_payload
from spherule.report.globe.still import png, still
from spherule.report.style import printable
from spherule.train.scene import Globe

SCRIPTS = ("data.js", "camera.js", "sphere.js", "pane.js", "controls.js", "input.js", "globe.js")


def write_globe(path: Path, globe: Globe) -> None:
    """One self-contained page."""
    parts = {"title": html.escape(globe.title), "globe": globe_section(globe)}
    markup = re.sub(r"\{(title|globe)\}", lambda name: parts[name[1]], _template("globe.html"))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, printable(markup))


def globe_section(globe: Globe, *, room: int = ROOM) -> str:
    """Markup for any page: the globe with its style, its script and its data, in about so many
    bytes.
    """
    payload = make_payload(globe, room=room)
    picture = base64.b64encode(_still(globe, payload)).decode()
    payload["shaders"] = {name: _template(f"{name}.glsl") for name in ("places", "sphere")}
    # Nothing in the data may end the element that holds it.
    data = json.dumps(payload, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    script = "\n".join(_template(name) for name in SCRIPTS)
    return "\n".join(
        [
            f"<style>\n{_template('globe.css')}</style>",
            "<spherule-globe>",
            f'<img class="globe-still" alt="{html.escape(_summary(globe), quote=True)}" '
            f'src="data:image/png;base64,{picture}">',
            f'<script type="application/json">{data}</script>',
            "</spherule-globe>",
            # In a function, so that a page may hold it twice.
            f'<script>\n(() => {{\n"use strict";\n{script}\n}})();\n</script>',
        ]
    )


def _still(globe: Globe, payload: dict[str, Any]) -> bytes:
    """What is seen first, as a picture."""
    if globe.image is not None and globe.image.grid.regular:
        return png(globe.image.rgb[0])
    first, source = globe.variables[0], payload["variables"][0]["sources"][0]
    table = color_maps().get(source["colors"])
    limits = source["limits"]
    if table is None:
        table = np.array([color for _, color in first.classes], np.uint8)
        limits = (0, len(table) - 1)
    return still(first.frames(source["name"])[0], first.grid, table, limits, START)


def _summary(globe: Globe) -> str:
    """The first picture in words."""
    variable = globe.variables[0]
    name = next(iter(variable.sources))
    values = variable.frames(name)[0]
    what = f"{globe.title}: {variable.name}, {globe.frames.labels[0]}".rstrip(", ")
    finite = values[np.isfinite(values)] if not variable.classes else values[:0]
    if not finite.size:
        return f"{what}."
    return f"{what}, from {finite.min():.4g} to {finite.max():.4g} {variable.units}".rstrip() + "."


def _template(name: str) -> str:
    return (
        resources.files("spherule.report.globe").joinpath("web").joinpath(name).read_text("utf-8")
    )
