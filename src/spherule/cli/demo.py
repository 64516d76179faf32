"""`spherule demo`."""

from dataclasses import dataclass, replace
from pathlib import Path

from spherule import recipes
from spherule.cli.progress import progress
from spherule.report.page import write_report
from spherule.runs import train

MODELS = ("swe/s2-transformer-local:tiny", "swe/r2-transformer-local:tiny")


@dataclass(frozen=True)
class Demo:
    """Train a spherical and a planar Transformer on shallow water, and write a page about both."""

    out: Path = Path("out/demo")
    """Directory for the runs and the page."""
    epochs: int | None = None
    """By default those of the recipes."""

    def run(self) -> None:
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
        write_report(page, directories)
        print(f"wrote {page}: open it in a browser")
