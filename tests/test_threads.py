import os
import subprocess
import sys

import pytest

LOOK = """import os, spherule.cli, sys; {}
print(os.environ.get('GOMP_SPINCOUNT'), 'torch' in sys.modules)"""


def environment(code: str, **variables: str) -> str:
    """What a fresh process prints."""
    chosen = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    clean = {name: value for name, value in os.environ.items() if name not in chosen}
    command = [sys.executable, "-c", LOOK.format(code)]
    done = subprocess.run(
        command, env=clean | variables, capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[-2]


@pytest.mark.parametrize(
    ("code", "variables", "expected"),
    [
        ("", {}, "None False"),
        ("sys.argv = ['spherule', '--version']; spherule.cli.main();", {}, "1000 False"),
        ("spherule.cli.spin_briefly();", {"OMP_WAIT_POLICY": "passive"}, "None False"),
        ("spherule.cli.spin_briefly();", {"GOMP_SPINCOUNT": "7"}, "7 False"),
        ("import torch; spherule.cli.spin_briefly();", {}, "None True"),
    ],
)
def test_the_command_line_says_how_threads_wait_before_torch_is_there(
    code: str, variables: dict[str, str], expected: str
) -> None:
    assert environment(code, **variables) == expected
