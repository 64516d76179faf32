"""benchmarks/compare.py: only what is slower beyond the noise counts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "compare.py"


@pytest.mark.parametrize(
    ("now", "slower"),
    [
        ((8.0, 8.5, 8.9), True),  # a tenth and more, quartiles apart
        ((8.0, 8.5, 9.6), False),  # quartiles overlap
        ((9.2, 9.3, 9.4), False),  # less than a tenth
        ((11.0, 12.0, 13.0), False),
    ],
)
def test_slower_is_a_tenth_beyond_the_noise(now, slower: bool, tmp_path: Path) -> None:
    for name, row in (("old", (9.5, 10.0, 10.5)), ("new", now)):
        kept = {"sht: analysis": dict(zip(("low", "median", "high"), row, strict=True))}
        (tmp_path / f"{name}.json").write_text(json.dumps(kept))
    command = [sys.executable, str(SCRIPT), *(str(tmp_path / f"{n}.json") for n in ("old", "new"))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == slower
    assert ("sht: analysis: 10 to" in done.stdout) is slower
