"""What the most used names say of themselves: every argument, and an example that runs."""

import doctest
import inspect
import re
from collections.abc import Callable

import pytest

from spherule import Grid, Neighborhood, models, nn, objectives, ops

MOST_USED = [
    Grid.gauss,
    Grid.healpix,
    Grid.octahedral,
    Grid.from_name,
    Grid.match,
    Neighborhood.disk,
    ops.sht,
    ops.isht,
    ops.power_spectrum,
    ops.integrate,
    ops.resample,
    ops.rotate,
    ops.random_field,
    ops.equivariance_error,
    ops.neighborhood_attention,
    ops.global_attention,
    nn.SphericalAttention,
    nn.DiscoConv,
    models.Transformer,
    models.build,
    models.from_pretrained,
    objectives.l2,
]


@pytest.mark.parametrize("value", MOST_USED, ids=lambda value: value.__qualname__)
def test_every_argument_is_described_in_order(value: Callable) -> None:
    described = re.search(r"Args:\n((?: {4,}.*\n)+)", inspect.getdoc(value) + "\n")
    assert described is not None
    names = re.findall(r"^ {4}(\w+):", described[1], re.MULTILINE)
    assert names == list(inspect.signature(value).parameters)


@pytest.mark.parametrize("value", MOST_USED, ids=lambda value: value.__qualname__)
def test_example_prints_what_it_shows(value: Callable) -> None:
    text = inspect.getdoc(value)
    test = doctest.DocTestParser().get_doctest(text, {}, value.__qualname__, None, None)
    assert test.examples
    runner = doctest.DocTestRunner()
    runner.run(test)
    assert runner.summarize(verbose=False).failed == 0
