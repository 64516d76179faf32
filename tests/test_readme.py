import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_example_prints_what_the_readme_shows() -> None:
    text = README.read_text()
    example, shown = re.findall(r"```(?:python)?\n(.*?)```", text, re.DOTALL)[:2]
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=True
    )
    assert done.stdout == shown
