import math

import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.pde import EARTH, ShallowWater
from spherule.pde.initial_states import (
    CASES,
    PRESETS,
    Preset,
    case_named,
    galewsky,
    galewsky_depth,
    galewsky_jet,
    mountain,
    random_states,
    williamson5,
    williamson6,
)


def test_galewskys_depth_is_the_published_constant() -> None:
    assert abs(galewsky_depth() - 10158.186170454623) < 1e-9


def test_galewskys_jet_has_the_published_vorticity() -> None:
    lat = np.linspace(0.3, 1.3, 200001)
    vorticity = -np.gradient(galewsky_jet(lat) * np.cos(lat), lat) / (EARTH.radius * np.cos(lat))
    assert vorticity.min() == pytest.approx(-9.830e-5, abs=5e-9)
    assert vorticity.max() == pytest.approx(1.1237e-4, abs=5e-9)
    assert galewsky_jet(lat).max() == pytest.approx(80)


def test_galewskys_mean_depth_is_ten_kilometers_and_the_jet_is_balanced() -> None:
    state = galewsky(63, perturbed=False)
    mean = float(state[0, 0, 0].real) / math.sqrt(4 * math.pi) / EARTH.gravity
    assert mean == pytest.approx(1e4, abs=1e-6)
    grid = Grid.gauss(96, 192)
    solver = ShallowWater(grid, lmax=63)
    later = solver.advance(state, 180.0, 20)
    drift = (solver.fields(later) - solver.fields(state))[0].abs().max() / EARTH.gravity
    assert drift < 0.5  # meters in an hour, of a jet that lowers the surface by a thousand
    waves = later[..., 1:].abs().amax((-1, -2)) / later.abs().amax((-1, -2))
    assert waves[:2].max() < 1e-12


def test_galewskys_bump_stands_at_45_north_on_the_meridian() -> None:
    grid = Grid.gauss(128, 256)
    bump = ops.isht((galewsky(63) - galewsky(63, perturbed=False))[0], grid) / EARTH.gravity
    lat = np.pi / 2 - grid.theta[:, None]
    lon = (grid.point_phi.reshape(grid.shape) + np.pi) % (2 * np.pi) - np.pi
    exact = 120 * np.cos(lat) * np.exp(-((3 * lon) ** 2) - (15 * (lat - np.pi / 4)) ** 2)
    assert np.abs(bump.numpy() - exact).max() < 1.0


@pytest.mark.parametrize("lmax", [10, 21, 42])
@pytest.mark.parametrize("preset", list(PRESETS))
def test_deviations_are_the_presets_at_every_resolution(preset: str, lmax: int) -> None:
    grid = Grid.gauss(24, 48)
    states = random_states(lmax, 200, preset=preset, generator=torch.Generator().manual_seed(3))
    height = ops.isht(states[:, 0], grid) / EARTH.gravity
    wind = ops.wind(states[:, 1], states[:, 2], grid, radius=EARTH.radius)
    wanted = PRESETS[preset]
    assert height.mean() == pytest.approx(wanted.mean_depth, rel=1e-3)
    height = height - wanted.mean_depth
    for values, std in ((height, wanted.height_std), (wind, wanted.wind_std)):
        rings = values.square().mean(0).mean(-1).sqrt() / std
        weights = torch.tensor(grid.ring_weights / grid.ring_weights.sum())
        torch.testing.assert_close(
            (rings * weights).sum(-1), torch.ones(rings.shape[:-1]).double(), rtol=0.05, atol=0
        )
        assert (rings - 1).abs().max() < 0.25  # the first ring has few independent values


def test_presets_are_those_of_the_paper_and_its_code() -> None:
    paper = PRESETS["paper"]
    assert (paper.mean_depth, paper.height_std) == (1e3, 120.0)
    assert paper.wind_std == pytest.approx(20, rel=0.01)
    assert PRESETS["public"] == Preset(1e4, 42.0, 1.4)


def test_mountain_and_water_have_a_smooth_surface() -> None:
    grid = Grid.gauss(64, 128)
    surface = ops.isht(williamson5(42)[0] + mountain(42), grid) / EARTH.gravity
    assert surface.max() == pytest.approx(5960, abs=1)
    assert (surface - surface[:, :1]).abs().max() < 1e-8
    ground = ops.isht(mountain(42), grid) / EARTH.gravity
    peak = int(ground.argmax())
    assert ground.max() == pytest.approx(2000, rel=0.15)  # a cone, truncated
    assert math.degrees(np.pi / 2 - grid.point_theta[peak]) == pytest.approx(30, abs=3)
    assert math.degrees(grid.point_phi[peak]) == pytest.approx(270, abs=3)


def test_rossby_haurwitz_wave_is_one_harmonic_without_divergence() -> None:
    state = williamson6(20)
    vorticity = state[1].clone()
    assert vorticity[5, 4].abs() > 0
    vorticity[5, 4] = vorticity[1, 0] = 0
    assert vorticity.abs().max() < 1e-15 * state[1].abs().max() * 100
    assert state[2].abs().max() < 1e-17
    # Closed forms: psi = a^2 w (-sin + cos^4 sin cos 4 lon), vorticity = laplacian(psi).
    grid = Grid.gauss(16, 32)
    lat, lon = np.pi / 2 - grid.point_theta, grid.point_phi
    exact = 7.848e-6 * (2 * np.sin(lat) - 30 * np.sin(lat) * np.cos(lat) ** 4 * np.cos(4 * lon))
    np.testing.assert_allclose(ops.isht(state[1], grid).ravel(), exact, atol=1e-17)


def test_rossby_haurwitz_wave_is_balanced() -> None:
    """Its height is such that divergence does not grow at first."""
    state, dt = williamson6(20), 0.01
    later = ShallowWater(Grid.gauss(64, 128), lmax=20).advance(state, dt, 1)
    unbalanced = dt * ops.laplacian(state[0], radius=EARTH.radius).abs().max()
    assert later[2].abs().max() < 1e-4 * unbalanced


@pytest.mark.parametrize("name", list(CASES))
def test_cases_have_names(name: str) -> None:
    assert case_named(name)(10).shape == (3, 11, 11)


def test_bad_input_is_named(unchecked) -> None:
    with pytest.raises(ValueError, match="name='galewski': expected one of williamson2"):
        case_named("galewski")
    with pytest.raises(ValueError, match="name='papr': expected one of paper, public"):
        random_states(10, 2, preset="papr")
    with pytest.raises(ValueError, match="mean_depth=-100"):
        random_states(10, 2, preset=Preset(-100, 1, 1))
    with pytest.raises(ValueError, match="depth is negative somewhere"):
        random_states(10, 2, preset=Preset(100, 42, 1))
    with pytest.raises(ValueError, match="lmax=0"):
        galewsky(0)
    with pytest.raises(ValueError, match="lmax=0"):
        random_states(0, 1)
