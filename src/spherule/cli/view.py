"""`spherule view`."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

if TYPE_CHECKING:
    from spherule.report.globe import Globe


@dataclass(frozen=True)
class View:
    """Write a page with a globe to turn: fields of a NetCDF file or Zarr store, panoramas from the
    inside, or what a run's model attends to.
    """

    path: tyro.conf.Positional[Path]
    """A NetCDF file, a Zarr store, or with --attention the directory of a run."""
    variable: tuple[str, ...] = ()
    """Which of the file's variables; by default the first few."""
    attention: bool = False
    """Show the attention weights of each layer and head, around the point that you click."""
    out: Path | None = None
    """The page; by default named after the file, here, or attention.html in the run."""

    def run(self) -> None:
        from spherule.report.globe import write_globe

        out = self.out
        if self.attention:
            if self.variable:
                raise ValueError("--variable chooses fields of a file, not of --attention")
            globe, out = run_attention(self.path), out or self.path / "attention.html"
        else:
            from spherule.report.globe.files import file_globe
            from spherule.runs import RunDirectory

            if RunDirectory(self.path).exists():
                quoted = shlex.quote(str(self.path))
                raise ValueError(
                    f"{self.path} is a run: spherule view {quoted} --attention shows what its "
                    f"model attends to, spherule report {quoted} the rest"
                )
            globe, out = file_globe(self.path, self.variable), out or Path(f"{self.path.stem}.html")
        write_globe(out, globe)
        print(f"wrote {out} ({out.stat().st_size / 1e6:.1f} MB)")


def run_attention(directory: Path) -> "Globe":
    """What the run's best model attends to in the first test sample."""
    from spherule.report.globe.attention import attention_globe
    from spherule.runs import Run

    run = Run.open(directory)
    model = run.model.eval()
    example = run.task().example(model)
    title = f"What {run.config.title} attends to"
    return attention_globe(
        title, model, example.forward, inputs=example.variables, image=example.image
    )
