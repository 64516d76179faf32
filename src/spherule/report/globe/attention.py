"""What a model attends to: the weights of every layer and head, for places all over the sphere."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from spherule.geometry import Neighborhood
from spherule.geometry.interpolation import nearest_points
from spherule.grids import Grid
from spherule.nn import PlanarAttention, SphericalAttention
from spherule.ops import attention_weights
from spherule.train.scene import Frames, Globe, Image, Variable

Attention: TypeAlias = SphericalAttention | PlanarAttention

MOST_VALUES = 60_000_000
"""Weights that are kept; places are as many as that allows, on HEALPix grids up to H4."""
FINEST = 4
USUAL = 0.995
"""The share of weights within the ends of their colors."""


def attention_globe(
    title: str,
    model: nn.Module,
    forward: Callable[[], Any],
    *,
    inputs: Sequence[Variable] = (),
    image: Image | None = None,
) -> Globe:
    """The weights that a forward pass of the model gives its keys, query by query; click a place to
    see those of the nearest.

    `forward` calls the model, with a sample of which the first of the batch is shown; `inputs` are
    fields that stand still, to be seen beside. Keys out of a query's reach are gray.
    """
    layers = [m for m in model.modules() if isinstance(m, Attention)]
    if not layers:
        raise ValueError(f"{type(model).__name__} has no attention layer")
    theta, phi = _places(layers)
    weights: dict[nn.Module, NDArray[np.float32]] = {}

    def keep(layer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        weights[layer] = _weights(layer, [*args, *kwargs.values()], theta, phi)

    hooks = [layer.register_forward_pre_hook(keep, with_kwargs=True) for layer in layers]
    try:
        with torch.no_grad():
            forward()
    finally:
        for hook in hooks:
            hook.remove()
    variables = []
    for number, layer in enumerate((m for m in layers if m in weights), 1):
        heads = weights[layer].reshape(layer.heads, theta.size, *layer.grid.shape)
        named = {f"head {h}" if layer.heads > 1 else "weights": w for h, w in enumerate(heads, 1)}
        high = float(np.nanquantile(heads, USUAL))
        name = f"attention of layer {number}"
        variables.append(Variable(name, layer.grid, named, limits=(0.0, high)))
    degrees = np.degrees(np.stack([np.pi / 2 - theta, (phi + np.pi) % (2 * np.pi) - np.pi], 1))
    labels = tuple(_words(*place) for place in degrees)
    frames = Frames(labels, "place", tuple(map(tuple, degrees.tolist())))
    note = (
        "Weights of all keys in the average that attention takes for the query at the ring: "
        "quadrature included, they sum to 1. Gray is out of its reach."
    )
    return Globe(title, [*variables, *inputs], frames, [note], image, inside=image is not None)


def _places(layers: Sequence[Attention]) -> tuple[NDArray, NDArray]:
    """Queries of the first layer, evenly spread."""
    each = sum(layer.heads * layer.grid.size for layer in layers)
    nside = min(FINEST, max(1, int((MOST_VALUES / each / 12) ** 0.5)))
    spread, grid = Grid.healpix(nside), layers[0].query_grid
    chosen = np.unique(nearest_points(grid, spread.point_theta, spread.point_phi))
    return grid.point_theta[chosen], grid.point_phi[chosen]


def _weights(
    layer: Attention, fields: list[Tensor], theta: NDArray, phi: NDArray
) -> NDArray[np.float32]:
    """(heads, places, keys) of the first sample, NaN out of reach."""
    flat = [field[:1].flatten(2) for field in fields if field is not None]
    q, k, _ = layer.project(*flat)
    queries = nearest_points(layer.query_grid, theta, phi).tolist()
    reach = layer.reach
    weights = attention_weights(q, k, reach, queries)[0].float().numpy()
    if isinstance(reach, Neighborhood):
        for place, query in enumerate(queries):
            outside = np.ones(reach.keys, dtype=bool)
            outside[reach.indices(query)] = False
            weights[:, place, outside] = np.nan
    return weights


def _words(latitude: float, longitude: float) -> str:
    north, east = "S" if latitude < 0 else "N", "W" if longitude < 0 else "E"
    return f"{abs(latitude):.1f}° {north}, {abs(longitude):.1f}° {east}"
