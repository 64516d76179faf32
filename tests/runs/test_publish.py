"""Models for others. The Hub's API by the stand-in of tests/models/test_hub.py."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from spherule.models import from_pretrained
from spherule.runs import Run, evaluate, publish, train
from tests.models.test_hub import COMMIT, StandIn
from tests.tiny import silent, tiny


def test_card_says_what_the_run_reached_and_how(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", StandIn(tmp_path))
    run = Run.open(finished)
    run = replace(run, config=replace(run.config, title="S² of a test"))
    address = publish(run, "hf://someone/water", log=silent)
    card = (tmp_path / "someone/water" / COMMIT / "README.md").read_text()
    mean = evaluate(run, log=silent)["test"]["l2"]["mean"]
    assert f"| {mean:.4g} ± " in card
    assert '"recipe": "swe/test"' in card
    assert '"title": "S² of a test"' in card
    assert from_pretrained(address).config == run.model.config


def test_a_published_directory_is_a_model_and_a_run(finished: Path, tmp_path: Path) -> None:
    run = Run.open(finished)
    where = publish(run, tmp_path / "water", notes="Not for swimming.", log=silent)
    again = Run.open(where)
    assert again.config == run.config
    assert again.checkpoint.step == run.checkpoint.step
    for mine, theirs in zip(run.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)
    assert type(from_pretrained(where)) is type(run.model)
    assert evaluate(again, log=silent)["test"] == evaluate(run, log=silent)["test"]
    assert (
        evaluate(again, log=silent)["training_loss"] == evaluate(run, log=silent)["training_loss"]
    )
    card = (tmp_path / "water/README.md").read_text()
    assert "Not for swimming." in card
    assert f'from_pretrained("{where}")' in card


def test_a_run_is_not_published_over(finished: Path) -> None:
    with pytest.raises(ValueError, match="holds something else"):
        publish(Run.open(finished), finished, log=silent)


def test_what_is_published_is_not_trained_over(finished: Path, tmp_path: Path) -> None:
    where = tmp_path / "water"
    publish(Run.open(finished), where, log=silent)
    for how in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(FileExistsError, match="holds a published model; give another --out"):
            train(tiny(), where, log=silent, **how)


def test_what_a_full_disk_cut_short_is_published_again(
    finished: Path, tmp_path: Path, monkeypatch
) -> None:
    run = Run.open(finished)

    def full(*args: object, **options: object) -> None:
        (tmp_path / "water/config.json").write_text("{}")
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(type(run.model), "save_pretrained", full)
        with pytest.raises(OSError, match="no space"):
            publish(run, tmp_path / "water", log=silent)
    publish(run, tmp_path / "water", log=silent)
    assert Run.open(tmp_path / "water").config == run.config
