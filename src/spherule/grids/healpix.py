"""HEALPix: rings, the two orderings, and pooling by its 4:1 hierarchy."""

from functools import lru_cache
from math import isqrt

import numpy as np
import torch
from jaxtyping import Shaped
from numpy.typing import NDArray
from torch import Tensor

from spherule import checks

_FACE_RING = np.array(
    [2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4]
)  # southern corner, in units of nside rings
_FACE_LONGITUDE = np.array([1, 3, 5, 7, 0, 2, 4, 6, 1, 3, 5, 7])  # center, in units of pi / 4


def rings(nside: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.float64]]:
    """Colatitudes, points and first longitudes of the 4 nside - 1 rings."""
    i = np.arange(1, nside)
    # Polar caps: 1 - cos(theta) = i^2 / (3 nside^2), in half angles, which stay accurate near the
    # pole.
    cap = 2 * np.arcsin(i / (np.sqrt(6.0) * nside))
    j = np.arange(nside, 3 * nside + 1)
    belt = np.arccos((4 * nside - 2 * j) / (3 * nside))
    theta = np.concatenate([cap, belt, np.pi - cap[::-1]])
    nphi = np.concatenate([4 * i, np.full(2 * nside + 1, 4 * nside), 4 * i[::-1]])
    # Half a cell everywhere, but on every second ring of the equatorial belt.
    half = np.concatenate([np.ones_like(i), (j - nside + 1) % 2, np.ones_like(i)])
    return theta, nphi, half * np.pi / nphi


@lru_cache(maxsize=16)
def nest_to_ring(nside: int) -> NDArray[np.int64]:
    """For each pixel in nested order its index in ring order: `u_nest = u_ring[...,
    nest_to_ring(nside)]`.
    """
    _require_power_of_two(nside)
    nest = np.arange(12 * nside**2)
    face, within = np.divmod(nest, nside**2)
    x, y = _even_bits(within), _even_bits(within >> 1)
    ring = _FACE_RING[face] * nside - x - y - 1  # counted from 1 at the north pole
    north, south = ring < nside, ring > 3 * nside
    quarter = np.where(north, ring, np.where(south, 4 * nside - ring, nside))
    start = np.where(
        north,
        2 * ring * (ring - 1),
        np.where(
            south,
            12 * nside**2 - 2 * quarter * (quarter + 1),
            2 * nside * (nside - 1) + 4 * nside * (ring - nside),
        ),
    )
    # Longitude in half cells of the ring; a ring that starts at 0 counts them 0, 2, 4 ..., the
    # others 1, 3, 5 ...
    halves = _FACE_LONGITUDE[face] * quarter + x - y
    order = start + (halves // 2) % (4 * quarter)
    order.setflags(write=False)
    return order


@lru_cache(maxsize=16)
def ring_to_nest(nside: int) -> NDArray[np.int64]:
    """The inverse of `nest_to_ring`: `u_ring = u_nest[..., ring_to_nest(nside)]`."""
    order = np.argsort(nest_to_ring(nside))
    order.setflags(write=False)
    return order


@checks.arguments
def pool(
    u: Shaped[Tensor, "*batch fine"], *, nested: bool = False
) -> Shaped[Tensor, "*batch coarse"]:
    """The mean over each pixel's four children: nside to nside / 2."""
    nside = _nside_of(u)
    if nside % 2:
        raise ValueError(f"u: nside={nside} cannot be halved")
    if not u.dtype.is_floating_point and not u.dtype.is_complex:
        raise TypeError(f"u: the mean needs a floating-point tensor, got {u.dtype}")
    children = _children(nside // 2, nested)
    return u[..., torch.as_tensor(children, device=u.device)].mean(-1)


@checks.arguments
def unpool(
    u: Shaped[Tensor, "*batch coarse"], *, nested: bool = False
) -> Shaped[Tensor, "*batch fine"]:
    """Each pixel's value for its four children: nside to 2 nside."""
    children = _children(_nside_of(u), nested)
    parent = np.argsort(children, axis=None) // 4
    return u[..., torch.as_tensor(parent, device=u.device)]


def _children(nside: int, nested: bool) -> NDArray[np.int64]:
    """The four children at 2 nside of each pixel at nside, (12 nside^2, 4)."""
    _require_power_of_two(nside)
    children = np.arange(48 * nside**2).reshape(-1, 4)
    return children if nested else nest_to_ring(2 * nside)[children][ring_to_nest(nside)]


def _nside_of(u: Tensor) -> int:
    size = u.shape[-1] if u.ndim else 0
    nside = isqrt(size // 12)
    if size < 12 or 12 * nside**2 != size:
        raise ValueError(f"u: expected a HEALPix map of 12 nside^2 points, got {size}")
    return nside


def _require_power_of_two(nside: int) -> None:
    if nside < 1 or nside & (nside - 1):
        raise ValueError(f"nside={nside}: the nested order needs a power of two")


def _even_bits(code: NDArray[np.int64]) -> NDArray[np.int64]:
    """Bits 0, 2, 4, ... packed together: one coordinate of a Morton code."""
    code = code & 0x5555555555555555
    for shift, mask in (
        (1, 0x3333333333333333),
        (2, 0x0F0F0F0F0F0F0F0F),
        (4, 0x00FF00FF00FF00FF),
        (8, 0x0000FFFF0000FFFF),
        (16, 0x00000000FFFFFFFF),
    ):
        code = (code | (code >> shift)) & mask
    return code
