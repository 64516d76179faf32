"""Operations on fields: pure functions without parameters."""

from spherule.grids.healpix import pool, unpool
from spherule.ops.attention_weights import attention_weights
from spherule.ops.disco import disco
from spherule.ops.equivariance import equivariance_error
from spherule.ops.global_attention import global_attention
from spherule.ops.integrate import integrate
from spherule.ops.neighborhood_attention import neighborhood_attention
from spherule.ops.random_fields import matern_spectrum, point_variance, random_coeffs, random_field
from spherule.ops.resample import resample
from spherule.ops.rotate import rotate
from spherule.ops.sht import isht, sht
from spherule.ops.spectral import inverse_laplacian, laplacian, power_spectrum, spectral_filter
from spherule.ops.vector import gradient, vorticity_divergence, wind

__all__ = [
    "attention_weights",
    "disco",
    "equivariance_error",
    "global_attention",
    "gradient",
    "integrate",
    "inverse_laplacian",
    "isht",
    "laplacian",
    "matern_spectrum",
    "neighborhood_attention",
    "point_variance",
    "pool",
    "power_spectrum",
    "random_coeffs",
    "random_field",
    "resample",
    "rotate",
    "sht",
    "spectral_filter",
    "unpool",
    "vorticity_divergence",
    "wind",
]
