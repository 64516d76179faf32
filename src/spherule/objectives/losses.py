"""Losses: how far a prediction is from its target, averaged over the sphere, one value a sample.

Fields are `(batch, channels, *grid.shape)`. A `mask` is True where a point counts and has the shape
`(*grid.shape)`, `(batch, *grid.shape)` or `(batch, channels, *grid.shape)`, where 1 channel stands
for all; the weights are renormalized over it, and channels that are hidden whole do not count. What
it hides may be anything, NaN too; a NaN that is seen makes its sample's loss NaN. A sample that is
hidden whole has loss 0 and gradient 0.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from spherule import checks
from spherule.checks import number
from spherule.distributed import Place, own
from spherule.objectives.areas import (
    area_weights,
    flat_mask,
    flat_pair,
    mean_of_channels,
    mean_over,
    ratio,
    total,
)
from spherule.objectives.derivatives import eroded, shear, slope
from spherule.ops.checks import require_points, require_tensors


@checks.arguments
def l1(
    prediction: Float[Tensor, "batch channels ..."],
    target: Float[Tensor, "batch channels ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch"]:
    """Mean over the sphere and the channels of |prediction - target|."""
    error, seen = _error(prediction, target, grid, mask)
    return mean_of_channels(mean_over(error.abs(), grid, seen), grid, seen)


@checks.arguments
def squared_l2(
    prediction: Float[Tensor, "batch channels ..."],
    target: Float[Tensor, "batch channels ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch"]:
    """Mean over the sphere and the channels of (prediction - target)^2."""
    error, seen = _error(prediction, target, grid, mask)
    return mean_of_channels(mean_over(error.square(), grid, seen), grid, seen)


@checks.arguments
def l2(
    prediction: Float[Tensor, "batch channels ..."],
    target: Float[Tensor, "batch channels ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch"]:
    """Mean over the channels of the root of the mean square: the tables' L2.

    Args:
        prediction: `(batch, channels, *grid.shape)`.
        target: of the same shape.
        grid: whose quadrature weights count.
        mask: True where a point counts, `(*grid.shape)` or one for each sample, or channel.

    >>> import torch, spherule as sph
    >>> a, b = torch.zeros(2, 3, 16, 32), torch.ones(2, 3, 16, 32)
    >>> [round(x, 4) for x in sph.objectives.l2(a, b, sph.Grid.gauss(16, 32)).tolist()]
    [1.0, 1.0]
    """
    error, seen = _error(prediction, target, grid, mask)
    square = mean_over(error.square(), grid, seen)
    # The root's slope at 0 is infinite: there the gradient is 0.
    zero = square == 0
    root = torch.where(zero, 0.0, torch.where(zero, 1.0, square).sqrt())
    return mean_of_channels(root, grid, seen)


@checks.arguments
def sobolev(
    prediction: Float[Tensor, "batch channels ..."],
    target: Float[Tensor, "batch channels ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "batch"]:
    """The W^{1,1} semi-norm of u = prediction - target: mean over the sphere and the channels of
    |d_phi u| / sin(theta) + |d_theta u|.

    Finite differences of second order, over the poles too; without a mask, d_phi is spectral. With
    a mask, a point counts where the mask leaves all that its differences need.
    """
    error, seen = _error(prediction, target, grid, mask)
    size = shear(error, grid, spectral=seen is None).abs() + slope(error, grid).abs()
    size = size + 0 * error  # a NaN that no difference meets, on a single point, is NaN too
    seen = None if seen is None else eroded(seen, grid)
    return mean_of_channels(mean_over(size, grid, seen), grid, seen)


@checks.arguments
def depth_loss(
    prediction: Float[Tensor, "batch channels ..."],
    target: Float[Tensor, "batch channels ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    sobolev_weight: float = 0.1,
) -> Float[Tensor, "batch"]:
    """L1 plus a part of the Sobolev semi-norm, which keeps edges sharp."""
    number("sobolev_weight", sobolev_weight)
    return l1(prediction, target, grid, mask=mask) + sobolev_weight * sobolev(
        prediction, target, grid, mask=mask
    )


@checks.arguments
def cross_entropy(
    logits: Float[Tensor, "batch classes ..."],
    labels: Int64[Tensor, "batch ..."],
    grid: Place,
    *,
    mask: Bool[Tensor, "..."] | None = None,
    class_weights: Float[Tensor, "classes"] | None = None,
    label_smoothing: float = 0.0,
    ignore: int | None = None,
) -> Float[Tensor, "batch"]:
    """Mean over the sphere of -log softmax(logits)[label].

    Class weights multiply the area of their pixels, in the sum and in what it is divided by. Points
    labeled `ignore` do not count.
    """
    number("label_smoothing", label_smoothing, low=0, high=1)
    require_tensors(logits=logits, labels=labels)
    require_points("logits", logits, own(grid))
    require_points("labels", labels, own(grid))
    batch, classes = logits.shape[:2]
    if logits.ndim != 2 + len(grid.shape) or labels.shape != (batch, *grid.shape):
        raise ValueError(
            f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}: expected (batch, "
            f"classes, ...) and (batch, ...) on {grid!r}"
        )
    scores = logits.flatten(2).to(torch.promote_types(logits.dtype, torch.float32))
    flat, seen = labels.flatten(1), flat_mask(mask, batch, 1, grid, logits.device)
    counts = torch.ones_like(flat, dtype=torch.bool) if seen is None else seen[:, 0].expand_as(flat)
    if ignore is not None:
        counts = counts & (flat != ignore)
    outside = counts & ((flat < 0) | (flat >= classes))
    if outside.any():
        raise ValueError(
            f"labels: {int(flat[outside][0])} is none of the {classes} classes; mask it, or "
            "name it as ignore"
        )
    if class_weights is not None:
        require_tensors(logits=logits, class_weights=class_weights)
        if class_weights.shape != (classes,):
            raise ValueError(
                f"class_weights: expected one a class, ({classes},), got "
                f"{tuple(class_weights.shape)}"
            )
        if class_weights.requires_grad:
            raise ValueError(
                "class_weights: expected constants, got a tensor that requires a gradient; give "
                "class_weights.detach()"
            )
    weights = None if class_weights is None else class_weights.to(scores)
    entropy = F.cross_entropy(
        scores.where(counts[:, None], 0.0),  # a hidden NaN would reach the gradients
        flat.where(counts, -100),
        weight=weights,
        ignore_index=-100,
        reduction="none",
        label_smoothing=label_smoothing,
    )
    area = area_weights(grid, scores.dtype, scores.device) * counts
    shares = area if weights is None else area * weights[flat.where(counts, 0)]
    return ratio(total(entropy * area, grid), total(shares, grid))


def _error(
    prediction: Tensor, target: Tensor, grid: Place, mask: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """prediction - target, (batch, channels, points), 0 where hidden, and the mask."""
    prediction, target = flat_pair(prediction, target, grid)
    seen = flat_mask(mask, prediction.shape[0], prediction.shape[1], grid, prediction.device)
    error = prediction - target
    return (error, None) if seen is None else (torch.where(seen, error, 0.0), seen)
