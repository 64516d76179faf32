"""Which part of a recipe does how much for rollouts: at 32x64, each changed on its own.

    python results/ablation.py runs/ablation --out results/ablation.json

Trains one after the other (what is there already is taken as it is), then follows each for thirty
days as `results/rollouts.py` does.
"""

import argparse
import subprocess
import sys
from pathlib import Path

RECIPE = "swe/zonal-transformer-local:tiny"

VARIANTS: dict[str, tuple[str, ...]] = {
    "zonal": (),
    "spectral-skip": ("--model.skip", "spectral"),
    "identity-skip": ("--model.skip", "identity", "--model.skip-lmax", "None"),
    "no-truncation": ("--model.bandlimit", "None", "--model.no-keep-mean"),
    "no-ema": ("--ema", "0"),
    "noise": ("--noise", "0.05"),
    "ages": ("--ages", "10"),
    "unrolling": ("--unroll", "4", "3", "2", "1", "--unroll-from", "0.67"),
    "spectral-all": (
        *("--model.skip", "spectral", "--noise", "0.05", "--ages", "10"),
        *("--unroll", "4", "3", "2", "1", "--unroll-from", "0.67"),
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", default="20")
    options = parser.parse_args()
    runs = []
    for name, flags in VARIANTS.items():
        run = options.directory / name
        runs.append(str(run))
        if (run / "evaluation.json").exists():
            continue
        train = ["train", RECIPE, "--epochs", options.epochs, "--out", str(run), "--overwrite"]
        for command in ([*train, *flags], ["evaluate", str(run)]):
            subprocess.run([sys.executable, "-m", "spherule", *command], check=True)
    follow = [str(Path(__file__).with_name("rollouts.py")), *runs, "--out", str(options.out)]
    subprocess.run([sys.executable, *follow], check=True)


if __name__ == "__main__":
    main()
