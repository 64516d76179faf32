"""Training samples of shallow water beside torch-harmonics."""

import torch
from torch_harmonics.examples import ShallowWaterSolver

from spherule import Grid
from spherule.pde import ShallowWater
from spherule.pde.initial_states import random_states
from timing import compare, set_up

STEPS, BATCH = 24, 16


def main() -> None:
    set_up()
    row(Grid.gauss(128, 256), 42, 150.0, 9)
    row(Grid.gauss(256, 512), 85, 75.0, 5)


def row(grid: Grid, lmax: int, step: float, repeats: int) -> None:
    print(f"shallow water, {grid.name} output, lmax {lmax}, {STEPS} steps of {step} s, float32")
    # Its lmax counts degrees; it takes one state at a time.
    size = {"lmax": lmax + 1, "mmax": lmax + 1, "grid": "legendre-gauss"}
    peer = ShallowWaterSolver(*grid.shape, step, **size).float()
    peer.hyperdiff.fill_(1.0)
    ours = ShallowWater(grid, lmax=lmax, dtype=torch.float32)
    states = random_states(lmax, BATCH).to(torch.complex64)
    # The peer's solver has no Condon-Shortley phase.
    phase = (-1.0) ** torch.arange(lmax + 1)

    def their_sample() -> tuple[torch.Tensor, torch.Tensor]:
        initial = states[0] * phase
        return peer.spec2grid(initial), peer.spec2grid(peer.timestep(initial, STEPS))

    def our_batch() -> tuple[torch.Tensor, torch.Tensor]:
        return ours.fields(states), ours.fields(ours.advance(states, step, STEPS))

    with torch.inference_mode():
        for theirs, mine in zip(their_sample(), our_batch(), strict=True):
            scale = theirs.std((-1, -2))
            difference = ((mine[0] - theirs).std((-1, -2)) / scale).max()
            # The peer starts with Euler steps and carries the mean depth in float32.
            assert difference < 5e-2, f"the peer disagrees by {difference}"
            print(f"relative difference {difference:.1e}")
        name = f"one sample, {grid.name}"
        compare(name, their_sample, our_batch, repeats, ours_makes=BATCH)


if __name__ == "__main__":
    main()
