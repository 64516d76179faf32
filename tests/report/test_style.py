"""How numbers stand beside axes."""

import numpy as np
import pytest

from spherule.report.style import logarithmic, number, pyplot


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.02, "0.02"), (500, "500"), (1e-4, "10⁻⁴"), (3e-7, "3·10⁻⁷"), (1e12, "10¹²")],
)
def test_numbers_are_read_as_they_are_written(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize("low", [1e-8, 0.3])
def test_logarithmic_axes_have_numbers_and_no_formulas(low: float) -> None:
    plt = pyplot()
    figure, ax = plt.subplots()
    ax.plot(range(1, 101), np.geomspace(low, 1, 100))
    logarithmic(ax, x=True)
    figure.canvas.draw()
    for axis in (ax.xaxis, ax.yaxis):
        labels = [
            label.get_text()
            for which in ("major", "minor")
            for label in axis.get_ticklabels(which=which)
        ]
        assert any(labels)
        assert not any("$" in label for label in labels)
    plt.close(figure)
