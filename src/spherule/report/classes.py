"""Colours of the classes of panoramas, and what they stand for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spherule.data.panoramas import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def class_colours() -> NDArray[np.uint8]:
    """One colour a class, (classes, 3)."""
    return np.array(COLOURS, dtype=np.uint8)


def class_legend(figure: "Figure", classes: Sequence[str], *, columns: int = 7) -> None:
    """Name the colours below the figure."""
    from matplotlib.patches import Patch

    patches = [
        Patch(facecolor=colour / 255, edgecolor="0.6", label=name)
        for colour, name in zip(class_colours(), classes, strict=True)
    ]
    figure.legend(
        handles=patches, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
