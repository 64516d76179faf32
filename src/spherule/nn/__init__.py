"""Layers: thin modules that own Parameters and refer to geometry."""

from spherule.nn.attention import SphericalAttention
from spherule.nn.blocks import Block, DropPath, Mlp
from spherule.nn.disco import DiscoConv
from spherule.nn.embedding import LearnedEmbedding, SequenceEmbedding, SpectralEmbedding
from spherule.nn.norm import ChannelNorm, SphericalInstanceNorm
from spherule.nn.placed import Bound, Placed, place
from spherule.nn.planar import PlainInstanceNorm, PlanarAttention, PlanarConv, PlanarResample
from spherule.nn.projection import Projection
from spherule.nn.resample import Resample
from spherule.nn.spectral import ISHT, SHT, Harmonics, SpectralMix, ZonalMix

__all__ = [
    "ISHT",
    "SHT",
    "Block",
    "Bound",
    "ChannelNorm",
    "DiscoConv",
    "DropPath",
    "Harmonics",
    "LearnedEmbedding",
    "Mlp",
    "Placed",
    "PlainInstanceNorm",
    "PlanarAttention",
    "PlanarConv",
    "PlanarResample",
    "Projection",
    "Resample",
    "SequenceEmbedding",
    "SpectralEmbedding",
    "SpectralMix",
    "SphericalAttention",
    "SphericalInstanceNorm",
    "ZonalMix",
    "place",
]
