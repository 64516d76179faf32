"""A run on the Hub; its API by the stand-in of tests/models/test_hub.py."""

import sys
from pathlib import Path

import pytest

from spherule.models import from_pretrained
from spherule.runs import Run, evaluate, publish
from tests.models.test_hub import COMMIT, StandIn
from tests.tiny import silent


def test_card_says_what_the_run_reached_and_how(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", StandIn(tmp_path))
    run = Run.open(finished)
    address = publish(run, "hf://someone/water", log=silent)
    card = (tmp_path / "someone/water" / COMMIT / "README.md").read_text()
    mean = evaluate(run, log=silent)["test"]["l2"]["mean"]
    assert f"| {mean:.4g} ± " in card
    assert '"recipe": "swe/test"' in card
    assert from_pretrained(address).config == run.model.config
