import copy

import pytest
import torch

from spherule import Grid, ops
from spherule.nn import DiscoConv, Resample

GRID, COARSE = Grid.gauss(16, 32), Grid.gauss(8, 16)


def test_paper_basis_has_nine_weights_a_channel_pair() -> None:
    layer = DiscoConv(3, 128, GRID, COARSE)
    assert [tuple(p.shape) for p in layer.parameters()] == [(128, 3, 9)]
    assert layer(torch.randn(2, 3, *GRID.shape)).shape == (2, 128, *COARSE.shape)


def test_geometry_is_shared_and_not_in_checkpoints() -> None:
    layer, other = DiscoConv(4, 4, GRID, groups=4, bias=True), DiscoConv(4, 2, GRID)
    assert layer.stencil is other.stencil
    assert copy.deepcopy(layer).stencil is layer.stencil
    assert set(layer.state_dict()) == {"weight", "bias"}


def test_bias_is_added_to_every_channel() -> None:
    layer = DiscoConv(2, 3, Grid.octahedral(4), bias=True)
    x = torch.randn(2, 2, layer.stencil.in_grid.size)
    with torch.no_grad():
        layer.bias.copy_(torch.arange(3))
    expected = ops.disco(x, layer.weight, layer.stencil) + torch.arange(3)[:, None]
    torch.testing.assert_close(layer(x), expected)


def test_on_another_grid_it_is_the_same_operator_with_the_same_parameters() -> None:
    coeffs = torch.zeros(2, 7, 7, dtype=torch.complex128)
    coeffs[:, :, 0] = torch.randn(2, 7, dtype=torch.float64)
    errors = []
    for n in (16, 32):
        layer = DiscoConv(2, 3, Grid.gauss(n, 2 * n), COARSE, cutoff=0.6).double()
        other = layer.on(Grid.clenshaw_curtis(n + 1, 2 * n), COARSE)
        assert other.weight is layer.weight
        assert other.stencil.cutoff == 0.6
        assert layer.stencil.in_grid == Grid.gauss(n, 2 * n)
        a, b = (l(ops.isht(coeffs, l.stencil.in_grid)[None]) for l in (layer, other))
        errors.append(((a - b).norm() / a.norm()).item())
    assert errors[1] < 0.02
    assert errors[1] < errors[0]


def test_initial_weights_keep_the_variance_of_smooth_fields() -> None:
    for channels, groups in ((64, 1), (64, 64)):
        layer = DiscoConv(channels, 64, GRID, groups=groups)
        x = torch.randn(1, channels, 1, 1).expand(-1, -1, *GRID.shape)
        assert 0.5 < layer(x).std() < 2


def test_trains_under_compile(unchecked) -> None:
    layer = DiscoConv(2, 3, GRID, COARSE, bias=True)
    x = torch.randn(2, 2, *GRID.shape)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), layer(x))
    compiled(x).square().sum().backward()
    assert layer.weight.grad.abs().min() > 0


def test_bad_input_names_the_layer(unchecked) -> None:
    layer = DiscoConv(2, 3, GRID, COARSE)
    for shape in ((1, 3, 16, 32), (1, 2, 8, 16), (2, 16, 32), (1, 2, 512)):
        with pytest.raises(ValueError, match=r"DiscoConv: x: expected \(batch, 2, 16, 32\)"):
            layer(torch.zeros(shape))
    with pytest.raises(ValueError, match="groups=2 must divide in_channels=3"):
        DiscoConv(3, 4, GRID, groups=2)
    with pytest.raises(ValueError, match="out_channels=0"):
        DiscoConv(3, 0, GRID)
    with pytest.raises(TypeError, match=r"groups=1\.0"):
        DiscoConv(3, 3, GRID, groups=1.0)
    with pytest.raises(ValueError, match=r"cutoff=0\.05"):
        DiscoConv(3, 3, GRID, cutoff=0.05)
    with pytest.raises(ValueError, match="out_grid is needed"):
        layer.on(Grid.gauss(32, 64))


@pytest.mark.parametrize("bias", [False, True])
def test_mixing_channels_before_an_upsampling_changes_nothing(bias: bool) -> None:
    fine, coarse = Grid.gauss(12, 24), Grid.gauss(6, 12)
    layer = DiscoConv(40, 3, fine, bias=bias).double()
    upsample = Resample(coarse, fine).double()
    x = torch.randn(2, 40, 6, 12, dtype=torch.float64)
    torch.testing.assert_close(layer.after(upsample, x), layer(upsample(x)))


@pytest.mark.parametrize(
    ("out_channels", "groups", "seen"), [(3, 1, 27), (4, 1, 36), (5, 1, 40), (2, 2, 40)]
)
def test_no_more_channels_are_upsampled_than_there_are(out_channels, groups, seen) -> None:
    """Nine parts for each output channel, unless the input channels are fewer or in groups."""
    fine, coarse = Grid.gauss(12, 24), Grid.gauss(6, 12)
    layer = DiscoConv(40, out_channels, fine, groups=groups)
    upsample = Resample(coarse, fine)
    channels = []
    upsample.register_forward_pre_hook(lambda _, inputs: channels.append(inputs[0].shape[1]))
    x = torch.randn(1, 40, 6, 12)
    y = layer.after(upsample, x)
    assert channels == [seen]
    torch.testing.assert_close(y, layer(upsample(x)), rtol=1e-4, atol=1e-5)
