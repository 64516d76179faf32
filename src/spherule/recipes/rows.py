"""The models that are the rows of the paper's tables, and their smaller sizes."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from spherule.models import SegformerConfig, TransformerConfig, VisionTransformerConfig

RowConfig: TypeAlias = TransformerConfig | SegformerConfig | VisionTransformerConfig


@dataclass(frozen=True)
class Row:
    """A model with the name that tables give it."""

    title: str
    model: RowConfig


ROWS: dict[str, Row] = {
    "r2-transformer": Row("R² Transformer", TransformerConfig.planar(local=False)),
    "s2-transformer": Row("S² Transformer", TransformerConfig.spherical(local=False)),
    "r2-transformer-local": Row("R² Transformer (local)", TransformerConfig.planar()),
    "s2-transformer-local": Row("S² Transformer (local)", TransformerConfig.spherical()),
    "r2-segformer": Row("R² SegFormer", SegformerConfig.planar(local=False)),
    "s2-segformer": Row("S² SegFormer", SegformerConfig.spherical(local=False)),
    "r2-segformer-local": Row("R² SegFormer (local)", SegformerConfig.planar()),
    "s2-segformer-local": Row("S² SegFormer (local)", SegformerConfig.spherical()),
}

LARGE: dict[str, Row] = {
    "r2-segformer-local-large": Row(
        "R² SegFormer (local, large)", SegformerConfig.planar().large()
    ),
    "s2-segformer-local-large": Row(
        "S² SegFormer (local, large)", SegformerConfig.spherical().large()
    ),
}

ABLATION: dict[str, Row] = {
    "ablation-1-vit": Row("ViT", VisionTransformerConfig()),
    "ablation-2-convolution": Row(
        "− patches + R² convolution", TransformerConfig.planar(local=False, position="learned")
    ),
    "ablation-3-spectral": Row(
        "− learned + spectral positions", TransformerConfig.planar(local=False)
    ),
    # What is integrated over the sphere comes with its convolution: upsampling follows it by
    # itself, the norm is named.
    "ablation-4-s2-convolution": Row(
        "− R² + S² convolution",
        TransformerConfig.planar(local=False, convolution="spherical", norm="instance"),
    ),
    "ablation-5-s2-attention": Row("− R² + S² attention", TransformerConfig.spherical(local=False)),
    "ablation-6-local": Row("− global + local attention", TransformerConfig.spherical()),
}


def scaled(model: RowConfig, size: str) -> RowConfig:
    """The model at a size: the paper's own in `paper` and `small`, another in `tiny`."""
    if size != "tiny":
        return model
    if isinstance(model, SegformerConfig):  # the large ones keep their doubled widths
        return replace(model, widths=model.widths[:3], depths=(2, 2, 2), heads=model.heads[:3])
    return replace(model, width=64, depth=2)
