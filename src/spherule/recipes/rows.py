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
    size: str
    """Of the panoramas that the paper gives it."""


def _rows(titles: dict[str, str], size: str = "128x256", **models: RowConfig) -> dict[str, Row]:
    """By the titles' keys, in which models have underscores."""
    return {key: Row(title, models[key.replace("-", "_")], size) for key, title in titles.items()}


ROWS = _rows(
    titles.ROWS,
    r2_transformer=TransformerConfig.planar(local=False),
    s2_transformer=TransformerConfig.spherical(local=False),
    r2_transformer_local=TransformerConfig.planar(),
    s2_transformer_local=TransformerConfig.spherical(),
    r2_segformer=SegformerConfig.planar(local=False),
    s2_segformer=SegformerConfig.spherical(local=False),
    r2_segformer_local=SegformerConfig.planar(),
    s2_segformer_local=SegformerConfig.spherical(),
)

LARGE = _rows(
    titles.LARGE,
    size="256x512",
    r2_segformer_local_large=SegformerConfig.planar().large(),
    s2_segformer_local_large=SegformerConfig.spherical().large(),
)

ABLATION = _rows(
    titles.ABLATION,
    ablation_1_vit=VisionTransformerConfig(),
    ablation_2_convolution=TransformerConfig.planar(local=False, position="learned"),
    ablation_3_spectral=TransformerConfig.planar(local=False),
    # What is integrated over the sphere comes with its convolution: upsampling follows it by
    # itself, the norm is named.
    ablation_4_s2_convolution=TransformerConfig.planar(
        local=False, convolution="spherical", norm="instance"
    ),
    ablation_5_s2_attention=TransformerConfig.spherical(local=False),
    ablation_6_local=TransformerConfig.spherical(),
)


def scaled(model: RowConfig, size: str) -> RowConfig:
    """The model at a size: the paper's own in `paper` and `small`, another in `tiny`."""
    if size != "tiny":
        return model
    if isinstance(model, SegformerConfig):  # the large ones keep their doubled widths
        return replace(model, widths=model.widths[:3], depths=(2, 2, 2), heads=model.heads[:3])
    return replace(model, width=64, depth=2)
