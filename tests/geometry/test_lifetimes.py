"""Geometry is found by name while it is in use, also elsewhere, and freed afterwards."""

import gc
import pickle
import subprocess
import sys
import textwrap
import weakref
from collections.abc import Callable

import pytest
import torch

from spherule import Grid, ops
from spherule.geometry.filters import Stencil
from spherule.geometry.neighborhood import Neighborhood
from spherule.nn import DiscoConv, SphericalAttention

RECENT = 64


def grid(i: int) -> Grid:
    return Grid.from_rings(
        [0.5, 1.2, 2.0, 2.7], [9, 17, 18, 8], [0.1, 0, i / 7, 0], [1] * 4, partial=True
    )


MAKERS: dict[str, Callable] = {
    "grid": grid,
    "disk": lambda i: Neighborhood.disk(grid(i), grid(i), 1.5),
    "window": lambda i: Neighborhood.window((7, 1000 + i), (3, 3)),  # nobody else's
    "stencil": lambda i: Stencil.hats(Grid.gauss(6, 12), cutoff=1.5 + i / 1e4),
}


@pytest.mark.parametrize("name", MAKERS)
def test_only_recent_ones_outlive_their_users(name: str) -> None:
    made = [weakref.ref(MAKERS[name](i)) for i in range(RECENT + 50)]
    gc.collect()
    assert all(ref() is None for ref in made[:50])
    assert all(ref() is not None for ref in made[50:])


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_in_use_keeps_its_name(name: str) -> None:
    kept = MAKERS[name](1000)
    for i in range(RECENT + 50):
        MAKERS[name](i)
    assert type(kept).from_name(kept.name) is kept


def test_a_gradient_finds_the_geometry_that_its_caller_dropped() -> None:
    def attend(x: torch.Tensor) -> torch.Tensor:
        return ops.neighborhood_attention(x, x, x, MAKERS["disk"](2000))

    x = torch.randn(1, 1, 52, 3, requires_grad=True)
    out = attend(x)
    gc.collect()
    assert torch.autograd.grad(out.sum(), x)[0].isfinite().all()


def test_rings_of_an_unknown_name_say_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"rings:00.* make them here first with Grid.from_rings"):
        Neighborhood.from_name("disk rings:00 rings:00 1.0 0.0 weighted")


def elsewhere(code: str, data: bytes) -> None:
    """Runs code in a process of its own, with `data` unpickled as `it`."""
    start = "import pickle, sys, torch\nit = pickle.load(sys.stdin.buffer)\n"
    subprocess.run([sys.executable, "-c", start + textwrap.dedent(code)], input=data, check=True)


@pytest.mark.parametrize("transposed", [False, True])
def test_neighborhoods_on_rings_of_your_own_pickle_into_another_process(transposed) -> None:
    disk = Neighborhood.disk(grid(0), Grid.gauss(4, 9), 1.5, edge_width=0.2)
    disk = disk.transpose if transposed else disk
    assert pickle.loads(pickle.dumps(disk)) == disk
    code = """
        from spherule.geometry.neighborhood import Neighborhood
        disk, indices = it
        assert disk.indices(3).tolist() == indices
        plain = disk.transpose if disk.transposed else disk
        assert Neighborhood.from_name(plain.name) == plain
    """
    elsewhere(code, pickle.dumps((disk, disk.indices(3).tolist())))


def test_layers_on_rings_of_your_own_pickle_into_another_process() -> None:
    here = grid(0)
    layers = torch.nn.Sequential(
        DiscoConv(2, 4, here, bias=False), SphericalAttention(4, here, heads=2, cutoff=1.5)
    )
    x = torch.randn(1, 2, *here.shape)
    code = """
        layers, x, y = it
        torch.testing.assert_close(layers(x), y)
        layers(x).sum().backward()
    """
    with torch.no_grad():
        elsewhere(code, pickle.dumps((layers, x, layers(x))))


USES = """
def disk(i, g):
    u = torch.randn(1, 1, g.size, 2)
    ops.neighborhood_attention(u, u, u, Neighborhood.disk(g, g, 1.5))

def window(i, g):
    u = torch.randn(1, 1, 2 * (6000 + i), 1)
    ops.neighborhood_attention(u, u, u, Neighborhood.window((2, 6000 + i), (1, 3)))

def stencil(i, g):
    ops.disco(f, torch.ones(1, 1, 9), Stencil.hats(GRID, cutoff=1 + i / 1e4))

def bilinear(i, g):
    ops.resample(torch.randn(g.shape), g, Grid.gauss(32, 64))

def conservative(i, g):
    ops.resample(torch.randn(g.shape), g, Grid.gauss(32, 64), mode="conservative")

def transforms(i, g):
    ops.isht(ops.sht(torch.randn(g.shape), g, 19), g)

def vectors(i, g):
    ops.vorticity_divergence(torch.randn(2, *g.shape), g, 19)

def weights(i, g):
    u = torch.randn(1, 1, g.size, 2)
    ops.global_attention(u, u, u, g)

def differences(i, g):
    objectives.sobolev(torch.randn(1, 1, *g.shape), torch.randn(1, 1, *g.shape), g)
"""
"""What is made anew for each i."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_two_thousand_of_each_take_less_than_a_hundred_megabytes_in_all() -> None:
    code = """
        import ctypes, gc, sys, numpy as np, torch
        from spherule import Grid, objectives, ops
        from spherule.geometry.filters import Stencil
        from spherule.geometry.neighborhood import Neighborhood
        torch.set_num_threads(1)
        GRID, f = Grid.gauss(12, 24), torch.randn(1, 1, 12, 24)
        theta = np.linspace(0.1, 3.0, 30)
        uses = {}
        exec(sys.argv[1], globals(), uses)
        def use(make, i):
            make(i, Grid.from_rings(theta, [40] * 30, theta * i, [4 * np.pi / 1200] * 30))
        def held():
            gc.collect()
            # What is freed, the allocator may keep, in pieces.
            getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
            return int(open("/proc/self/statm").read().split()[1]) * 4096 / 1e6
        for make in uses.values():
            use(make, 0)
        before, grown = held(), {}
        for name, make in uses.items():
            start = held()
            for i in range(1, int(sys.argv[2]) + 1):
                use(make, i)
            grown[name] = round(held() - start)
        print(f"{held() - before:.0f} MB: {grown}")
        assert held() - before < 100, grown
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), USES, "2000"], check=True)
