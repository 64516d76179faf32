"""Figures of docs/results.md from what `results/rollouts.py` wrote.

python results/figures.py results/rollouts-small.json docs/images/rollouts.png
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

COLORS = ("#0b5394", "#6fa8dc", "#cc7a00", "#38761d")


def main(source: Path, target: Path) -> None:
    rows = json.loads(source.read_text())
    variables = next(iter(rows.values()))["variables"]
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), sharex=True, layout="constrained")
    for v, name in enumerate(variables):
        error, ratio = axes[:, v]
        for color, row in zip(COLORS, rows.values(), strict=False):
            days = np.arange(1, len(row["error"]) + 1)
            error.plot(days, np.array(row["error"])[:, v], color=color, label=row["title"])
            model, truth = (np.array(row[key])[:, v] for key in ("model", "truth"))
            ratio.plot(days, model / truth, color=color)
        still = np.array(next(iter(rows.values()))["persistence"])[:, v]
        error.plot(np.arange(1, len(still) + 1), still, color="#999", ls=":", label="persistence")
        error.set(title=name, yscale="log", ylim=(0.01, 5))
        ratio.axhspan(0.5, 2, color="#eee", zorder=0)
        ratio.set(yscale="log", ylim=(0.25, 16), xlabel="days")
        ratio.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16], ["¼", "½", "1", "2", "4", "8", "16"])
        ratio.minorticks_off()
        error.set_yticks([0.01, 0.1, 1], ["0.01", "0.1", "1"])
        error.minorticks_off()
        for ax in (error, ratio):
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("error, deviations")
    axes[1, 0].set_ylabel("variance over the solver's")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, loc="outside lower center", ncols=3)
    figure.savefig(target, dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
