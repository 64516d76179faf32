"""The model of a config, and the model of a directory, whatever its class."""

from pathlib import Path

from spherule.models.base import Model, ModelConfig
from spherule.models.pretrained import CONFIG, read_config
from spherule.models.segformer import PlanarSegformer, SphericalSegformer
from spherule.models.transformer import PlanarTransformer, SphericalTransformer
from spherule.models.vision_transformer import VisionTransformer

CLASSES: tuple[type[Model], ...] = (
    SphericalTransformer,
    PlanarTransformer,
    SphericalSegformer,
    PlanarSegformer,
    VisionTransformer,
)


def build(config: ModelConfig) -> Model:
    """The model that this config describes."""
    for cls in CLASSES:
        if cls.Config is type(config):
            return cls(config)
    raise TypeError(f"config: no model has a {type(config).__name__}")


def from_pretrained(directory: str | Path) -> Model:
    """What `save_pretrained` wrote, of whichever class it is."""
    path = Path(directory) / CONFIG
    name = read_config(path)["model"]
    for cls in CLASSES:
        if cls.__name__ == name:
            return cls.from_pretrained(directory)
    raise ValueError(
        f"{path} describes a {name!r}; known are {', '.join(c.__name__ for c in CLASSES)}"
    )
