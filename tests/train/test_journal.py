import json
from pathlib import Path

import pytest

from spherule.train.journal import read_journal


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        ({"step": 0}, True),
        ({"step": 2**63 - 1}, True),
        ({"step": 2**63}, False),
        ({"step": -1}, False),
        ({"step": True}, False),
        ({"step": 1.0}, False),
        ({"loss": 0.5}, False),
        ({"step": 1, "loss": 0.5}, True),
        ({"step": 1, "loss": "0.5"}, False),
        ({"step": 1, "training_loss": None}, True),
        ({"step": 1, "training_loss": []}, False),
        ({"step": 1, "validation": {"loss": {"mean": 0.5}}}, True),
        ({"step": 1, "validation": {"loss": 0.5}}, False),
        ({"step": 1, "validation": None}, False),
    ],
)
def test_records_are_whole_or_left_out(tmp_path: Path, record: dict, kept: bool) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps(record) + "\n")
    assert read_journal(path) == [record] * kept
