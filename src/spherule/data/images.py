"""Images from outside, hostile until proven otherwise, and their way to a smaller grid.

A panorama's pixel is a cell of the sphere. A cell of the smaller grid is the average of what lies
in it, weighted by solid angle, at any ratio of the sizes.
"""

import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from jaxtyping import Float, Shaped, UInt8
from numpy.typing import NDArray

from spherule.data.panoramas import BadPanorama
from spherule.optional import require

MAX_PIXELS = 32_000_000


def read_png(
    path: Path, name: str, modes: tuple[str, ...]
) -> Shaped[np.ndarray, "height width ..."]:
    """The pixels of a PNG file of one of these modes, or `BadPanorama` under this name.

    Its size is read from the header and refused before anything is decoded.
    """
    Image = require("PIL.Image", "reading images")
    if not path.is_file():  # a pipe would never end
        raise BadPanorama(name, "not a file", path.name)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG",)) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise BadPanorama(name, "oversized", f"{path.name} is {width}x{height}")
                if not image.tile:
                    raise BadPanorama(name, "damaged", f"{path.name} has no pixels")
                # Pillow halves colors of 16 bits without a word; the raw mode tells.
                mode = image.mode if image.mode.startswith("I") else str(image.tile[0][3])
                if mode not in modes:
                    wanted = " or ".join(modes)
                    raise BadPanorama(
                        name, "wrong mode", f"{path.name} is {mode}, expected {wanted}"
                    )
                image.load()
                return np.array(image)
    except BadPanorama:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadPanorama(name, "oversized", f"{path.name}: {error}") from error
    except Exception as error:  # decoders have many words for damage
        raise BadPanorama(name, "damaged", f"{path.name}: {error}") from error


def shrink(
    image: Shaped[np.ndarray, "height width *channels"], size: tuple[int, int]
) -> Float[np.ndarray, "nlat nlon *channels"]:
    """Averages over the cells of a smaller panorama, float64."""
    rows, columns = _shares(image.shape[0], size[0], True), _shares(image.shape[1], size[1], False)
    flat = image.reshape(*image.shape[:2], -1)
    narrow = np.empty((size[0], *flat.shape[1:]))
    for i, (first, share) in enumerate(rows):
        narrow[i] = np.tensordot(share, flat[first : first + share.size].astype(np.float64), 1)
    result = np.empty((*size, flat.shape[2]))
    for j, (first, share) in enumerate(columns):
        result[:, j] = np.tensordot(narrow[:, first : first + share.size], share, (1, 0))
    return result.reshape(*size, *image.shape[2:])


def shrink_valid(
    values: Shaped[np.ndarray, "height width"],
    valid: Shaped[np.ndarray, "height width"],
    size: tuple[int, int],
) -> Float[np.ndarray, "nlat nlon"]:
    """Averages over what is valid in each cell; NaN where nothing is."""
    area = shrink(valid, size)
    total = shrink(np.where(valid, values, 0), size)
    return np.where(area > 0, total / np.where(area > 0, area, 1), np.nan)


def nearest(
    labels: Shaped[np.ndarray, "height width"], size: tuple[int, int]
) -> Shaped[np.ndarray, "nlat nlon"]:
    """The pixel in which each cell's center lies."""
    rows, columns = (
        (2 * np.arange(n) + 1) * m // (2 * n) for m, n in zip(labels.shape, size, strict=True)
    )
    return labels[rows[:, None], columns]


def majority(
    labels: Shaped[np.ndarray, "height width"], size: tuple[int, int], classes: int
) -> Shaped[np.ndarray, "nlat nlon"]:
    """The label with the largest area in each cell; of equals, the first."""
    areas = np.zeros((size[0], size[1] * classes))
    columns = _shares(labels.shape[1], size[1], False)
    pixel = np.concatenate([first + np.arange(share.size) for first, share in columns])
    share = np.concatenate([share for _, share in columns])
    cell = np.repeat(np.arange(size[1]), [share.size for _, share in columns])
    for i, (first, weights) in enumerate(_shares(labels.shape[0], size[0], True)):
        places = cell * classes + labels[first : first + weights.size][:, pixel]
        amounts = weights[:, None] * share
        areas[i] = np.bincount(places.ravel(), amounts.ravel(), minlength=areas.shape[1])
    return areas.reshape(*size, classes).argmax(-1).astype(labels.dtype)


@lru_cache(maxsize=32)
def _shares(pixels: int, cells: int, latitude: bool) -> list[tuple[int, NDArray[np.float64]]]:
    """For each cell the first pixel that meets it, and what part of the cell that and the following
    pixels are: in latitude by area, so by cos(theta).
    """
    result = []
    for cell in range(cells):
        first, last = cell * pixels // cells, -(-(cell + 1) * pixels // cells)
        edges = np.arange(first, last + 1) / pixels
        edges[0], edges[-1] = cell / cells, (cell + 1) / cells
        share = np.diff(-np.cos(np.pi * edges)) if latitude else np.diff(edges)
        result.append((first, share / share.sum()))
    return result


def read_panorama(path: Path) -> UInt8[np.ndarray, "height width 3"]:
    """A whole panorama, twice as wide as high, from a PNG or JPEG file."""
    Image = require("PIL.Image", "an image")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist, or is not a file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=("PNG", "JPEG")) as image:
                width, height = image.size
                if width * height > MAX_PIXELS:
                    raise ValueError(f"{width}x{height} pixels are more than {MAX_PIXELS}")
                if width != 2 * height:
                    raise ValueError(
                        f"{width}x{height} is not a whole panorama, twice as wide as high"
                    )
                if image.mode[0] in "IF":  # more than 8 bits, which Pillow would clip
                    raise ValueError(f"its mode is {image.mode}; save it with 8 bits a color")
                return np.array(image.convert("RGB"))
    except Exception as error:  # decoders have many words for damage
        raise ValueError(f"{path} can't be used: {error}") from error
