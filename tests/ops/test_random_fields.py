import pytest
import torch

from spherule import Grid, ops


@pytest.mark.parametrize("name", ["gauss:16x32", "gauss:40x80", "H8", "O12"])
def test_variance_at_every_point_is_the_spectrums(name: str) -> None:
    grid = Grid.from_name(name)
    spectrum = ops.matern_spectrum(12, length=0.3, std=2.5)
    assert ops.point_variance(spectrum).item() == pytest.approx(2.5**2)
    u = ops.random_field(spectrum, grid, (4000,), generator=torch.Generator().manual_seed(0))
    deviation = u.std(0)
    assert (deviation / 2.5 - 1).abs().max() < 0.06  # five deviations of 4000 samples


def test_power_of_the_samples_is_the_spectrum() -> None:
    spectrum = torch.tensor([2.0, 0.0, 1.0, 0.5, 0.25], dtype=torch.float64)
    coeffs = ops.random_coeffs(spectrum, (5000,))
    mean = ops.power_spectrum(coeffs).mean(0)
    torch.testing.assert_close(mean, spectrum, rtol=0.1, atol=1e-12)
    assert not coeffs[..., 0].imag.any()
    assert not coeffs.triu(1).any()


def test_same_seed_gives_the_same_field_on_every_grid() -> None:
    spectrum = ops.matern_spectrum(8, length=0.5)
    fields = [
        ops.random_field(spectrum, grid, generator=torch.Generator().manual_seed(7))
        for grid in (Grid.gauss(20, 40), Grid.gauss(10, 20))
    ]
    coeffs = [ops.sht(u, Grid.gauss(*u.shape), 8) for u in fields]
    torch.testing.assert_close(coeffs[0], coeffs[1], rtol=0, atol=1e-13)


def test_shape_and_precision_follow_the_arguments() -> None:
    spectrum = ops.matern_spectrum(4, length=0.5).float()
    u = ops.random_field(spectrum, Grid.healpix(2), (2, 0, 3))
    assert u.shape == (2, 0, 3, 48)
    assert u.dtype == torch.float32


def test_bad_input_is_named(unchecked) -> None:
    with pytest.raises(ValueError, match="C_l must be"):
        ops.random_coeffs(torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match="spectrum: expected"):
        ops.random_coeffs(torch.ones(2, 2))
    with pytest.raises(ValueError, match="length=-1"):
        ops.matern_spectrum(5, length=-1)
