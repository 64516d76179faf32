"""What can be shown on a globe, and what is refused."""

import numpy as np
import pytest

from spherule import Grid
from spherule.train.scene import Frames, Globe, Variable

GRID = Grid.gauss(4, 8)


def waves(frames: int) -> Variable:
    return Variable("waves", GRID, {"model": np.zeros((frames, *GRID.shape))})


def test_a_globe_has_a_variable_at_least() -> None:
    assert Globe("one", [waves(1)]).variables
    with pytest.raises(ValueError, match="variables: expected at least one"):
        Globe("none", [])


def test_variables_have_as_many_frames_as_the_slider_or_one() -> None:
    frames = Frames.hours([0, 1, 2])
    for count in (1, 3):
        assert Globe("as many", [waves(count)], frames).frames is frames
    with pytest.raises(ValueError, match="expected 3 frames or one, got 2"):
        Globe("fewer", [waves(2)], frames)


def test_frames_have_a_place_each_or_none() -> None:
    assert Frames(("here",), places=((0.0, 0.0),)).places
    with pytest.raises(ValueError, match="places: expected 2, got 1"):
        Frames(("here", "there"), places=((0.0, 0.0),))
    with pytest.raises(ValueError, match="at least one frame"):
        Frames(())
