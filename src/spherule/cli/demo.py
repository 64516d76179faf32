"""`spherule demo`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from spherule import recipes

if TYPE_CHECKING:
    from spherule.train.figures import Section

MODELS = (
    "swe/s2-transformer-local:tiny",
    "swe/r2-transformer-local:tiny",
    "swe/zonal-transformer-local:tiny",
)
DAYS = 10


@dataclass(frozen=True)
class Demo:
    """Train three small Transformers on shallow water, let a pretrained one forecast ten days, and
    write a page about all: a spherical one, a planar one, and one with a linear prior.
    """

    out: Path = Path("out/demo")
    """Directory for the runs and the page."""
    epochs: int | None = None
    """By default those of the recipes."""
    pretrained: Path = Path("pretrained/swe-spectral-local")
    """The model that forecasts, where there is one."""

    def run(self) -> None:
        from spherule.cli.progress import progress
        from spherule.report.page import write_report
        from spherule.report.style import pyplot
        from spherule.runs import train

        pyplot()  # missing, it is missed before the training
        directories = []
        for name in MODELS:
            config = recipes.get(name)
            if self.epochs is not None:
                config = replace(config, training=replace(config.training, epochs=self.epochs))
            directory = self.out / name.partition("/")[2].partition(":")[0]
            print(f"{config.title}")
            with progress() as (on_step, log):
                train(config, directory, overwrite=True, on_step=on_step, log=log)
            directories.append(directory)
        page = self.out / "report.html"
        write_report(page, directories, more=self._forecast())
        print(f"wrote {page}: open it in a browser")

    def _forecast(self) -> "list[Section]":
        from spherule.report.rollout import rollout_section
        from spherule.runs import Run, roll_out

        if not self.pretrained.exists():
            print(
                f"note: {self.pretrained} is not there, so the page has no forecast of {DAYS} days"
            )
            return []
        print(f"{DAYS} days by {self.pretrained}")
        rollout = roll_out(Run.open(self.pretrained), DAYS * 24, samples=1)
        return [rollout_section(rollout, every=6)]
