"""Transformers and SegFormers, on the sphere and on the plane, and the linear baseline."""

from spherule.models.base import MODEL_CONFIGS, MODELS, Model
from spherule.models.config import ModelConfig
from spherule.models.least_squares import LinearFit, fit_linear, fit_zonal
from spherule.models.linear import Linear, LinearConfig
from spherule.models.registry import build, from_pretrained, upgrade_config
from spherule.models.segformer import Segformer, SegformerConfig
from spherule.models.transformer import Transformer, TransformerConfig
from spherule.models.vision_transformer import VisionTransformer, VisionTransformerConfig

__all__ = [
    "MODELS",
    "MODEL_CONFIGS",
    "Linear",
    "LinearConfig",
    "LinearFit",
    "Model",
    "ModelConfig",
    "Segformer",
    "SegformerConfig",
    "Transformer",
    "TransformerConfig",
    "VisionTransformer",
    "VisionTransformerConfig",
    "build",
    "fit_linear",
    "fit_zonal",
    "from_pretrained",
    "upgrade_config",
]
