"""Models on shards under what else torch does with modules."""

import pytest
import torch

from tests.distributed.pool import Failed, Pool
from tests.distributed.programs import compiled_error, fully_sharded_errors, unlike

pytestmark = pytest.mark.xdist_group("ranks")


@pytest.mark.parametrize(
    ("name", "skip"), [("gauss:12x24", "identity"), ("O8", "identity"), ("gauss:12x24", "spectral")]
)
def test_compiled_models_are_the_same_and_exchange_as_often(
    pool: Pool, name: str, skip: str
) -> None:
    """As one graph, but for spherical transforms."""
    for value, gradient, (plain, compiled) in pool.run(2, compiled_error, name, skip):
        assert value <= 1e-6
        assert gradient <= 1e-5
        assert 0 < compiled == plain


@pytest.mark.skipif(
    torch.__version__.startswith("2.6."),
    reason="fully_shard of torch 2.6 needs streams, which CPUs lack",
)
@pytest.mark.parametrize("ranks", [2, 4])
def test_weights_that_are_sharded_too_have_the_gradients_of_the_whole(
    pool: Pool, ranks: int
) -> None:
    for errors in pool.run(ranks, fully_sharded_errors, "gauss:12x24"):
        assert errors.pop("share") < 1.5 / ranks
        assert max(errors.values()) <= 2e-5, errors


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("batch", r"\(2, .*; \(3, .*; \(2, "),
        ("precision", "float32; .* torch.float64; "),
        ("kind", "bfloat16; .* torch.float16; "),
        ("order", r"\(3, 2, .*; \(2, 3, "),
        ("norm", r"2, 3\) torch.float32; .*3, 3\) torch.float32; "),
    ],
)
def test_fields_that_differ_among_ranks_are_refused_on_all(
    pool: Pool, what: str, name: str
) -> None:
    with pytest.raises(Failed, match=name) as failed:
        pool.run(3, unlike, what)
    assert failed.value.errors.keys() == {0, 1, 2}
