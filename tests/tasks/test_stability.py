"""What training adds so that a forecast can follow itself, and what is fitted before it."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from spherule import ops, recipes
from spherule.models import LinearConfig, TransformerConfig
from spherule.runs import Run, evaluate, train
from spherule.tasks import ShallowWaterTaskConfig
from spherule.train import Interrupted
from tests.tiny import TINY, losses, silent, tiny

STABLE = {"ages": 0.5, "noise": 0.05, "unroll": (0.4, 0.3, 0.3), "unroll_from": 0.5}


def stable_run():
    task = replace(TINY.task, **STABLE)
    model = TransformerConfig(
        width=8, depth=1, skip="spectral", skip_lmax=4, bandlimit=4, keep_mean=True
    )
    return replace(tiny(ema=0.9, clip=1.0), task=task, model=model)


def test_a_stable_run_goes_on_bit_by_bit(tmp_path: Path) -> None:
    def interrupt(event) -> None:
        if event.step == 5:
            raise KeyboardInterrupt

    whole = train(stable_run(), tmp_path / "whole", log=silent)
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(stable_run(), tmp_path / "cut", on_step=interrupt, log=silent)
    train(stable_run(), tmp_path / "cut", resume=True, log=silent)
    assert losses(tmp_path / "cut") == losses(whole)


def test_the_number_of_leads_is_a_function_of_the_step() -> None:
    task = replace(TINY.task, **STABLE).open(0)
    drawn = []
    for step in range(200):
        task.begin_step(0, step, 200)
        drawn.append(task._leads)
    assert set(drawn[:100]) == {1}
    share = np.bincount(drawn[100:], minlength=5) / 100
    assert np.allclose(share[[1, 2, 4]], STABLE["unroll"], atol=0.15)
    task.begin_step(0, 150, 200)
    assert task._leads == drawn[150]
    assert len(task.training[0]) == 5  # the most leads, and the input


def test_noise_has_the_deviation_and_the_spectrum_that_were_asked_for() -> None:
    task = replace(TINY.task, noise=0.3, noise_slope=1.0, noise_lmax=4).open(0)
    noise = task._noise(torch.zeros(400, 3, 12, 24)).double()
    variance = ops.integrate(noise.square(), task.grid).mean() / (4 * math.pi)
    assert variance.sqrt().item() == pytest.approx(0.3, rel=0.03)
    power = ops.power_spectrum(ops.sht(noise, task.grid, 6)).mean((0, 1))
    assert power[5:].max() < 1e-6 * power[0]
    expected = power[0] / (torch.arange(5) + 1)
    assert torch.allclose(power[:5].double(), expected.double(), rtol=0.2)


def test_gradients_of_the_last_lead_only_stop_at_its_input() -> None:
    seen = []

    class Halves(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.tensor(0.5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(x.requires_grad)
            return self.weight * x

    for gradient, expected in (("all", [False, True]), ("last", [False, False])):
        seen.clear()
        task = replace(TINY.task, leads=2, unroll_gradient=gradient).open(0)
        batch = [t[None] for t in task.training[0]]
        task.loss(Halves(), batch).sum().backward()
        assert seen == expected


def test_a_fitted_baseline_is_a_run_without_steps(tmp_path: Path) -> None:
    linear = replace(tiny(epochs=0), model=LinearConfig(lmax=4))
    directory = train(linear, tmp_path / "linear", log=silent)
    run = Run.open(directory)
    assert run.checkpoint.step == 0
    assert losses(directory) == []
    fitted = evaluate(run, log=silent)["test"]["loss"]["mean"]
    task = run.task()
    still = torch.stack([(task.test[i][0] - task.test[i][1]).square().mean() for i in range(4)])
    assert fitted < 0.2 * still.mean().item()


def test_a_network_begins_where_its_fitted_skip_is(tmp_path: Path) -> None:
    spectral = replace(stable_run(), task=TINY.task)
    begun = train(replace(spectral, training=tiny(epochs=1).training), tmp_path / "a", log=silent)
    linear = replace(tiny(epochs=0), model=LinearConfig(lmax=4))
    fitted = evaluate(Run.open(train(linear, tmp_path / "b", log=silent)), log=silent)
    assert losses(begun)[0][1] < 2 * fitted["test"]["loss"]["mean"]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("noise", -1.0, "noise="),
        ("unroll", (0.0, 0.0), "unroll="),
        ("unroll", (1.0, -1.0), r"unroll\[1\]"),
        ("unroll_from", 1.5, "unroll_from="),
        ("ages", -2.0, "ages="),
        ("leads", 0, "leads="),
    ],
)
def test_bad_settings_are_named(field: str, value: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ShallowWaterTaskConfig(**{field: value})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no --leads"):
        ShallowWaterTaskConfig(unroll=(1.0, 1.0), leads=2)


def test_the_recipe_for_stable_forecasts_has_all_of_it() -> None:
    config = recipes.get("swe/spectral-transformer-local-stable")
    assert config.model.skip == "spectral"
    assert config.model.bandlimit == 42
    assert config.model.keep_mean
    assert (config.task.ages, config.task.noise) == (10.0, 0.05)
    assert config.training.ema > 0
    small = recipes.get("swe/spectral-transformer-local-stable:small")
    assert small.model.bandlimit == 21


@pytest.mark.parametrize(("weights", "leads"), [((1.0,), 1), ((0.5, 0.5), 2), ((0.0, 0, 1), 4)])
def test_each_weight_stands_for_twice_as_many_leads_as_the_last(weights, leads: int) -> None:
    assert replace(TINY.task, unroll=weights).most_leads == leads
