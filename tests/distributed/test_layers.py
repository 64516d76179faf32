"""Layers and models on shards are those on whole grids, over one to four ranks."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from spherule import Grid
from spherule.distributed.balance import balanced_runs
from spherule.distributed.halo import needed_runs, rings_within
from tests.distributed import layers
from tests.distributed.compare import Case, compare, rounding
from tests.distributed.pool import Pool
from tests.distributed.programs import attention_bits, counts_of

pytestmark = pytest.mark.xdist_group("ranks")

TOLERANCE = 1e-12
ROUNDING = 2e-7
"""Of float32, relative to the largest value: a whole that is right by luck is not held against
ranks."""
FINE = ("gauss:12x24", "equiangular:12x20", "clenshaw_curtis:13x24", "fejer:9x16@0.5",
        "lobatto:10x20", "H4", "O8")  # fmt: skip
# Some with fewer rings than ranks.
COARSE = ("gauss:3x8", "clenshaw_curtis:3x6", "H1", "H2", "O2", "equiangular:4x8")
CASES = 110
FLOATS = range(CASES, CASES + 44)
"""Further cases, in float32: each layer over each number of ranks."""
SEEDS = 5
"""Of weights and inputs in float32: how much a deep model magnifies its own rounding is luck."""


def draw(number: int) -> tuple[int, Case]:
    rng = np.random.default_rng(number)
    ranks = 1 + number % 4
    kind = ("local", "global", "cross", "disco", "resample", "norm", "embedding", "mix",
            "transformer", "segformer", "harmonics")[number // 4 % 11]  # fmt: skip
    fine, coarse = Grid.from_name(str(rng.choice(FINE))), Grid.from_name(str(rng.choice(COARSE)))
    pair = [(fine, fine), (fine, coarse), (coarse, fine), (coarse, coarse)][rng.integers(4)]
    names = tuple(g.name for g in pair)
    rest = {"batch": int(rng.integers(1, 4)), "balance": str(rng.choice(["work", "points"]))}
    wide = max(g.spacing for g in pair)
    # From a few neighbors to halos over several ranks and the whole sphere.
    cutoff = float(rng.choice([1.6 * wide, 3 * wide, math.pi]))
    local = (("cutoff", min(cutoff, math.pi)),)
    if kind == "local":
        edge = float(rng.choice([0.0, 0.3])) * wide
        return ranks, Case(
            layers.attention, names[:1], (4,), (*local, ("edge_width", edge)), **rest
        )
    if kind == "global":
        return ranks, Case(layers.attention, names[:1], (4,), **rest)
    if kind == "cross":
        return ranks, Case(
            layers.cross_attention, names, (4, 3), local if rng.integers(2) else (), **rest
        )
    if kind == "disco":
        same = () if rng.integers(2) else (("groups", 4),)
        return ranks, Case(layers.disco, names[: 1 + rng.integers(2)], (4,), same, **rest)
    if kind == "resample":
        return ranks, Case(layers.resample, names, (4,), **rest)
    if kind in ("norm", "embedding"):
        return ranks, Case(getattr(layers, kind), names[:1], (4,), **rest)
    if kind in ("mix", "harmonics"):
        lmax = int(rng.integers(0, pair[0].lmax + 1))
        return ranks, Case(getattr(layers, kind), names[:1], (4,), (("lmax", lmax),), **rest)
    skip = [(), (("skip", "spectral"), ("bandlimit", 3), ("keep_mean", True))][rng.integers(2)]
    attends = (("local", bool(rng.integers(2))),)
    return ranks, Case(getattr(layers, kind), (fine.name,), (3,), (*attends, *skip), **rest)


@pytest.mark.parametrize("number", range(CASES))
def test_values_and_gradients_are_those_of_the_whole(pool: Pool, number: int) -> None:
    ranks, case = draw(number)
    for answer in pool.run(ranks, compare, case):
        errors = answer["errors"]
        assert max(errors.values()) <= TOLERANCE, (case, errors)
        assert answer["same names"]


@pytest.mark.parametrize("number", FLOATS)
def test_float32_is_as_exact_as_the_whole(pool: Pool, number: int) -> None:
    ranks, case = draw(number)
    runs = [
        pool.run(ranks, rounding, replace(case, dtype=torch.float32, seed=seed))
        for seed in range(SEEDS)
    ]
    for rank in range(ranks):
        for what in runs[0][rank]:
            errors = [answers[rank][what] for answers in runs]
            ratios = [parts / max(whole, ROUNDING) for whole, parts in errors]
            assert np.median(ratios) <= 2, (case, what, errors)


def test_what_is_drawn_has_all_that_is_hard() -> None:
    seen = set()
    for number in range(CASES):
        ranks, case = draw(number)
        grids = [Grid.from_name(name) for name in case.grids]
        seen |= {ranks, f"batch {case.batch}", case.balance, case.build.__name__}
        seen |= {grid.name.partition(":")[0][0] for grid in grids}
        for grid in grids:
            runs = balanced_runs(grid, ranks, case.balance)
            rings = [b - a for a, b in runs]
            seen |= {"uneven"} if len(set(rings)) > 1 else set()
            seen |= {"one ring"} if ranks > 1 and 1 in rings else set()
            seen |= {"nothing"} if 0 in rings else set()
        cutoff = dict(case.options).get("cutoff")
        seen |= {"pi"} if cutoff == math.pi else set()
        if cutoff is None or len(grids) > 1:
            continue
        needs = needed_runs(grids[0], runs, partial(rings_within, grids[0], cutoff))
        for rank, (a, b) in enumerate(needs):
            far = [r for r in range(ranks) if abs(r - rank) > 1]
            seen |= (
                {"beyond"} if any(max(a, runs[r][0]) < min(b, runs[r][1]) for r in far) else set()
            )
    assert seen >= {1, 2, 3, 4, "batch 1", "batch 2", "batch 3", "work", "points", *"gecflHO"}
    assert seen >= {"uneven", "one ring", "nothing", "pi", "beyond"}
    assert seen >= {"attention", "cross_attention", "disco", "resample", "norm", "embedding", "mix",
                    "harmonics", "transformer", "segformer"}  # fmt: skip


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["gauss:12x24", "O8"])
def test_a_zonal_mix_is_that_of_the_whole(pool: Pool, name: str, ranks: int) -> None:
    """Ranks have coefficients of their own orders, and the matrices of all."""
    case = Case(layers.zonal_mix, (name,), (4,), (("lmax", 7),), 2)
    for answer in pool.run(ranks, compare, case):
        assert max(answer["errors"].values()) <= 1e-12


@pytest.mark.parametrize("build", [layers.attention, layers.transformer, layers.mix])
def test_the_same_bits_twice(pool: Pool, build: object) -> None:
    channels = 3 if build is layers.transformer else 4
    options = (("lmax", 7),) if build is layers.mix else ()
    case = Case(build, ("gauss:12x24",), (channels,), options, 2, dtype=torch.float32)
    first, second = (pool.run(3, compare, case) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(a["bits"], b["bits"], strict=True))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["gauss:16x32", "O8", "H4", "N32", "clenshaw_curtis:13x24"])
def test_local_attention_has_the_bits_of_the_whole(pool: Pool, name: str, ranks: int) -> None:
    for out, dq in pool.run(ranks, attention_bits, name, 0.6):
        assert out
        assert dq


def test_halos_are_what_disks_reach_and_no_more(pool: Pool) -> None:
    """One exchange a layer and pass, of the rings within the cutoff; norms send one sum."""
    name, batch, channels, cutoff = "gauss:32x8", 2, 4, 0.25
    grid = Grid.from_name(name)
    answers = pool.run(4, compare, Case(layers.attention, (name,), (channels,),
                                        (("cutoff", cutoff),), batch))  # fmt: skip
    for rank, answer in enumerate(answers):
        edges = [8 * rank, 8 * rank + 7]
        above = sum(grid.theta[edges[0]] - grid.theta[: edges[0]] <= cutoff) if rank else 0
        below = sum(grid.theta[edges[1] + 1 :] - grid.theta[edges[1]] <= cutoff)
        # As many rings as it needs of its neighbors, they need of it: runs are alike.
        received = 8 * (above + below)
        assert answer["backward"].exchanges == [received * batch * 2 * channels * 8]
        assert len(answer["forward"].exchanges) == 1
        assert answer["forward"].sums == answer["backward"].sums == []
    total = [sum(a[side].exchanges[0] for a in answers) for side in ("forward", "backward")]
    assert total[0] == total[1]
    norm = pool.run(4, compare, Case(layers.norm, (name,), (channels,), (), batch))
    for answer in norm:
        sums = [4 * 3 * batch * channels * 8]  # share, mean and variance of each rank
        assert answer["forward"].sums == answer["backward"].sums == sums
        assert answer["forward"].exchanges == []


@pytest.mark.parametrize(
    ("build", "names", "options", "channels", "reach"),
    [
        (layers.disco, ("gauss:24x48",), (("cutoff", 0.5),), 4, 0.5),
        (layers.disco, ("gauss:24x48", "gauss:12x24"), (("cutoff", 0.7),), 4, 0.7),
        (layers.attention, ("gauss:24x8",), (), 8, math.pi),
        (layers.resample, ("gauss:12x8", "gauss:24x16"), (), 4, None),
    ],
)
def test_layers_send_rings_within_reach_and_no_more(
    pool: Pool, build: object, names: tuple, options: tuple, channels: int, reach: float | None
) -> None:
    """One exchange in each pass; global attention gathers keys and values, and nothing else."""
    batch, ranks = 2, 4
    source, target = Grid.from_name(names[0]), Grid.from_name(names[-1])
    have, want = (balanced_runs(grid, ranks, "points") for grid in (source, target))
    sent = np.zeros((ranks, ranks))
    for r, (a, b) in enumerate(want):
        for s, (c, d) in enumerate(have):
            if reach is None:  # the rings next to each of the target's
                near = {i for t in target.theta[a:b] for i in _neighbors(source.theta, t)}
            else:
                apart = np.abs(source.theta[:, None] - target.theta[a:b]).min(1)
                near = set(np.flatnonzero(apart <= reach).tolist())
            sent[s, r] = len(near & set(range(c, d))) * source.nphi[0] if s != r else 0
    answers = pool.run(ranks, compare, Case(build, names, (4,), options, batch))
    for rank, answer in enumerate(answers):
        bytes_each = batch * channels * 8
        assert answer["forward"].exchanges == [sent[rank].sum() * bytes_each]
        assert answer["backward"].exchanges == [sent[:, rank].sum() * bytes_each]
        assert answer["forward"].sums == answer["backward"].sums == []


def _neighbors(theta: np.ndarray, t: float) -> list[int]:
    south = int(np.searchsorted(theta, t))
    return [i for i in (south - 1, south) if 0 <= i < theta.size]


def test_a_model_sends_as_often_as_its_layers_do(pool: Pool) -> None:
    counts = pool.run(4, counts_of, "gauss:16x32")
    # Encoder, two blocks, upsampling, decoder; two norms in each block.
    assert counts == [(5, 4)] * 4


@pytest.mark.parametrize("balance", ["points", "work"])
def test_transforms_send_what_changes_hands(pool: Pool, balance: str) -> None:
    name, lmax, channels = "gauss:12x24", 7, 4
    case = Case(layers.harmonics, (name,), (channels,), (("lmax", lmax),), balance=balance)
    answers = pool.run(4, compare, case)
    # Each rank has a fourth of the orders: of its rings' spectra, three fourths go to others.
    sent = sum(answer["forward"].exchanges[0] for answer in answers)
    assert sent == 12 * (lmax + 1) * 3 // 4 * channels * 2 * 8
    assert all(len(answer["forward"].exchanges) == 2 for answer in answers)
