import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from spherule import Grid, nn

GRID, COARSE, OTHER = Grid.gauss(8, 16), Grid.gauss(4, 8), Grid.octahedral(4)
RINGS = Grid.from_rings(OTHER.theta, OTHER.nphi, OTHER.phi0 + 0.2, OTHER.ring_weights)

LAYERS = {
    "attention": lambda *grids: nn.SphericalAttention(4, *grids[:1], cutoff=0.9),
    "convolution": lambda *grids: nn.DiscoConv(4, 4, *grids, cutoff=1.5),
    "norm": lambda *grids: nn.SphericalInstanceNorm(4, *grids[:1]),
    "embedding": lambda *grids: nn.SpectralEmbedding(4, *grids[:1]),
    "resampling": lambda *grids: nn.Resample(*grids),
    "block": lambda *grids: torch.nn.Sequential(
        nn.Block(
            nn.SphericalInstanceNorm(4, grids[0]),
            nn.SphericalAttention(4, grids[0], cutoff=0.9),
            nn.ChannelNorm(4),
            nn.Mlp(4, 8),
        ),
    ),
}
TWO = ("convolution", "resampling")


@pytest.mark.parametrize("name", LAYERS)
def test_on_another_grid_it_is_the_layer_made_there(name: str) -> None:
    layer = LAYERS[name](GRID, COARSE)
    grids = (OTHER, COARSE) if name in TWO else (OTHER,)
    if isinstance(layer, nn.Placed):
        moved = layer.on(*grids)
    else:
        moved = pickle.loads(pickle.dumps(layer))
        nn.place(moved, *grids)
    made = LAYERS[name](OTHER, COARSE)
    made.load_state_dict(layer.state_dict())
    x = torch.randn(2, 4, *OTHER.shape)
    assert torch.equal(moved(x), made(x))
    assert layer(torch.randn(2, 4, *GRID.shape)).shape[2:] in (GRID.shape, COARSE.shape)


def test_tables_stay_on_their_device_and_in_their_precision() -> None:
    layer = nn.SphericalInstanceNorm(4, GRID).to("meta", torch.float64)
    moved = layer.on(OTHER)
    assert (moved.weights.device.type, moved.weights.dtype) == ("meta", torch.float64)
    assert (layer.weights.numel(), moved.weights.numel()) == (GRID.size, OTHER.size)
    assert not moved.state_dict().keys() - {"weight", "bias"}


def test_nothing_that_is_set_on_the_one_reaches_the_other() -> None:
    layer = nn.SphericalAttention(4, GRID, cutoff=0.9, qk_norm=True)
    moved = layer.on(GRID)
    moved.register_forward_hook(lambda *_: pytest.fail("a hook of the other layer ran"))
    moved.out.weight = torch.nn.Parameter(torch.zeros(4, 4))
    moved.eval()
    assert layer.training
    assert layer.out.training
    assert layer(torch.randn(1, 4, *GRID.shape)).abs().max() > 0


@pytest.mark.parametrize(
    "layer",
    [
        nn.PlanarConv(4, 4, GRID),
        nn.PlanarAttention(4, GRID, window=3),
        nn.PlainInstanceNorm(4),
        nn.PlanarResample(COARSE, GRID),
        nn.LearnedEmbedding(4, GRID),
        nn.SequenceEmbedding(4, GRID),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_what_knows_no_sphere_refuses_by_name(layer: nn.Placed) -> None:
    with pytest.raises(ValueError, match=f"{type(layer).__name__} knows points, not places"):
        layer.on(OTHER)


LOAD = """
import pickle, sys, torch
layers, x, outputs = pickle.load(open(sys.argv[1], "rb"))
for layer, y in zip(layers, outputs, strict=True):
    assert torch.equal(layer(x), y), layer
"""


def test_layers_on_rings_of_ones_own_pickle_into_another_process(tmp_path: Path) -> None:
    layers = [make(RINGS, COARSE) for make in LAYERS.values()]
    x = torch.randn(1, 4, *RINGS.shape)
    with torch.no_grad():
        outputs = [layer(x) for layer in layers]
    path = tmp_path / "layers.pickle"
    path.write_bytes(pickle.dumps((layers, x, outputs)))
    threads = {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", LOAD, path], check=True, env=os.environ | threads)
