"""The model of a config, and the model of a directory, whatever its class."""

from pathlib import Path
from typing import Any

from spherule import checks
from spherule.grids import Grid
from spherule.models.base import MODEL_CONFIGS, MODELS, Model
from spherule.models.config import ModelConfig
from spherule.models.upgrade import upgrade_tagged


@checks.arguments
def build(config: ModelConfig, grid: Grid | str, in_channels: int, out_channels: int) -> Model:
    """The model that this config describes.

    Args:
        config: an architecture, such as `TransformerConfig()`.
        grid: of input and output, or its name.
        in_channels: of the input.
        out_channels: of the output.

    >>> from spherule import models
    >>> type(models.build(models.TransformerConfig(width=16), "H4", 3, 3)).__name__
    'Transformer'
    """
    for cls in MODELS.values():
        if cls.Config is type(config):
            return cls(config, grid, in_channels, out_channels)
    known = ", ".join(cls.Config.__name__ for cls in MODELS.values())
    raise TypeError(f"config: expected one of {known}, got {type(config).__name__}")


@checks.arguments
def from_pretrained(directory: str | Path) -> Model:
    """What `save_pretrained` wrote, of whichever class it is.

    Args:
        directory: where from, or `hf://owner/name@commit` on the Hugging Face Hub.

    >>> import tempfile
    >>> from spherule import models
    >>> model = models.Linear(models.LinearConfig(lmax=3), "H4", 2, 2)
    >>> where = model.save_pretrained(tempfile.mkdtemp())
    >>> models.from_pretrained(where).grid
    Grid(H4: 15 rings, 192 points)
    """
    return Model.from_pretrained(directory)


@checks.arguments
def upgrade_config(values: dict[str, Any]) -> tuple[type[ModelConfig], dict[str, Any]]:
    """The config class of `{"type": its name, **fields}` and the fields, for its `from_dict`; also
    of what 0.1.0 wrote.
    """
    fields = dict(upgrade_tagged(values))
    kind = fields.pop("type", None)
    if not isinstance(kind, str) or kind not in MODEL_CONFIGS:
        raise ValueError(f"values: type={kind!r}, expected one of {', '.join(MODEL_CONFIGS)}")
    return MODEL_CONFIGS[kind], fields
