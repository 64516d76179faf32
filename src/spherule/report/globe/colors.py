"""Color maps that everybody can read: made of lightness, so that no hue is needed to rank values.

Lines in OKLCH, Ottosson's perceptual space. Lightness rises along a sequential map and towards the
middle of a diverging one, whose sides are blue and orange, or purple and yellow: pairs that
color-blind people tell apart.
"""

import numpy as np
from numpy.typing import NDArray

SIZE = 256

_LMS = np.array(
    [
        [1.0, 0.3963377774, 0.2158037573],
        [1.0, -0.1055613458, -0.0638541728],
        [1.0, -0.0894841775, -1.2914855480],
    ]
)
_RGB = np.array(
    [
        [4.0767416621, -3.3077115913, 0.2309699292],
        [-1.2684380046, 2.6097574011, -0.3413193965],
        [-0.0041960863, -0.7034186147, 1.7076147010],
    ]
)


def color_maps() -> dict[str, NDArray[np.uint8]]:
    """`sequential`, `diverging` and `error`: (256, 3)."""
    t = np.linspace(0, 1, SIZE)
    return {
        "sequential": _srgb(
            0.22 + 0.72 * t, 0.13 * np.sin(np.pi * (0.18 + 0.64 * t)), 300 - 200 * t
        ),
        "diverging": _two_sided(255.0, 40.0),
        "error": _two_sided(300.0, 75.0),
    }


def _two_sided(low: float, high: float) -> NDArray[np.uint8]:
    """From one hue over near white to the other."""
    s = np.linspace(-1, 1, SIZE)
    away = np.abs(s)
    chroma = 0.15 * np.sin(np.pi / 2 * np.minimum(away * 1.5, 1)) * (1 - 0.25 * away)
    return _srgb(0.97 - 0.60 * away, chroma, np.where(s < 0, low, high))


def _srgb(lightness: NDArray, chroma: NDArray, hue: NDArray) -> NDArray[np.uint8]:
    """Colors of OKLCH (degrees); less chroma where a screen has no such color."""
    a, b = np.cos(np.radians(hue)), np.sin(np.radians(hue))
    for _ in range(300):
        lab = np.stack([lightness, chroma * a, chroma * b], axis=-1)
        linear = (lab @ _LMS.T) ** 3 @ _RGB.T
        outside = ((linear < -1e-4) | (linear > 1 + 1e-4)).any(axis=-1)
        if not outside.any():
            break
        chroma = np.where(outside, chroma * 0.995, chroma)
    linear = linear.clip(0, 1)
    curved = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.rint(255 * curved).astype(np.uint8)
