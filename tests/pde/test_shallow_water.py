import math
from itertools import islice

import numpy as np
import pytest
import torch

from spherule import Grid, ops
from spherule.pde import EARTH, AdamsBashforth3, Equation, Heun3, Planet, ShallowWater
from spherule.pde.initial_states import (
    mountain,
    random_states,
    williamson2,
    williamson5,
    williamson6,
)

GRID = Grid.gauss(64, 128)


def reference_tendency(state: torch.Tensor, ground: torch.Tensor | None) -> torch.Tensor:
    """The equations word for word, on a grid twice as fine as they need."""
    lmax, radius = state.shape[-1] - 1, EARTH.radius
    grid = Grid.gauss(3 * lmax + 3, 6 * lmax + 6)
    geopotential, vorticity, divergence = state
    phi, zeta = ops.isht(state[:2], grid)
    f = 2 * EARTH.omega * torch.tensor(np.cos(grid.theta))[:, None]
    wind = ops.wind(vorticity, divergence, grid, radius=radius)
    curl, outflow = ops.vorticity_divergence((zeta + f) * wind, grid, lmax, radius=radius)
    _, loss = ops.vorticity_divergence(phi * wind, grid, lmax, radius=radius)
    head = geopotential + ops.sht((wind**2).sum(0) / 2, grid, lmax)
    head = head if ground is None else head + ground
    return torch.stack([-loss, -outflow, curl - ops.laplacian(head, radius=radius)])


def invariants(solver: ShallowWater, state: torch.Tensor) -> torch.Tensor:
    """Mass, energy, potential enstrophy."""
    grid = Grid.gauss(128, 256)
    phi, vorticity, _ = solver.fields(state, grid)
    f = 2 * EARTH.omega * torch.tensor(np.cos(grid.theta))[:, None]
    speed = (solver.wind(state, grid) ** 2).sum(0)
    values = torch.stack([phi, phi * speed / 2 + phi**2 / 2, (vorticity + f) ** 2 / phi])
    return ops.integrate(values, grid)


@pytest.mark.parametrize("with_ground", [False, True])
def test_steps_are_those_of_the_equations_word_for_word(with_ground: bool) -> None:
    state = random_states(10, 1, preset="paper")[0]
    ground = 0.1 * mountain(10) if with_ground else None
    solver = ShallowWater(GRID, lmax=10, topography=ground)
    equation = Equation(lambda y: reference_tendency(y, ground))
    run = AdamsBashforth3().states(equation, state, 300.0)
    expected = next(islice(run, 4, None))
    result = solver.advance(state, 300.0, 5)
    change = (expected - state).abs().amax((-1, -2), keepdim=True)
    assert ((result - expected) / change).abs().max() < 1e-10


@pytest.mark.parametrize("tilt", [0.0, 0.7])
def test_case_2_is_steady_for_five_days(tilt: float) -> None:
    solver = ShallowWater(Grid.gauss(128, 256), tilt=tilt)
    assert solver.lmax == 42
    state = williamson2(42, tilt=tilt)
    before, after = solver.fields(torch.stack([state, solver.advance(state, 400.0, 1080)]))
    error = ops.integrate((after - before) ** 2, solver.grid)[:2].sqrt()
    norm = ops.integrate(before**2, solver.grid)[:2].sqrt()
    assert (error / norm).max() < 1e-12
    assert after[2].abs().max() < 1e-12 * before[1].abs().max()


def test_case_6_conserves_mass_energy_and_potential_enstrophy_for_a_day() -> None:
    solver = ShallowWater(Grid.gauss(128, 256), lmax=42)
    state = williamson6(42)
    later = solver.advance(state, 300.0, 288)
    before, after = invariants(solver, state), invariants(solver, later)
    drift = ((after - before) / before).abs()
    assert drift[0] < 1e-14
    assert drift[1:].max() < 1e-7
    # The wave moved: it is not conserved by standing still.
    assert (later[1] - state[1]).abs().max() > 0.1 * state[1].abs().max()


def test_error_falls_with_the_third_power_of_the_step() -> None:
    solver, state = ShallowWater(GRID, lmax=16), williamson6(16)
    exact = solver.advance(state, 20.0, 540)
    errors = [
        float((solver.advance(state, dt, int(10800 / dt)) - exact)[0].abs().norm())
        for dt in (360.0, 180.0, 90.0)
    ]
    assert math.log2(errors[0] / errors[1]) > 2.8
    assert math.log2(errors[1] / errors[2]) > 2.8


def test_turning_the_planet_turns_the_flow() -> None:
    tilt = 0.6
    c, s = math.cos(tilt), math.sin(tilt)
    turn = np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])  # brings the pole to (-s, 0, c)
    state = random_states(12, 1, preset="paper")[0]
    upright = ShallowWater(GRID, lmax=12).advance(state, 300.0, 12)
    tilted = ShallowWater(GRID, lmax=12, tilt=tilt).advance(ops.rotate(state, turn), 300.0, 12)
    expected = ops.rotate(upright, turn)
    scale = expected.abs().amax((-1, -2), keepdim=True)
    assert ((tilted - expected) / scale).abs().max() < 1e-11


def test_water_at_rest_over_a_mountain_stays_at_rest() -> None:
    ground = mountain(21)
    state = torch.zeros(3, 22, 22, dtype=torch.complex128)
    state[0] = -ground
    state[0, 0, 0] += math.sqrt(4 * math.pi) * EARTH.gravity * 5000
    later = ShallowWater(GRID, topography=ground).advance(state, 300.0, 48)
    assert (later - state)[0].abs().max() < 1e-13 * state[0].abs().max()
    assert later[1:].abs().max() < 1e-17


def test_case_5_conserves_mass_and_makes_waves_behind_the_mountain() -> None:
    grid = Grid.gauss(128, 256)
    solver = ShallowWater(grid, topography=mountain(42))
    state = williamson5(42)
    later = solver.advance(state, 400.0, 216)
    assert later[0, 0, 0] == state[0, 0, 0]
    vorticity = solver.fields(later)[1] - solver.fields(state)[1]
    strongest = int(vorticity.abs().argmax())
    assert math.degrees(np.pi / 2 - grid.point_theta[strongest]) == pytest.approx(30, abs=20)
    assert math.degrees(grid.point_phi[strongest]) == pytest.approx(275, abs=25)
    energy = [
        ops.integrate(phi * speed / 2 + phi**2 / 2 + phi * ops.isht(mountain(42), grid), grid)
        for phi, speed in (
            (solver.fields(s)[0], (solver.wind(s) ** 2).sum(0)) for s in (state, later)
        )
    ]
    assert energy[1] / energy[0] - 1 == pytest.approx(0, abs=1e-7)


def test_a_batch_is_its_states_one_by_one() -> None:
    solver = ShallowWater(GRID)
    states = random_states(21, 6).reshape(2, 3, 3, 22, 22)
    together = solver.advance(states, 300.0, 6)
    assert together.shape == states.shape
    for i in range(2):
        for j in range(3):
            alone = solver.advance(states[i, j], 300.0, 6)
            torch.testing.assert_close(together[i, j], alone, rtol=1e-11, atol=1e-18)
    assert solver.advance(states[:0], 300.0, 6).shape == (0, 3, 3, 22, 22)


def test_trajectory_passes_through_the_states_of_advance() -> None:
    solver, state = ShallowWater(GRID, lmax=10), random_states(10, 1)[0]
    states = list(solver.trajectory(state, 300.0, 7, every=3))
    assert len(states) == 2
    torch.testing.assert_close(states[0], solver.advance(state, 300.0, 3), rtol=0, atol=0)
    torch.testing.assert_close(states[1], solver.advance(state, 300.0, 6), rtol=0, atol=0)
    assert solver.advance(state, 300.0, 0) is state


def test_single_precision_is_close_to_double() -> None:
    states = random_states(42, 2)
    grid = Grid.gauss(128, 256)
    double, single = (ShallowWater(grid, dtype=d) for d in (torch.float64, torch.float32))
    exact = double.advance(states, 150.0, 24)
    result = single.advance(states.to(torch.complex64), 150.0, 24)
    assert result.dtype == torch.complex64
    assert single.fields(result).dtype == torch.float32
    result[:, 0, 0, 0] = exact[:, 0, 0, 0]  # the mean's own rounding
    error = (double.fields(result.to(torch.complex128)) - double.fields(exact)).std((-1, -2))
    assert (error / double.fields(exact).std((-1, -2))).max() < 5e-6


@pytest.mark.parametrize("name", ["H16", "O24", "clenshaw_curtis:33x64"])
def test_output_goes_to_any_grid(name: str) -> None:
    grid = Grid.from_name(name)
    solver, state = ShallowWater(grid), random_states(grid.nrings // 3, 2)
    assert solver.fields(state).shape == (2, 3, *grid.shape)
    assert solver.wind(state).shape == (2, 2, *grid.shape)
    assert solver.fields(state, GRID).shape == (2, 3, 64, 128)


def test_damping_is_an_e_fold_in_its_time_at_the_highest_degree() -> None:
    still = Planet(omega=0.0)
    solver = ShallowWater(GRID, lmax=20, planet=still, damping_time=3600.0, damping_power=2)
    state = torch.zeros(3, 21, 21, dtype=torch.complex128)
    state[0, 0, 0] = math.sqrt(4 * math.pi) * EARTH.gravity * 1e4
    state[1, 20, 7], state[1, 10, 3] = 1e-14, 1e-14  # so weak that it stays linear
    later = solver.advance(state, 300.0, 12)
    assert later[1, 20, 7].real.item() == pytest.approx(1e-14 * math.exp(-1), rel=1e-5)
    part = (10 * 11 / (20 * 21)) ** 2
    assert later[1, 10, 3].real.item() == pytest.approx(1e-14 * math.exp(-part), rel=1e-5)
    assert later[0, 0, 0] == state[0, 0, 0]


def test_damping_leaves_the_depth_alone_and_takes_vorticity_and_divergence_alike() -> None:
    state, dt, time = random_states(16, 1, preset="paper")[0], 1e-3, 3600.0
    calm, damped = (
        ShallowWater(GRID, lmax=16, damping_time=t).advance(state, dt, 1) for t in (None, time)
    )
    degree = torch.arange(17, dtype=torch.float64)
    rate = (degree * (degree + 1) / (16 * 17)) ** 4 / time
    lost = (calm - damped)[1:]
    torch.testing.assert_close(lost, dt * rate[:, None] * state[1:], rtol=1e-3, atol=1e-18)
    assert (calm - damped)[0].abs().max() < 1e-6 * dt / time * state[0, 1:].abs().max()


def test_another_integrator_solves_the_same_equations() -> None:
    state = random_states(16, 1, preset="paper")[0]
    solvers = [
        ShallowWater(GRID, lmax=16, damping_time=7200.0, integrator=integrator)
        for integrator in (None, Heun3())
    ]
    states = [solver.advance(state, 10.0, 60) for solver in solvers]
    change = (states[0] - state).abs().amax((-1, -2), keepdim=True)
    assert 0 < ((states[1] - states[0]) / change).abs().max() < 1e-6
    limits = [solver.cfl_limit(state) for solver in solvers]
    assert limits[1] / limits[0] == pytest.approx(Heun3.reach / AdamsBashforth3.reach)
    assert solvers[1].advance(state, 0.9 * limits[1], 50).isfinite().all()


def test_gradients_flow_through_steps() -> None:
    solver = ShallowWater(GRID, lmax=6)
    state = random_states(6, 1)[0]
    direction = random_states(6, 1)[0] - random_states(6, 1)[0]

    def norm(epsilon: torch.Tensor) -> torch.Tensor:
        return (solver.advance(state + epsilon * direction, 300.0, 4)[1].abs() * 1e5).square().sum()

    epsilon = torch.tensor(0.0, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(norm(epsilon), epsilon)
    step = torch.tensor(1e-4, dtype=torch.float64)
    assert slope.item() == pytest.approx(((norm(step) - norm(-step)) / 2e-4).item(), rel=1e-6)


def test_too_large_a_step_names_the_limit() -> None:
    solver, state = ShallowWater(GRID), random_states(21, 2)
    limit = solver.cfl_limit(state)
    # The fastest wave: sqrt(g h) on degree 21.
    speed = math.sqrt(EARTH.gravity * 1e4 * 21 * 22) / EARTH.radius
    assert limit == pytest.approx(0.7236 / math.hypot(speed, 2 * EARTH.omega), rel=1e-6)
    with pytest.raises(ValueError, match=f"CFL limit .* lmax=21.*|{limit:.4g}"):
        solver.advance(state, 1.001 * limit, 1)
    assert solver.advance(state, 0.98 * limit, 400).isfinite().all()
    with pytest.raises(ValueError, match="dt=-1"):
        solver.advance(state, -1.0, 1)


def test_a_run_that_blows_up_says_so_instead_of_nan() -> None:
    solver, state = ShallowWater(Grid.gauss(128, 256)), williamson6(42)
    run = solver.trajectory(state, 0.99 * solver.cfl_limit(state), 400, every=10)
    passed = [state]
    with pytest.raises(FloatingPointError, match=r"CFL limit .* at lmax=42 is 35\d"):
        passed.extend(run)
    # It stopped when the waves were as strong as the flow, long before numbers overflowed.
    assert passed[-1].abs().max() < 2 * state.abs().max()
    assert passed[-1][2].abs().max() < 20 * state[1].abs().max()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_states_are_advanced_in_the_precision_of_the_solver(dtype: torch.dtype) -> None:
    solver = ShallowWater(GRID, dtype=dtype)
    state = random_states(21, 2)
    ends = [solver.advance(state.to(d), 300.0, 4) for d in (torch.complex64, torch.complex128)]
    assert {end.dtype for end in ends} == {dtype.to_complex()}
    scale = ends[0].abs().amax((-1, -2), keepdim=True)
    assert ((ends[0] - ends[1]).abs() < 1e-5 * scale).all()
    with torch.device("meta"):  # another default device
        assert torch.equal(solver.advance(state, 300.0, 4), ends[1])


def test_bad_input_is_named(unchecked) -> None:
    solver = ShallowWater(GRID)
    with pytest.raises(ValueError, match="lmax=64 must be in"):
        ShallowWater(GRID, lmax=64)
    with pytest.raises(ValueError, match="too small"):
        ShallowWater(Grid.gauss(2, 4))
    with pytest.raises(TypeError, match="float16"):
        ShallowWater(GRID, dtype=torch.float16)
    with pytest.raises(ValueError, match="damping_time=0"):
        ShallowWater(GRID, damping_time=0)
    with pytest.raises(ValueError, match="damping_power=0"):
        ShallowWater(GRID, damping_power=0)
    with pytest.raises(ValueError, match="topography: expected coefficients up to lmax=21"):
        ShallowWater(GRID, topography=mountain(20))
    with pytest.raises(ValueError, match="state: expected coefficients up to lmax=21"):
        solver.advance(random_states(20, 1), 300.0, 1)
    with pytest.raises(ValueError, match=r"state: expected \(\.\.\., 3, l, m\)"):
        solver.advance(random_states(21, 1)[:, :2], 300.0, 1)
    with pytest.raises(ValueError, match="steps=-1"):
        solver.advance(random_states(21, 1), 300.0, -1)
    shallow = random_states(21, 1)
    shallow[:, 0, 0, 0] = 100.0
    with pytest.raises(ValueError, match="depth must be positive everywhere, got -"):
        solver.advance(shallow, 300.0, 1)
