"""The models that are the rows of the paper's tables, and their smaller sizes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spherule.models import (
    PlanarSegformerConfig,
    PlanarTransformerConfig,
    SphericalSegformerConfig,
    SphericalTransformerConfig,
    VisionTransformerConfig,
)
from spherule.train.config import AnyModelConfig


@dataclass(frozen=True)
class Row:
    """A model with the name that tables give it."""

    title: str
    make: Callable[[], AnyModelConfig]


ROWS: dict[str, Row] = {
    "r2-transformer": Row("R² Transformer", lambda: PlanarTransformerConfig(local=False)),
    "s2-transformer": Row("S² Transformer", lambda: SphericalTransformerConfig(local=False)),
    "r2-transformer-local": Row("R² Transformer (local)", PlanarTransformerConfig),
    "s2-transformer-local": Row("S² Transformer (local)", SphericalTransformerConfig),
    "r2-segformer": Row("R² SegFormer", lambda: PlanarSegformerConfig(local=False)),
    "s2-segformer": Row("S² SegFormer", lambda: SphericalSegformerConfig(local=False)),
    "r2-segformer-local": Row("R² SegFormer (local)", PlanarSegformerConfig),
    "s2-segformer-local": Row("S² SegFormer (local)", SphericalSegformerConfig),
}

LARGE: dict[str, Row] = {
    "r2-segformer-local-large": Row(
        "R² SegFormer (local, large)", lambda: PlanarSegformerConfig().large()
    ),
    "s2-segformer-local-large": Row(
        "S² SegFormer (local, large)", lambda: SphericalSegformerConfig().large()
    ),
}

ABLATION: dict[str, Row] = {
    "ablation-1-vit": Row("ViT", VisionTransformerConfig),
    "ablation-2-convolution": Row(
        "− patches + R² convolution",
        lambda: PlanarTransformerConfig(local=False, position="learned"),
    ),
    "ablation-3-spectral": Row(
        "− learned + spectral positions", lambda: PlanarTransformerConfig(local=False)
    ),
    "ablation-4-s2-convolution": Row(
        "− R² + S² convolution",
        lambda: PlanarTransformerConfig(local=False, convolution="spherical"),
    ),
    "ablation-5-s2-attention": Row(
        "− R² + S² attention", lambda: SphericalTransformerConfig(local=False)
    ),
    "ablation-6-local": Row("− global + local attention", SphericalTransformerConfig),
}


def scaled(model: AnyModelConfig, size: str) -> AnyModelConfig:
    """The model at a size: `paper`, or `small` and `tiny`, which a laptop trains."""
    if size == "paper":
        return model
    # A segformer is recognised by its stages; the large ones keep their doubled widths.
    if isinstance(model, SphericalSegformerConfig):
        stages = {"small": 4, "tiny": 3}[size]
        depths = {"small": (2, 2, 2, 2), "tiny": (2, 2, 2)}[size]
        return replace(
            model, widths=model.widths[:stages], depths=depths, heads=model.heads[:stages]
        )
    return replace(model, width=64, depth={"small": 4, "tiny": 2}[size])
