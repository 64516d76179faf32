"""Runs on rooms, each measured on its own test rooms and on those of another run: what becomes of a
model when the camera is held otherwise than in training; and two runs room by room.

    python results/rooms.py RUN ... --keep results/rooms-small/by-room.json
"""

import argparse
import itertools
import json
import math
from pathlib import Path

import numpy as np
import torch

from spherule.runs import Run


@torch.no_grad()
def by_room(run: Run, task) -> dict[str, np.ndarray]:
    """Every metric, a number for each test room."""
    model, rooms = run.model.eval(), []
    for i in range(task.test_samples):
        batch = {name: torch.as_tensor(x)[None] for name, x in task.test[i].items()}
        rooms.append({name: x.item() for name, x in task.metrics(model, batch).items()})
        if task.out_channels == 1:
            rooms[-1]["seam"] = seam(model(batch["image"])).item()
    return {name: np.array([room[name] for room in rooms]) for name in rooms[0]}


def seam(u: torch.Tensor) -> torch.Tensor:
    """The step from the last column to the first, over the mean step between neighbors: 1 where
    nothing is to be seen.
    """
    steps = (u - u.roll(1, -1)).abs().mean((0, 1, 2))
    return steps[0] / steps[1:].mean()


def difference(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """Of the same rooms: its mean, and the error of that mean."""
    return {"mean": (a - b).mean(), "error": (a - b).std(ddof=1) / math.sqrt(len(a))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", type=Path, nargs="+")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    runs = {path.name: Run.open(path) for path in given.runs}
    # Rooms are the same for all runs with cameras held alike.
    tasks = {str(run.config.task.tilt): run.task() for run in runs.values()}
    found = {
        tilt: {name: by_room(run, task) for name, run in runs.items()}
        for tilt, task in tasks.items()
    }
    kept = {
        f"tilt {tilt}": {
            "rooms": tasks[tilt].test_samples,
            "means": {
                name: {metric: x.mean() for metric, x in metrics.items()}
                for name, metrics in of.items()
            },
            "differences": {
                f"{a} - {b}": {metric: difference(of[a][metric], of[b][metric]) for metric in of[a]}
                for a, b in itertools.combinations(of, 2)
            },
        }
        for tilt, of in found.items()
    }
    text = json.dumps(kept, indent=2)
    print(text)
    if given.keep:
        given.keep.write_text(text + "\n")


if __name__ == "__main__":
    main()
