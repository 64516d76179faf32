"""What a query attends to: rows of the softmax that attention never forms."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from spherule import checks
from spherule.geometry.neighborhood import Neighborhood
from spherule.grids import Grid
from spherule.ops.autocast import no_autocast
from spherule.ops.checks import require_floats


@checks.arguments
def attention_weights(
    q: Float[Tensor, "batch heads queries dim"],
    k: Float[Tensor, "batch heads keys dim"],
    neighborhood: Neighborhood | Grid,
    queries: Sequence[int],
    *,
    scale: float | None = None,
) -> Float[Tensor, "batch heads chosen keys"]:
    """The weights of all keys in the average that attention takes for the chosen queries.

    They hold the quadrature, sum to 1, and are 0 outside the query's neighborhood. A Grid of keys
    instead of a neighborhood means attention over the whole sphere. `scale` is 1 / sqrt(dim) by
    default; 16-bit inputs are computed in float32.
    """
    if not isinstance(neighborhood, Neighborhood | Grid):
        raise TypeError(
            "neighborhood: expected a Neighborhood, or the Grid of the keys for global attention, "
            f"got {type(neighborhood).__name__}"
        )
    require_floats(q=q, k=k)
    if q.ndim != 4 or k.ndim != 4 or q.shape[:2] != k.shape[:2] or q.shape[3] != k.shape[3]:
        raise ValueError(
            "q, k: expected (batch, heads, points, dim) of equal batch, heads and dim, got "
            f"{tuple(q.shape)}, {tuple(k.shape)}"
        )
    if isinstance(neighborhood, Grid):
        points = (q.shape[2], neighborhood.size)
    else:
        points = (neighborhood.queries, neighborhood.keys)
    for name, x, expected in zip("qk", (q, k), points, strict=True):
        if x.shape[2] != expected:
            raise ValueError(
                f"{name} has {x.shape[2]} points, but {neighborhood!r} expects {expected}"
            )
    chosen = [int(i) for i in queries]
    if wrong := [i for i in chosen if not 0 <= i < q.shape[2]]:
        raise ValueError(f"queries: {wrong[0]} is not one of {q.shape[2]} points")
    scale = q.shape[-1] ** -0.5 if scale is None else float(scale)
    dtype = torch.promote_types(q.dtype, torch.float32)
    weights = torch.from_numpy(_rows(neighborhood, chosen)).to(q.device)
    with no_autocast(q):
        scores = q[:, :, chosen].to(dtype) @ k.to(dtype).transpose(-1, -2) * scale
        return (scores + weights.log().to(dtype)).softmax(dim=-1)


def _rows(neighborhood: Neighborhood | Grid, queries: list[int]) -> np.ndarray:
    """(queries, keys): quadrature times the soft edge, 0 for keys that are not in reach."""
    if isinstance(neighborhood, Grid):
        return np.broadcast_to(
            neighborhood.weights.ravel(), (len(queries), neighborhood.size)
        ).copy()
    rows = np.zeros((len(queries), neighborhood.keys))
    for row, i in zip(rows, queries, strict=True):
        row[neighborhood.indices(i)] = neighborhood.weights(i)
    return rows
