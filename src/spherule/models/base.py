"""What all models share: fields in and out, other grids, saving and loading."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from spherule import checks
from spherule.distributed import Place, Shards, own
from spherule.grids import Grid
from spherule.grids.serial import as_grid
from spherule.models import hub
from spherule.models.config import ModelConfig
from spherule.models.pretrained import load, save
from spherule.nn import Placed
from spherule.nn.checks import flat_field
from spherule.ops.checks import require_points

AnyModel = TypeVar("AnyModel", bound="Model")

MODELS: dict[str, type["Model"]] = {}
"""All models by name: each class that declares a `Config`."""
MODEL_CONFIGS: dict[str, type[ModelConfig]] = {}
"""Their configs, by name."""


class Model(Placed):
    """A map from fields (batch, in_channels, *grid.shape) to (batch, out_channels, *grid.shape)."""

    Config: ClassVar[type[ModelConfig]]
    grid: Any
    """Where it lives: a grid, or shards of one."""
    config: Any
    """What was built: the config with all grids and radii filled in."""

    def __init_subclass__(cls) -> None:
        if "Config" in vars(cls):
            MODELS[cls.__name__] = cls
            MODEL_CONFIGS[cls.Config.__name__] = cls.Config

    @checks.arguments
    def __init__(
        self, config: ModelConfig, grid: Grid | str, in_channels: int, out_channels: int
    ) -> None:
        super().__init__()
        if type(config) is not self.Config:
            raise TypeError(
                f"config: {type(self).__name__} needs a {self.Config.__name__}, got "
                f"{type(config).__name__}"
            )
        self.grid = as_grid(grid)
        self.in_channels = checks.integer("in_channels", in_channels, low=1)
        self.out_channels = checks.integer("out_channels", out_channels, low=1)
        self.config = config.resolved(self.grid)

    def forward(
        self, x: Float[Tensor, "batch in_channels ..."], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch out_channels ..."]:
        """A mask, `(*grid.shape)` or `(batch, *grid.shape)`, is True where values count. What x
        has elsewhere, NaN or not, has no influence and no gradient; the output is whole.
        """
        flat_field(self, "x", x, self.in_channels, self.grid)
        if mask is None:
            return self.predict(x)
        require_points("mask", mask, own(self.grid))
        if mask.dtype != torch.bool:
            raise TypeError(f"mask: expected bool, True where values count, got {mask.dtype}")
        mask = mask.expand(x.shape[0], *self.grid.shape)
        return self.predict_masked(torch.where(mask[:, None], x, 0.0), mask)

    def predict(self, x: Tensor) -> Tensor:
        """The map itself, for input that fits."""
        raise NotImplementedError

    def predict_masked(self, x: Tensor, mask: Tensor) -> Tensor:
        """The same where x is 0 outside of a mask `(batch, *grid.shape)`, for models whose layers
        take one; others see the zeros.
        """
        return self.predict(x)

    @property
    def fitting_samples(self) -> int:
        """How many samples `fit` asks for."""
        return 64

    def fit(self, batches: Iterable[Sequence[Any]], *, steady: bool = False) -> Any | None:
        """Before training, find by least squares what can be found so, from (input, target, ...)
        batches; what was found. Most models have nothing of the kind, and take none of them.

        Args:
            batches: seen once.
            steady: of maps that follow themselves, take one near the best that does not grow.
        """
        return None

    def on(self: AnyModel, *grids: Place | str) -> AnyModel:
        """The same operator, with the same Parameters, on another grid or on shards of one: all
        cutoffs stay what they are. Inner grids are derived from it, or follow it.
        """
        return super().on(*(g if isinstance(g, Shards) else as_grid(g) for g in grids))

    def place(self, *grids: Any) -> None:
        super().place(*grids)
        self.grid = grids[0]

    @checks.arguments
    def save_pretrained(self, directory: str | Path, *, card: str | None = None) -> str:
        """Write `model.safetensors` and `config.json`; what `from_pretrained` takes is returned.

        Args:
            directory: where to, or `hf://owner/name` on the Hugging Face Hub.
            card: what the Hub shows of the model; by default what it is, without how it was made
                (`runs.publish` tells that too).
        """
        if hub.is_address(directory):
            return hub.upload(self, str(directory), card)
        save(self, Path(directory))
        return str(directory)

    @classmethod
    @checks.arguments
    def from_pretrained(cls: type[AnyModel], directory: str | Path) -> AnyModel:
        """Read what `save_pretrained` wrote. Nothing is unpickled.

        Args:
            directory: where from, or `hf://owner/name@commit` on the Hugging Face Hub, with all 40
                digits of the commit.
        """
        return load(
            cls, hub.download(str(directory)) if hub.is_address(directory) else Path(directory)
        )
