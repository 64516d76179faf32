"""`spherule demo`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Demo:
    """Draw a random field on several grids, with its spectrum."""

    out: Path = Path("out/demo")
    """Directory for the picture."""
    seed: int = 0
    """Seed of the random field."""

    def run(self) -> None:
        from spherule.report.gallery import draw_gallery

        print(f"wrote {draw_gallery(self.out / 'grids.png', seed=self.seed)}")
