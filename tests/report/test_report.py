"""Pages about runs: many runs, odd titles, other grids, other tasks."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from spherule import Grid
from spherule.report import figures
from spherule.report.figures import draw_sections
from spherule.report.page import write_report
from spherule.report.table import _mean_and_deviation, results_table
from spherule.runs import train
from spherule.train.figures import Bars, Folded, Section
from spherule.train.scene import Frames, Globe, Variable
from tests.tiny import TINY, silent, tiny


@pytest.fixture(scope="module")
def other_grid(tmp_path_factory) -> Path:
    config = replace(tiny(epochs=1), task=replace(TINY.task, grid="gauss:10x20"))
    return train(config, tmp_path_factory.mktemp("other") / "run", log=silent)


def test_each_model_is_shown_its_own_data_and_no_best_is_marked_across_them(
    tmp_path: Path, finished: Path, other_grid: Path
) -> None:
    write_report(tmp_path / "page.html", [finished, other_grid], log=silent)
    page = (tmp_path / "page.html").read_text()
    assert "gauss:12x24 and gauss:10x20" in page
    table = results_table([finished, other_grid], log=silent)
    assert "measured on" in table.headings
    assert table.best() == [None] * len(table.headings)
    assert "4 samples on gauss:10x20" in table.markdown()


def test_equal_shapes_with_other_data_are_not_compared(tmp_path: Path, finished: Path) -> None:
    config = replace(tiny(epochs=1), task=replace(TINY.task, damping_time=7200.0))
    damped = train(config, tmp_path / "damped", log=silent)
    assert results_table([finished, damped], log=silent).best() == [None] * 7
    same = train(tiny(epochs=1), tmp_path / "same", log=silent)
    assert any(results_table([finished, same], log=silent).best())


def test_runs_of_different_tasks_are_refused_by_name(tmp_path: Path, finished: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(finished, other)
    config = json.loads((other / "config.json").read_text())
    config["task"] = {"type": "forecast"}
    (other / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"other \(Forecast\).*different tasks"):
        write_report(tmp_path / "page.html", [finished, other], log=silent)


def test_ten_runs_with_dollars_in_their_titles_fit_on_a_page(
    tmp_path: Path, finished: Path
) -> None:
    directories = []
    for number in range(10):
        directories.append(tmp_path / f"run{number}")
        shutil.copytree(finished, directories[-1])
        path = directories[-1] / "config.json"
        config = json.loads(path.read_text())
        path.write_text(json.dumps({**config, "title": f"$run_{number} <b> \\frac $"}))
    write_report(tmp_path / "page.html", directories, log=silent)
    page = (tmp_path / "page.html").read_text()
    assert "$run_9 &lt;b&gt;" in page
    assert "<b> \\frac" not in page


def test_every_run_of_many_has_a_look_of_its_own() -> None:
    from spherule.report.style import run_style

    looks = [tuple(map(str, run_style(k).values())) for k in range(30)]
    assert len(set(looks)) == 30


def test_globes_share_what_pictures_leave_of_a_page() -> None:
    grid, frames = Grid.gauss(48, 96), 90
    noise = np.random.default_rng(0).standard_normal((frames, *grid.shape))
    large, small = (
        Globe(name, [Variable("u", grid, {"file": u})], Frames.hours(range(len(u))))
        for name, u in (("large", noise), ("small", noise[:2]))
    )
    bars = Bars(["a", "b"], {"model": np.array([0.5, 0.7])}, "score")
    parts = [Section("Globes", "", [small, large]), Section("Bars", "", [bars])]
    alone = len("".join(draw_sections([Section("", "", [small])], room=3_000_000)))
    for room in (600_000, 800_000):
        drawn = draw_sections(parts, room=room)
        assert 0.6 * room < sum(map(len, drawn)) < room
        # What the first does not need is the second's.
        assert len(drawn[0]) > 1.5 * alone
        assert "frames is shown, of 90" in drawn[0]


def test_what_is_folded_away_has_an_end(monkeypatch) -> None:
    bars = Bars(["a", "b"], {"model": np.array([0.5, 0.7])}, "score")
    part = Section("", "", [Folded("More", [bars] * 5)])
    (whole,) = draw_sections([part], room=3_000_000)
    assert whole.count("<figure>") == 5
    assert "left out" not in whole
    monkeypatch.setattr(figures, "FOLDED", len(whole) // 4)
    (cut,) = draw_sections([part], room=3_000_000)
    assert cut.count("<figure>") == 2
    assert "3 more are left out" in cut


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [
        (0.0088, 0.0012, "0.0088 ± 0.0012"),
        (0.1123, 0.0051, "0.112 ± 0.005"),
        (1.08e-5, 4.1e-6, "0.000011 ± 0.000004"),
        (0.0, 0.0, "0.0000 ± 0.0000"),
        (float("nan"), 0.0, "nan ± 0.000"),
    ],
)
def test_small_numbers_in_tables_keep_two_digits(mean: float, std: float, text: str) -> None:
    assert _mean_and_deviation({"mean": mean, "std": std}).text == text
