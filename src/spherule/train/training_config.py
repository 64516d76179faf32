"""How a model is trained, as a value."""

import re
from dataclasses import dataclass
from typing import Literal

from spherule import checks


@dataclass(frozen=True)
class TrainingConfig:
    """How a model is trained."""

    epochs: int = 50
    """Passes over the data, or over `--samples` of an endless source; each ends in validation.
    0: only what is fitted by least squares."""
    batch: int = 4
    """Samples of an optimizer step, over all processes and all parts of an accumulated step."""
    accumulate: int = 1
    """Parts in which a batch goes through the model, to save memory."""
    domain: int = 1
    """Processes that share each sample: a run of its rings each."""
    optimizer: Literal["adam", "adamw"] = "adam"
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "plateau", "cosine"] = "plateau"
    """Plateau: a tenth of the rate after `patience` epochs in which validation is no better."""
    patience: int = 10
    warmup: int = 0
    """Steps in which the learning rate rises from 0."""
    clip: float | None = None
    """The largest norm of the gradient; longer ones are scaled down."""
    ema: float = 0.0
    """Decay of the weights' moving average, such as 0.999; where it is not 0, the average is what
    is validated and kept."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """bfloat16: autocast; weights stay float32."""
    seed: int = 0
    workers: int = 0
    """Processes of each rank that load data."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1 ..."""
    save_every: int = 0
    """Steps between checkpoints within an epoch; 0: only at its end."""

    def __post_init__(self) -> None:
        checks.config(self)
        if not re.fullmatch(r"auto|cpu|(cuda|mps|xpu)(:[0-9]+)?", self.device):
            raise ValueError(f"device={self.device!r}: expected auto, cpu, cuda, cuda:1 ...")
        for name in ("batch", "accumulate", "domain"):
            checks.integer(name, getattr(self, name), low=1)
        for name in ("epochs", "warmup", "workers", "save_every", "seed", "patience"):
            checks.integer(name, getattr(self, name), low=0)
        checks.number("weight_decay", self.weight_decay, low=0)
        checks.number("learning_rate", self.learning_rate, above=0)
        checks.number("ema", self.ema, low=0, below=1)
        if self.clip is not None:
            checks.number("clip", self.clip, above=0)
        if self.batch % self.accumulate:
            raise ValueError(
                f"batch={self.batch} must be a multiple of accumulate={self.accumulate}"
            )
