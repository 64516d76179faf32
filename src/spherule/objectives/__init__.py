"""Losses and metrics on the sphere: integrals by quadrature, one value a sample."""

from spherule.objectives.average import Average, MeanStd
from spherule.objectives.losses import (
    cross_entropy,
    depth_loss,
    l1,
    l2,
    sobolev,
    squared_l2,
)
from spherule.objectives.metrics import (
    accuracy,
    class_iou,
    confusion,
    iou_macro,
    iou_micro,
    pixel_accuracy,
)

__all__ = [
    "Average",
    "MeanStd",
    "accuracy",
    "class_iou",
    "confusion",
    "cross_entropy",
    "depth_loss",
    "iou_macro",
    "iou_micro",
    "l1",
    "l2",
    "pixel_accuracy",
    "sobolev",
    "squared_l2",
]
