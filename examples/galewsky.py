"""Galewsky's jet at T170: the vorticity of days 4, 5 and 6, drawn as in the paper (figure 4).

python examples/galewsky.py galewsky.png      (5 to 15 minutes on two cores)
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import torch

from spherule import Grid
from spherule.pde import ShallowWater
from spherule.pde.initial_states import galewsky

LMAX, STEP, DAY = 170, 72.0, 86400
SOLVER = ShallowWater(Grid.gauss(512, 1024), lmax=LMAX, damping_time=2 * 3600.0, damping_power=2)


def draw(days: dict[int, torch.Tensor], path: Path) -> None:
    grid = SOLVER.grid
    lat, lon = 90 - np.degrees(grid.theta), np.degrees(grid.point_phi[: grid.shape[1]]) - 180
    levels = np.arange(-17, 18, 2)
    figure, axes = plt.subplots(len(days), 1, figsize=(9, 8), sharex=True, layout="constrained")
    for ax, (day, state) in zip(axes, days.items(), strict=True):
        vorticity = 1e5 * np.roll(SOLVER.fields(state)[1].numpy(), grid.shape[1] // 2, axis=1)
        drawn = ax.contourf(lon, lat, vorticity, levels, cmap="RdBu_r", extend="both")
        ax.set(ylim=(10, 80), ylabel="latitude")
        ax.set_title(f"day {day}", fontsize=10)
    axes[-1].set_xlabel("longitude")
    figure.colorbar(drawn, ax=axes, label="vorticity, 1e-5 / s", shrink=0.6, ticks=levels)
    figure.savefig(path, dpi=90)


def main(path: Path) -> None:
    days = {}
    with torch.inference_mode():
        run = SOLVER.trajectory(galewsky(LMAX), STEP, int(6 * DAY / STEP), every=int(DAY / STEP))
        for day, state in enumerate(run, start=1):
            print(f"day {day}")
            days[day] = state
    draw({day: days[day] for day in (4, 5, 6)}, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
