"""Operators: what they need, and what they don't."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
from spherule import Grid, models

grid = Grid.gauss(8, 16)
model = models.build(models.TransformerConfig(width=8, depth=1, skip="spectral"), grid, 3, 3)
x = torch.randn(1, 3, 8, 16)
with torch.inference_mode():
    model(x)
model(x).sum().backward()
print("torch._dynamo" in sys.modules)
"""


def test_a_model_runs_forward_and_backward_without_the_compiler() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr
