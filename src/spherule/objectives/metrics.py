"""Metrics of segmentations, all from one confusion matrix of areas."""

import math

import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from spherule import checks
from spherule.checks import integer
from spherule.distributed import Place, own, summed
from spherule.objectives.areas import area_weights, flat_mask, ratio, total
from spherule.ops.checks import require_points, require_tensors


@checks.arguments
def confusion(
    predicted: Int64[Tensor, "batch ..."] | Float[Tensor, "batch classes ..."],
    labels: Int64[Tensor, "batch ..."],
    classes: int,
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    ignore: int | None = None,
) -> Float[Tensor, "batch classes classes"]:
    """The part of the sphere that is of class [true, predicted], float64.

    `predicted` are classes, or a model's scores of them, of which the highest counts; a score that
    is NaN, where it counts, makes its sample's matrix NaN. Over what the mask leaves and what is
    not labeled `ignore` a matrix sums to 1, and to 0 where nothing is left.
    """
    require_tensors(predicted=predicted, labels=labels)
    for name, values in (("predicted", predicted), ("labels", labels)):
        require_points(name, values, own(grid))
    integer("classes", classes, low=1)
    scores = predicted if predicted.is_floating_point() else None
    wanted = labels.shape if scores is None else (labels.shape[0], classes, *grid.shape)
    if labels.ndim != 1 + len(grid.shape) or predicted.shape != wanted:
        raise ValueError(
            f"predicted {tuple(predicted.shape)} and labels {tuple(labels.shape)}: expected "
            f"(batch, ...), or scores (batch, {classes}, ...), and (batch, ...) on {grid!r}"
        )
    if scores is not None:
        predicted = scores.argmax(1)
    for name, values in (("predicted", predicted), ("labels", labels)):
        if values.dtype != torch.int64:
            raise TypeError(f"{name}: expected int64, the number of a class, got {values.dtype}")
    predicted, true = predicted.flatten(1), labels.flatten(1)
    batch = true.shape[0]
    seen = flat_mask(mask, batch, 1, grid, true.device)
    counts = torch.ones_like(true, dtype=torch.bool) if seen is None else seen[:, 0].expand_as(true)
    if ignore is not None:
        counts = counts & (true != ignore)
    for name, values in (("predicted", predicted), ("labels", true)):
        outside = counts & ((values < 0) | (values >= classes))
        if outside.any():
            raise ValueError(f"{name}: {int(values[outside][0])} is no class of classes={classes}")
    area = area_weights(grid, torch.float64, true.device) * counts
    area = ratio(area, total(area, grid)[:, None])
    sample = torch.arange(batch, device=true.device)[:, None]
    place = torch.where(counts, (sample * classes + true) * classes + predicted, 0)
    areas = torch.bincount(place.flatten(), area.flatten(), minlength=batch * classes**2)
    # Of no points it counts in integers.
    matrix = areas.to(area.dtype).reshape(batch, classes, classes)
    if scores is not None:
        broken = (scores.isnan().any(1).flatten(1) & counts).any(1)
        matrix = matrix.masked_fill(broken[:, None, None], math.nan)
    return summed(matrix, grid)


@checks.arguments
def pixel_accuracy(
    confusion: Float[Tensor, "*batch classes classes"],
) -> Float[Tensor, "*batch"]:
    """The part of the area that is labeled right; 0 where there is none."""
    return ratio(_right(confusion).sum(-1), confusion.sum((-2, -1)))


@checks.arguments
def iou_micro(confusion: Float[Tensor, "*batch classes classes"]) -> Float[Tensor, "*batch"]:
    """The paper's IoU: true positives of all classes over the unions of all classes."""
    return ratio(_right(confusion).sum(-1), _union(confusion).sum(-1))


@checks.arguments
def class_iou(
    confusion: Float[Tensor, "*batch classes classes"],
) -> Float[Tensor, "*batch classes"]:
    """Intersection over union of each class; 0 where neither truth nor prediction has it."""
    return ratio(_right(confusion), _union(confusion))


@checks.arguments
def iou_macro(confusion: Float[Tensor, "*batch classes classes"]) -> Float[Tensor, "*batch"]:
    """The mean of the classes' IoU; classes that neither truth nor prediction has are left out."""
    present = (_union(confusion) > 0).sum(-1)
    return ratio(class_iou(confusion).sum(-1), present.to(confusion))


@checks.arguments
def accuracy(confusion: Float[Tensor, "*batch classes classes"]) -> Float[Tensor, "*batch"]:
    """The paper's Acc: true positives and true negatives, the mean over the classes. It is high for
    everyone: 1 - 2 (1 - a) / classes for pixel accuracy a.
    """
    wrong = (_union(confusion) - _right(confusion)).sum(-1)
    total = confusion.sum((-2, -1))
    return ratio(total - wrong / confusion.shape[-1], total)


def _right(confusion: Tensor) -> Tensor:
    """True positives of each class."""
    if confusion.ndim < 2 or confusion.shape[-1] != confusion.shape[-2] or not confusion.shape[-1]:
        raise ValueError(
            f"confusion: expected (..., classes, classes), got {tuple(confusion.shape)}"
        )
    return confusion.diagonal(dim1=-2, dim2=-1)


def _union(confusion: Tensor) -> Tensor:
    """True positives, false positives and false negatives of each class."""
    right = _right(confusion)
    return confusion.sum(-1) + confusion.sum(-2) - right
