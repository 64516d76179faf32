"""images/layers.svg: which package imports which, drawn from the imports themselves."""

from pathlib import Path

import grimp
import networkx
from importlinter.api import read_configuration
from sphinx.application import Sphinx

WIDTH, BOX, HEIGHT, PITCH, STEP = 880, 118, 34, 162, 70


def layers() -> list[list[str]]:
    """From the command line down, as import-linter's contract has them."""
    (contract,) = read_configuration()["contracts_options"]
    return [row.split(" | ") for row in contract["layers"]]


def imports(packages: list[str]) -> networkx.DiGraph:
    """Importer to imported, less what follows from the others."""
    graph = grimp.build_graph("spherule")
    for name in packages:
        graph.squash_module(f"spherule.{name}")
    pairs = networkx.DiGraph(
        (a, b)
        for a in packages
        for b in packages
        if a != b and graph.direct_import_exists(importer=f"spherule.{a}", imported=f"spherule.{b}")
    )
    return networkx.transitive_reduction(pairs)


def draw() -> str:
    """Boxes in rows, and curves from importer to imported."""
    rows = layers()
    place = {
        name: (round(WIDTH / 2 + (i - (len(row) - 1) / 2) * PITCH), 30 + STEP * y)
        for y, row in enumerate(rows)
        for i, name in enumerate(row)
    }
    parts = []
    for a, b in sorted(imports(list(place)).edges):
        (xa, ya), (xb, yb) = place[a], place[b]
        start, end = ya + HEIGHT // 2, yb - HEIGHT // 2
        # What is right below is joined straight, what is farther down around the boxes between.
        far = yb - ya > STEP
        bend = 220 if far and xa == xb else 0
        above, below = start + (end - start) // 3, end - (end - start) // 3
        kind = "far" if far else "near"
        parts.append(
            f'<path class="{kind}" d="M{xa} {start}C{xa + bend} {above} '
            f'{xb + bend} {below} {xb} {end}">'
            f"<title>{a} imports {b}</title></path>"
        )
    for name, (x, y) in place.items():
        parts.append(
            f'<rect x="{x - BOX // 2}" y="{y - HEIGHT // 2}" width="{BOX}" height="{HEIGHT}"/>'
            f'<text x="{x}" y="{y + 5}">{name}</text>'
        )
    style = (
        "rect{fill:#eef4f8;stroke:#14527a;rx:8px}.ground{fill:#fff;stroke:none}"
        "text{font:15px monospace;text-anchor:middle;fill:#12212c}"
        "path{fill:none;stroke:#14527a;stroke-width:1.3;opacity:.7}"
        ".far{stroke-dasharray:4 4}"
    )
    size = f'width="{WIDTH}" height="{60 + STEP * (len(rows) - 1)}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>',
            f'<rect class="ground" {size}/>',
            *parts,
            "</svg>\n",
        ]
    )


def _write(app: Sphinx) -> None:
    path, picture = Path(app.srcdir, "images", "layers.svg"), draw()
    if not path.exists() or path.read_text() != picture:
        path.write_text(picture)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
