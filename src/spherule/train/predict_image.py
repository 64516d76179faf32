"""A trained model on a panorama image: labels as a picture of classes, depth as 16-bit PNG."""

import json
import warnings
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from numpy.typing import NDArray

from spherule import ops
from spherule.data.images import MAX_PIXELS, nearest, shrink
from spherule.data.panoramas import COLOURS, PanoramaStatistics
from spherule.data.stanford import NO_DEPTH, UNITS_PER_METRE
from spherule.grids import Grid
from spherule.optional import require
from spherule.train.config import DepthTask, SegmentationTask
from spherule.train.run import Run


@torch.no_grad()
def predict_image(run: Run, source: Path, target: Path) -> None:
    """Write what the model sees in a panorama, in the size of the image: a PNG of colours with the
    classes' names inside, or of depth in steps of 1/512 m.
    """
    Image = require("PIL.Image", "writing images")
    PngInfo = require("PIL.PngImagePlugin", "writing images").PngInfo
    if target.suffix.lower() != ".png":
        raise ValueError(f"output={str(target)!r}: expected a name that ends in .png")
    if not isinstance(run.config.task, (SegmentationTask, DepthTask)):
        raise ValueError(f"{run.directory}: {run.name} reads fields, not images")
    rgb = read_rgb(source)
    statistics = PanoramaStatistics.from_json(run.problem["statistics"])
    image = torch.tensor(_on_grid(rgb, run.model.grid) / 255, dtype=torch.float32)
    mean, std = (torch.tensor(v)[:, None, None] for v in (statistics.rgb_mean, statistics.rgb_std))
    output = run.model.eval()(((image.permute(2, 0, 1) - mean) / std)[None])[0]
    info = PngInfo()
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(run.config.task, SegmentationTask):
        labels = nearest(output.argmax(0).to(torch.uint8).numpy(), rgb.shape[:2])
        picture = Image.fromarray(labels, mode="P")
        picture.putpalette([value for colour in COLOURS for value in colour])
        info.add_text("classes", json.dumps(run.problem["classes"]))
    else:
        metres = (output[0] * statistics.depth_std + statistics.depth_mean).clamp_min(0)
        units = (metres * UNITS_PER_METRE).round().clamp_max(NO_DEPTH - 1)
        picture = Image.fromarray(nearest(units.numpy().astype(np.uint16), rgb.shape[:2]))
        info.add_text("unit", f"1/{UNITS_PER_METRE} m")
    picture.save(target, format="PNG", pnginfo=info)


def read_rgb(path: Path) -> UInt8[np.ndarray, "height width 3"]:
    """A whole panorama, twice as wide as high, from a PNG or JPEG file."""
    Image = require("PIL.Image", "reading images")
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
                return np.array(image.convert("RGB"))
    except Exception as error:  # decoders have many words for damage
        raise ValueError(f"{path} can't be used: {error}") from error


def _on_grid(rgb: NDArray[np.uint8], grid: Grid) -> NDArray[np.float64]:
    """Averages over the grid's cells, or between pixels where the image is smaller."""
    rows, columns = grid.shape
    if rgb.shape[0] >= rows and rgb.shape[1] >= columns:
        return shrink(rgb, (rows, columns))
    own = Grid.fejer(*rgb.shape[:2], offset=0.5)
    values = torch.tensor(rgb, dtype=torch.float64).permute(2, 0, 1)
    return ops.resample(values, own, grid).permute(1, 2, 0).numpy()
