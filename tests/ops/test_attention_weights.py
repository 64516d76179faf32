import math

import pytest
import torch

from spherule import Grid, ops
from spherule.geometry.neighborhood import Neighborhood
from spherule.ops.attention_weights import attention_weights

QUERY = Grid.gauss(6, 9)


def reach(kind: str, key: Grid) -> Neighborhood | Grid:
    return {
        "global": key,
        "disk": Neighborhood.disk(QUERY, key, 0.9),
        "soft": Neighborhood.disk(QUERY, key, 0.9, edge_width=0.4),
        "unweighted": Neighborhood.disk(QUERY, key, math.pi, weighted=False),
    }[kind]


def inputs(key: Grid, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 3, QUERY.size, 5, dtype=dtype), torch.randn(
        2, 3, key.size, 5, dtype=dtype
    )


@pytest.mark.parametrize("key", ["gauss:8x16", "equiangular:8x12", "H3", "O4"])
@pytest.mark.parametrize("kind", ["global", "disk", "soft", "unweighted"])
def test_weights_are_those_of_the_dense_softmax(kind: str, key: str) -> None:
    """By the definition: exp(q . k) times area times edge, over the keys within the disk."""
    keys = Grid.from_name(key)
    q, k = inputs(keys)
    queries = [0, 8, 26, QUERY.size - 1]
    distance = torch.from_numpy(QUERY.xyz @ keys.xyz.T).clamp(-1, 1).acos()[queries]
    area = torch.from_numpy(keys.weights.ravel().copy())
    weight = {
        "global": area,
        "disk": area * (distance <= 0.9),
        "soft": area * ((0.9 - distance) / 0.4 + 0.5).clamp(0, 1),
        "unweighted": torch.ones_like(area),
    }[kind]
    dense = (q[:, :, queries] @ k.mT / math.sqrt(5)).exp() * weight
    expected = dense / dense.sum(-1, keepdim=True)
    found = attention_weights(q, k, reach(kind, keys), queries)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("kind", ["global", "disk", "soft"])
def test_weights_average_to_what_attention_gives(kind: str) -> None:
    key = Grid.healpix(3)
    q, k = inputs(key)
    v = torch.randn(2, 3, key.size, 4, dtype=torch.float64)
    where = reach(kind, key)
    out = (
        ops.global_attention(q, k, v, where, scale=0.3)
        if isinstance(where, Grid)
        else ops.neighborhood_attention(q, k, v, where, scale=0.3)
    )
    queries = range(0, QUERY.size, 7)
    weights = attention_weights(q, k, where, queries, scale=0.3)
    torch.testing.assert_close(weights @ v, out[:, :, list(queries)], rtol=0, atol=1e-13)


def test_sixteen_bits_are_computed_in_float32() -> None:
    key = Grid.healpix(3)
    q, k = (x.bfloat16() for x in inputs(key))
    found = attention_weights(q, k, key, [3])
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, attention_weights(q.float(), k.float(), key, [3]))


@pytest.mark.usefixtures("unchecked")
def test_bad_input_is_named() -> None:
    key = Grid.healpix(3)
    q, k = inputs(key)
    disk = Neighborhood.disk(QUERY, key, 0.9)
    with pytest.raises(TypeError, match="expected a Neighborhood or a Grid"):
        attention_weights(q, k, 0.9, [0])
    with pytest.raises(ValueError, match="q has 53 points, but"):
        attention_weights(q[:, :, 1:], k, disk, [0])
    with pytest.raises(ValueError, match="k has 107 points, but"):
        attention_weights(q, k[:, :, 1:], key, [0])
    with pytest.raises(ValueError, match="q, k: expected"):
        attention_weights(q[0], k, disk, [0])
    with pytest.raises(ValueError, match="queries: 54 is not one of 54 points"):
        attention_weights(q, k, disk, [0, 54])
