"""Losses and metrics of ranks together are those of the whole field."""

import pytest

from tests.distributed.pool import Failed, Pool
from tests.distributed.programs import objective_errors, refused

pytestmark = pytest.mark.xdist_group("ranks")


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "name", ["gauss:12x24", "clenshaw_curtis:9x16", "clenshaw_curtis:3x6", "H2", "O4"]
)
@pytest.mark.parametrize("masked", [False, True])
def test_losses_and_metrics_are_those_of_the_whole(
    pool: Pool, name: str, masked: bool, ranks: int
) -> None:
    for errors in pool.run(ranks, objective_errors, name, masked):
        assert max(errors.values()) <= 1e-12, errors


@pytest.mark.parametrize(
    ("what", "name"),
    [
        ("learned", "LearnedEmbedding"),
        ("planar", "PlanarConv"),
        ("dropout", "Segformer: dropout"),
        ("shape", "expected"),
    ],
)
def test_what_cannot_be_split_is_refused_by_name(pool: Pool, what: str, name: str) -> None:
    with pytest.raises(Failed, match=name) as failed:
        pool.run(2, refused, what)
    assert failed.value.errors.keys() == {0, 1}
