"""What all models share: a config, fields in and out, other grids, saving and loading."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from spherule.grids import Grid
from spherule.models.pretrained import load, save

AnyModel = TypeVar("AnyModel", bound="Model")


@dataclass(frozen=True)
class ModelConfig:
    """What the models have in common. Grids are names; cutoffs of None are derived from them."""

    in_channels: int = 3
    out_channels: int = 3
    grid: str = "gauss:128x256"
    """Where fields live, in and out."""
    convolution: Literal["spherical", "planar"] = "spherical"
    radii: int = 2
    angles: int = 4
    """Hats of the spherical filters: one in the centre, `angles` at each of `radii` distances.
    `angles=1` makes them isotropic; with `position="none"` the whole model is then equivariant."""
    attention: Literal["spherical", "planar"] = "spherical"
    local: bool = True
    """Attention within disks (spherical) or windows (planar) of `window` cells; else global."""
    window: int = 7
    edge_width: float = 0.0
    """Width of the disks' soft edge in radians."""
    position: Literal["spectral", "learned", "sequence", "none"] = "spectral"
    norm: Literal["instance", "plain_instance", "layer"] = "instance"
    """Instance norm by quadrature, with all points alike, or layer norm over the channels."""
    qk_norm: bool = False
    dropout: float = 0.0
    drop_path: float = 0.0
    """Of the last block; the blocks before it have proportionally less."""
    residual: bool = False
    """The output is what is added to the first `out_channels` channels of the input."""
    checkpoint: bool = False
    """Recompute each block's activations in the backward pass instead of keeping them."""


class Model(nn.Module):
    """A map from fields (batch, in_channels, *grid.shape) to (batch, out_channels, *grid.shape)."""

    Config: ClassVar[type[ModelConfig]]
    config: Any

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if type(config) is not self.Config:
            raise TypeError(
                f"config: {type(self).__name__} takes a {self.Config.__name__}, got "
                f"{type(config).__name__}"
            )
        if config.residual and config.out_channels > config.in_channels:
            raise ValueError(
                f"residual=True needs an input channel for each of "
                f"out_channels={config.out_channels}, "
                f"got in_channels={config.in_channels}"
            )
        self.config = config
        self.grid = Grid.from_name(config.grid)

    def forward(
        self, x: Float[Tensor, "batch in_channels ..."]
    ) -> Float[Tensor, "batch out_channels ..."]:
        shape = (self.config.in_channels, *self.grid.shape)
        if x.ndim != 1 + len(shape) or x.shape[1:] != shape:
            raise ValueError(
                f"{type(self).__name__}: expected (batch, {', '.join(map(str, shape))}) on "
                f"{self.grid!r}, "
                f"got {tuple(x.shape)}"
            )
        if not x.dtype.is_floating_point:
            raise TypeError(
                f"{type(self).__name__}: expected a floating-point field, got {x.dtype}"
            )
        y = self.predict(x)
        return x[:, : self.config.out_channels] + y if self.config.residual else y

    def predict(self, x: Tensor) -> Tensor:
        """The map itself, without the residual."""
        raise NotImplementedError

    def on(self: AnyModel, grid: Grid | str) -> AnyModel:
        """The same operator, with the same Parameters, on another grid: all cutoffs stay what they
        are.
        """
        name = grid if isinstance(grid, str) else grid.name
        planar = {"convolution": "planar", "attention": "planar", "position": "learned"}
        for field, value in planar.items():
            if getattr(self.config, field) == value:
                raise ValueError(
                    f"{type(self).__name__} with {field}={value!r} is bound to {self.config.grid}: "
                    "it knows points, not places on the sphere"
                )
        with torch.device("meta"):
            twin = type(self)(self.moved(name))
        twin.load_state_dict(self.state_dict(keep_vars=True), assign=True)
        return twin.train(self.training)

    def moved(self, grid: str) -> ModelConfig:
        """This model's config on another grid, everything in radians unchanged."""
        return dataclasses.replace(self.config, grid=grid)

    @classmethod
    def from_dict(cls: type[AnyModel], values: dict[str, Any]) -> AnyModel:
        """Build from plain values, such as those of a JSON file; lists stand for tuples."""
        fields = {field.name for field in dataclasses.fields(cls.Config)}
        if unknown := sorted(set(values) - fields):
            raise ValueError(
                f"{cls.Config.__name__} has no {', '.join(unknown)}; it has "
                f"{', '.join(sorted(fields))}"
            )
        tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(cls.Config(**tuples))  # type: ignore[arg-type]

    def save_pretrained(self, directory: str | Path) -> None:
        """Write `model.safetensors` and `config.json`."""
        save(self, dataclasses.asdict(self.config), Path(directory))

    @classmethod
    def from_pretrained(cls: type[AnyModel], directory: str | Path) -> AnyModel:
        """Read what `save_pretrained` wrote. Nothing is unpickled."""
        return load(cls, Path(directory))

    def run_blocks(self, blocks: nn.ModuleList, position: nn.Module, x: Tensor) -> Tensor:
        """The blocks one after the other, with the position added before each."""
        for block in blocks:
            x = position(x)
            if self.config.checkpoint and self.training:
                x = checkpoint(block, x, use_reentrant=False)
            else:
                x = block(x)
        return x
