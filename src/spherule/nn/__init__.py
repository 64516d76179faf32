"""Layers: thin modules that own Parameters and refer to geometry."""

from spherule.nn.attention import PlanarAttention, Projection, SphericalAttention
from spherule.nn.blocks import Block, DropPath, Mlp
from spherule.nn.disco import DiscoConv
from spherule.nn.embedding import LearnedEmbedding, SequenceEmbedding, SpectralEmbedding
from spherule.nn.norm import ChannelNorm, PlainInstanceNorm, SphericalInstanceNorm
from spherule.nn.planar import PlanarConv
from spherule.nn.resample import Resample

__all__ = [
    "Block",
    "ChannelNorm",
    "DiscoConv",
    "DropPath",
    "LearnedEmbedding",
    "Mlp",
    "PlainInstanceNorm",
    "PlanarAttention",
    "PlanarConv",
    "Projection",
    "Resample",
    "SequenceEmbedding",
    "SpectralEmbedding",
    "SphericalAttention",
    "SphericalInstanceNorm",
]
