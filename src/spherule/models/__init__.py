"""Transformers and SegFormers on the sphere, and their planar counterparts."""

from spherule.models.base import Model, ModelConfig
from spherule.models.registry import build, from_pretrained
from spherule.models.segformer import (
    PlanarSegformer,
    PlanarSegformerConfig,
    SphericalSegformer,
    SphericalSegformerConfig,
)
from spherule.models.transformer import (
    PlanarTransformer,
    PlanarTransformerConfig,
    SphericalTransformer,
    SphericalTransformerConfig,
)
from spherule.models.vision_transformer import VisionTransformer, VisionTransformerConfig

__all__ = [
    "Model",
    "ModelConfig",
    "PlanarSegformer",
    "PlanarSegformerConfig",
    "PlanarTransformer",
    "PlanarTransformerConfig",
    "SphericalSegformer",
    "SphericalSegformerConfig",
    "SphericalTransformer",
    "SphericalTransformerConfig",
    "VisionTransformer",
    "VisionTransformerConfig",
    "build",
    "from_pretrained",
]
