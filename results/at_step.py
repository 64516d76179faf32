"""Validation losses of runs at the end of the same step: training that was stopped early beside
what went on longer. (Rates fall only after ten epochs without progress, so of these recipes the
first steps are those of a whole run.)

    python results/at_step.py 512 results/swe-*-small
"""

import argparse
import json
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", type=int)
    parser.add_argument("runs", type=Path, nargs="+")
    given = parser.parse_args()
    rows = []
    for run in given.runs:
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        epochs = {line["step"]: line for line in lines if "validation" in line}
        if given.step in epochs:
            found = epochs[given.step]["validation"]["loss"]
            rows.append((found["mean"], found["std"], lines[-1]["step"], run.name))
    for mean, std, last, name in sorted(rows):
        print(f"{mean:8.4g} ± {std:.2g}  {name}, of {last} steps")


if __name__ == "__main__":
    main()
