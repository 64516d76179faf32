"""What the paper reports, to stand beside what was measured here. Mean and deviation over
validation samples; training losses have no deviation.
"""

from dataclasses import dataclass
from typing import TypeAlias

MeanStd: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Published:
    """A row of one of the paper's tables."""

    training_loss: float
    metrics: dict[str, MeanStd]
    """By the names of the task's columns; `loss` is the validation loss."""


def _rows(
    prefix: str, names: tuple[str, ...], table: dict[str, tuple[float, ...]]
) -> dict[str, Published]:
    """Rows written as training loss, then mean and deviation of each metric."""
    return {
        f"{prefix}/{row}": Published(
            values[0],
            {name: (values[1 + 2 * i], values[2 + 2 * i]) for i, name in enumerate(names)},
        )
        for row, values in table.items()
    }


SHALLOW_WATER = _rows(
    "swe",
    ("loss", "l1", "l2"),
    {
        "r2-transformer": (0.332, 0.338, 0.013, 0.402, 0.008, 0.509, 0.010),
        "s2-transformer": (0.034, 0.034, 0.001, 0.120, 0.003, 0.151, 0.003),
        "r2-transformer-local": (0.058, 0.058, 0.003, 0.149, 0.002, 0.217, 0.006),
        "s2-transformer-local": (0.007, 0.007, 0.000, 0.063, 0.002, 0.079, 0.003),
        "r2-segformer": (0.139, 0.131, 0.005, 0.257, 0.004, 0.342, 0.006),
        "s2-segformer": (0.043, 0.042, 0.002, 0.157, 0.003, 0.203, 0.004),
        "r2-segformer-local": (0.110, 0.097, 0.004, 0.217, 0.004, 0.296, 0.006),
        "s2-segformer-local": (0.039, 0.039, 0.002, 0.149, 0.003, 0.193, 0.004),
        "ablation-1-vit": (0.817, 0.826, 0.026, 0.624, 0.010, 0.783, 0.012),
        "ablation-2-convolution": (0.311, 0.321, 0.015, 0.392, 0.009, 0.496, 0.011),
        "ablation-3-spectral": (0.332, 0.338, 0.013, 0.402, 0.008, 0.509, 0.010),
        "ablation-4-s2-convolution": (0.035, 0.036, 0.002, 0.125, 0.004, 0.157, 0.005),
        "ablation-5-s2-attention": (0.034, 0.034, 0.001, 0.121, 0.003, 0.151, 0.004),
        "ablation-6-local": (0.007, 0.007, 0.000, 0.063, 0.002, 0.079, 0.003),
    },
)

SEGMENTATION = _rows(
    "seg",
    ("loss", "iou", "accuracy"),
    {
        "r2-transformer": (0.967, 1.041, 0.812, 0.593, 0.151, 0.962, 0.018),
        "s2-transformer": (0.936, 1.261, 0.973, 0.565, 0.163, 0.958, 0.020),
        "r2-transformer-local": (0.754, 0.882, 0.666, 0.630, 0.140, 0.966, 0.016),
        "s2-transformer-local": (0.779, 0.956, 0.762, 0.623, 0.161, 0.965, 0.020),
        "r2-segformer": (0.753, 0.963, 0.914, 0.623, 0.150, 0.965, 0.018),
        "s2-segformer": (0.706, 0.889, 0.925, 0.636, 0.145, 0.967, 0.017),
        "r2-segformer-local": (0.729, 0.975, 0.977, 0.623, 0.161, 0.965, 0.020),
        "s2-segformer-local": (0.674, 0.749, 0.583, 0.645, 0.132, 0.968, 0.015),
        "r2-segformer-local-large": (0.626, 0.812, 0.891, 0.692, 0.158, 0.972, 0.018),
        "s2-segformer-local-large": (0.515, 0.656, 0.719, 0.728, 0.136, 0.976, 0.015),
    },
)

DEPTH = _rows(
    "depth",
    ("loss", "l1", "sobolev"),
    {
        "r2-transformer": (0.999, 1.260, 0.375, 0.260, 0.110, 8.267, 3.124),
        "s2-transformer": (0.940, 1.210, 0.349, 0.198, 0.083, 8.142, 3.118),
        "r2-transformer-local": (0.972, 1.248, 0.347, 0.223, 0.095, 8.309, 3.069),
        "s2-transformer-local": (0.933, 1.183, 0.352, 0.191, 0.092, 8.114, 3.100),
        "r2-segformer": (1.051, 1.239, 0.367, 0.168, 0.070, 8.797, 3.224),
        "s2-segformer": (1.000, 1.185, 0.387, 0.187, 0.110, 8.329, 3.256),
        "r2-segformer-local": (1.050, 1.239, 0.374, 0.176, 0.089, 8.841, 3.225),
        "s2-segformer-local": (1.012, 1.182, 0.390, 0.177, 0.096, 8.345, 3.260),
    },
)

PUBLISHED: dict[str, Published] = SHALLOW_WATER | SEGMENTATION | DEPTH

SPHERE_UFORMER: dict[str, float] = {"iou": 0.722, "accuracy": 0.886}
"""A model of others that the segmentation table quotes at 256x512; its accuracy is defined
otherwise."""


@dataclass(frozen=True)
class PublishedModel:
    """A row of the paper's overview of models."""

    convolution: str
    attention: str
    parameters: int
    """With three input channels and one output channel."""


MODELS: dict[str, PublishedModel] = {
    "r2-transformer": PublishedModel("2D convolution", "global", 531_968),
    "r2-transformer-local": PublishedModel("2D convolution", "7x7 window", 532_480),
    "s2-transformer": PublishedModel("S² convolution", "global", 531_968),
    "s2-transformer-local": PublishedModel("S² convolution", "geodesic window", 531_968),
    "r2-segformer": PublishedModel("2D convolution", "hierarchical", 688_321),
    "r2-segformer-local": PublishedModel("2D convolution", "7x7 window", 689_265),
    "s2-segformer": PublishedModel("S² convolution", "hierarchical", 606_113),
    "s2-segformer-local": PublishedModel("S² convolution", "geodesic window", 606_113),
}
