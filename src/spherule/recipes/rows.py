"""The models that are the rows of the paper's tables, and their smaller sizes."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from spherule.models import SegformerConfig, TransformerConfig, VisionTransformerConfig
from spherule.recipes import titles

RowConfig: TypeAlias = TransformerConfig | SegformerConfig | VisionTransformerConfig


@dataclass(frozen=True)
class Row:
    """A model with the name that tables give it."""

    title: str
    model: RowConfig


ROWS: dict[str, Row] = {
    "r2-transformer": Row(titles.ROWS["r2-transformer"], TransformerConfig.planar(local=False)),
    "s2-transformer": Row(titles.ROWS["s2-transformer"], TransformerConfig.spherical(local=False)),
    "r2-transformer-local": Row(titles.ROWS["r2-transformer-local"], TransformerConfig.planar()),
    "s2-transformer-local": Row(titles.ROWS["s2-transformer-local"], TransformerConfig.spherical()),
    "r2-segformer": Row(titles.ROWS["r2-segformer"], SegformerConfig.planar(local=False)),
    "s2-segformer": Row(titles.ROWS["s2-segformer"], SegformerConfig.spherical(local=False)),
    "r2-segformer-local": Row(titles.ROWS["r2-segformer-local"], SegformerConfig.planar()),
    "s2-segformer-local": Row(titles.ROWS["s2-segformer-local"], SegformerConfig.spherical()),
}

LARGE: dict[str, Row] = {
    "r2-segformer-local-large": Row(
        titles.LARGE["r2-segformer-local-large"], SegformerConfig.planar().large()
    ),
    "s2-segformer-local-large": Row(
        titles.LARGE["s2-segformer-local-large"], SegformerConfig.spherical().large()
    ),
}

ABLATION: dict[str, Row] = {
    "ablation-1-vit": Row(titles.ABLATION["ablation-1-vit"], VisionTransformerConfig()),
    "ablation-2-convolution": Row(
        titles.ABLATION["ablation-2-convolution"],
        TransformerConfig.planar(local=False, position="learned"),
    ),
    "ablation-3-spectral": Row(
        titles.ABLATION["ablation-3-spectral"], TransformerConfig.planar(local=False)
    ),
    # What is integrated over the sphere comes with its convolution: upsampling follows it by
    # itself, the norm is named.
    "ablation-4-s2-convolution": Row(
        titles.ABLATION["ablation-4-s2-convolution"],
        TransformerConfig.planar(local=False, convolution="spherical", norm="instance"),
    ),
    "ablation-5-s2-attention": Row(
        titles.ABLATION["ablation-5-s2-attention"], TransformerConfig.spherical(local=False)
    ),
    "ablation-6-local": Row(titles.ABLATION["ablation-6-local"], TransformerConfig.spherical()),
}


def scaled(model: RowConfig, size: str) -> RowConfig:
    """The model at a size: the paper's own in `paper` and `small`, another in `tiny`."""
    if size != "tiny":
        return model
    if isinstance(model, SegformerConfig):  # the large ones keep their doubled widths
        return replace(model, widths=model.widths[:3], depths=(2, 2, 2), heads=model.heads[:3])
    return replace(model, width=64, depth=2)
