import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from spherule.train.optim import Adam
from spherule.train.training_config import TrainingConfig


def model_with_all_kinds() -> nn.ParameterList:
    """A matrix, a complex one, and one that is never used."""
    torch.manual_seed(0)
    return nn.ParameterList(
        [torch.randn(4, 3), torch.randn(3, dtype=torch.complex64), torch.randn(2)]
    )


def loss(parameters: nn.ParameterList, step: int) -> torch.Tensor:
    x = torch.randn(4, generator=torch.Generator().manual_seed(step))
    return ((x @ parameters[0] - parameters[1]).abs() ** 2).sum()


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize(
    ("name", "theirs"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)]
)
def test_steps_are_those_of_torchs_optimizers(name, theirs, decay) -> None:
    ours, expected = model_with_all_kinds(), model_with_all_kinds()
    adam = Adam(ours.parameters(), TrainingConfig(optimizer=name, weight_decay=decay))
    peer = theirs(expected.parameters(), weight_decay=decay)
    for step in range(5):
        rate = 0.1 / (step + 1)
        peer.param_groups[0]["lr"] = rate
        for parameters, optimizer in ((ours, adam), (expected, peer)):
            optimizer.zero_grad()
            loss(parameters, step).backward()
        adam.step(rate)
        peer.step()
    for a, b in zip(ours, expected, strict=True):
        assert torch.equal(a, b)


def test_a_restored_state_goes_on_bit_by_bit() -> None:
    whole, halves = model_with_all_kinds(), model_with_all_kinds()
    settings = TrainingConfig()
    first, second, third = (Adam(p.parameters(), settings) for p in (whole, halves, halves))
    for step in range(6):
        if step == 3:
            third.restore({name: t.clone() for name, t in second.tensors().items()})
        for parameters, optimizer in ((whole, first), (halves, second if step < 3 else third)):
            optimizer.zero_grad()
            loss(parameters, step).backward()
            optimizer.step(0.01)
    for a, b in zip(whole, halves, strict=True):
        assert torch.equal(a, b)


def test_training_does_without_torchs_compiler(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from spherule.runs import train\n"
        "from tests.tiny import silent, tiny\n"
        "train(tiny(epochs=1), Path(sys.argv[1]), log=silent)\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    root = Path(__file__).parent.parent.parent
    subprocess.run([sys.executable, "-c", code, tmp_path / "run"], check=True, cwd=root)
