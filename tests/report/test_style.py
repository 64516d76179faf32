"""How numbers stand beside axes."""

import base64
import re
import warnings
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from spherule import Grid
from spherule.report import curves, figures
from spherule.report.curves import draw_losses
from spherule.report.globe import write_globe
from spherule.report.style import logarithmic, number, page, pyplot, styled
from spherule.report.table import Cell, ResultsTable, red
from spherule.train.figures import (
    Bars,
    ByLatitude,
    ColorScale,
    Figure,
    ImageColumn,
    Images,
    Maps,
    Panel,
    RingCurve,
    Spectra,
    SpectralCurves,
)
from spherule.train.scene import Frames, Globe, Variable

draw = styled(figures.draw)
ODD = ["$x", "$\\frac{$", "\\", "{0}%s%(a)d", "", "_hidden", " ", "a\nb", "a\x00\x07b", "\ud800"]
ODD += ["--><b>", "日本", "a" * 300]
GRID = Grid.gauss(4, 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.02, "0.02"),
        (500, "500"),
        (1000, "1000"),
        (-2500, "-2500"),
        (1e-4, "10⁻⁴"),
        (3e-7, "3·10⁻⁷"),
        (1e12, "10¹²"),
    ],
)
def test_numbers_are_read_as_they_are_written(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("low", [1e-8, 0.3])
def test_logarithmic_axes_have_numbers_and_no_formulas(low: float) -> None:
    plt = pyplot()
    figure, ax = plt.subplots()
    ax.plot(range(1, 101), np.geomspace(low, 1, 100))
    logarithmic(ax, x=True)
    figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        labels = [
            label.get_text()
            for which in ("major", "minor")
            for label in axis.get_ticklabels(which=which)
        ]
        assert any(labels)
        assert not any("$" in label for label in labels)
    plt.close(figure)


def of_many(names: list[str]) -> dict[str, Figure]:
    """A figure of each kind with a curve, picture or bar for each of the names."""
    field, image = np.arange(32.0).reshape(4, 8), np.zeros((1, 4, 8))
    power = np.geomspace(1, 1e-3, 5)[None]
    scale = {"": ColorScale(0, 1, "viridis", names[0])}
    return {
        "maps": Maps(names[0], names[0], GRID, [[Panel(n, field) for n in names[:3]]]),
        "latitude": ByLatitude(names[:1], [RingCurve(n, GRID, field[:, :1].T) for n in names], ""),
        "spectra": Spectra(names[:1], [SpectralCurves(n, power, power, power) for n in names]),
        "images": Images(
            [ImageColumn(n, image, "") for n in names[:3]], scale, [(names[0], (1, 2, 3))]
        ),
        "bars": Bars(names[:2], {n: np.array([0.5, 0.7]) for n in names}, names[0]),
    }


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list:
    """Figures, as they are embedded."""
    kept: list = []
    for module in (curves, figures):
        plain = module.embedded
        monkeypatch.setattr(
            module,
            "embedded",
            lambda f, *a, _plain=plain, **k: kept.append(f) or _plain(f, *a, **k),
        )
    return kept


def losses(names: list[str]) -> str:
    journal = [{"step": i, "loss": 1 / i} for i in (1, 2)]
    journal.append({"step": 2, "validation": {"loss": {"mean": 0.5}}})
    return draw_losses(names, [journal] * len(names))


@pytest.mark.filterwarnings("ignore:Glyph:UserWarning")  # DejaVu has no Japanese
@pytest.mark.parametrize("kind", ["losses", "maps", "latitude", "spectra", "images", "bars"])
@pytest.mark.parametrize("odd", ODD)
def test_figures_take_any_name(kind: str, odd: str, drawn: list) -> None:
    names = [odd, "second", f"third {odd}"]
    markup = losses(names) if kind == "losses" else draw(of_many(names)[kind])
    for svg in re.findall(r"svg\+xml;base64,([^\"]+)", markup):
        ElementTree.fromstring(base64.b64decode(svg))
    for legend in (legend for figure in drawn for legend in figure.legends):
        shown = len(legend.get_texts())
        assert shown == {"losses": 3, "latitude": 3, "spectra": 7, "images": 1, "bars": 3}[kind]
    assert kind == "maps" or drawn[0].legends


@pytest.mark.parametrize("kind", ["losses", "latitude", "spectra", "bars"])
def test_two_dozen_runs_are_told_apart_and_leave_room_for_their_curves(
    kind: str, drawn: list
) -> None:
    names = [f"Transformer on the sphere, seed {i}" for i in range(24)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _ = losses(names) if kind == "losses" else draw(of_many(names)[kind])
    (figure,) = drawn
    (ax,), (legend,) = figure.axes, figure.legends
    box, below = ax.get_window_extent(), legend.get_window_extent()
    assert box.height / figure.dpi > 1.5
    assert below.y1 < box.y0
    assert 0 <= below.x0 < below.x1 <= figure.bbox.x1
    looks = [
        (h.get_color(), h.get_linestyle(), h._dash_pattern) if hasattr(h, "get_color")
        else (h[0].get_facecolor(), h[0].get_hatch())
        for h in ax.get_legend_handles_labels()[0]
    ]  # fmt: skip
    assert len(set(map(str, looks))) == len(looks)


@pytest.mark.parametrize("kind", ["maps", "images"])
def test_many_models_stand_below_each_other(kind: str, drawn: list) -> None:
    field, image = np.arange(32.0).reshape(4, 8), np.zeros((1, 4, 8, 3))
    names = [f"model {i}" for i in range(12)]
    rows = [[Panel(n, field) for n in names], [Panel(n, field, "error") for n in names[:7]]]
    draw(
        Maps("u", "u", GRID, rows)
        if kind == "maps"
        else Images([ImageColumn(n, image) for n in names], {})
    )
    shown = [[ax.get_title() for ax in figure.axes if ax.get_title()] for figure in drawn]
    assert {title for titles in shown for title in titles} == set(names)
    assert all(figure.get_size_inches()[0] < 24 for figure in drawn)


def test_many_sentences_are_folded_away() -> None:
    few, many = red(["a"] * 6), red([f"<{i}>" for i in range(40)])
    assert "details" not in few
    assert many.index("&lt;5&gt;") < many.index("34 more") < many.index("&lt;6&gt;")


def test_long_names_take_several_lines_of_a_table() -> None:
    row = (Cell("a" * 31), Cell("a" * 30), Cell("1" * 40, 1.0))
    other = (Cell("b"), Cell("c"), Cell("2", 2.0))
    table = ResultsTable(("Model", "", "loss ↓"), (row, other), "")
    assert table.html().count("class=long") == 1
    assert table.html().count("class=best") == 1


@pytest.mark.parametrize("odd", ODD)
def test_pages_and_tables_take_any_name(odd: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(page(odd, odd), encoding="utf-8")
    field = np.arange(32, dtype=np.float32).reshape(1, 4, 8)
    globe = Globe(odd, [Variable(odd, GRID, {odd: field}, units=odd)], Frames.hours([0.0]))
    write_globe(tmp_path / "globe.html", globe)
    table = ResultsTable(("Model", "loss ↓"), ((Cell(f"{odd}|x\ny"), Cell("1", 1.0)),), odd)
    row = table.markdown().splitlines()[2]
    assert len(re.findall(r"(?<!\\)\|", row)) == 3
    assert row.endswith(r"\|x y | 1 |")
    row.encode()
