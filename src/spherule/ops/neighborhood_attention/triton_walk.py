"""What the Triton kernels share: one program a tile of centers, walking along its windows
(geometry/tiles.py). Scores are logarithms to base 2.
"""

import triton
import triton.language as tl


@triton.jit
def _asin(square):
    """asin(sqrt(square)) of numbers in [0, 1]."""
    root = tl.sqrt_rn(square)
    steep = square > 0.25
    # asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)), so that the series sees arguments up to 1/2.
    z = tl.where(steep, 0.5 - 0.5 * root, square)
    x = tl.where(steep, tl.sqrt_rn(z), root)
    series = 0.04241737350821495 * z + 0.023993998765945435
    series = series * z + 0.045520637184381485
    series = series * z + 0.07494696974754333
    series = series * z + 0.16666781902313232
    series = x + x * z * series
    return tl.where(steep, 1.5707963267948966 - 2 * series, series)


@triton.jit
def _sin_squared(angle):
    """Of angles up to pi / 2, or little more: the library's own sine brings its case of huge angles
    along, in local memory.
    """
    steep = tl.abs(angle) > 0.7853981633974483
    x = tl.where(steep, 1.5707963267948966 - tl.abs(angle), angle)
    z = x * x
    series = -0.00019491344573907554 * z + 0.008331936784088612
    series = series * z - 0.16666649281978607
    series = x + x * z * series
    return tl.where(steep, 1.0 - series * series, series * series)


@triton.jit
def _turned(spot, turn, rings):
    """Ring, place and size of the ring of a point of `tiles.Tiles`, after the turn."""
    ring = spot >> 16
    sizes = tl.load(rings + 2 * ring + 1)
    return ring, (spot & 0xFFFF) + turn * (sizes & 0xFFFF), sizes >> 16


@triton.jit
def centers(programs, tiles, rings, BLOCK: tl.constexpr):
    """Rings, places and points of a tile's centers, which of them are there, and its turn."""
    turn = tl.load(programs + 1)
    spot = tl.load(tiles + BLOCK * tl.load(programs) + tl.arange(0, BLOCK))
    ring, place, size = _turned(spot, turn, rings)
    return ring, place, tl.load(rings + 2 * ring) + place, place < size, turn


@triton.jit
def rows(
    x, point, stride_points, stride_channels, there, CHANNELS: tl.constexpr, WIDTH: tl.constexpr
):
    """Loads (points, channels), 0 where a point or a channel is not there."""
    channel = tl.arange(0, WIDTH)
    where = x + point.to(tl.int64)[:, None] * stride_points + channel[None, :] * stride_channels
    return tl.load(where, mask=there[:, None] & (channel < CHANNELS)[None, :], other=0.0)


@triton.jit
def store_rows(
    x,
    value,
    point,
    stride_points,
    stride_channels,
    there,
    CHANNELS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    channel = tl.arange(0, WIDTH)
    where = x + point.to(tl.int64)[:, None] * stride_points + channel[None, :] * stride_channels
    keep = there[:, None] & (channel < CHANNELS)[None, :]
    tl.store(where, value.to(x.dtype.element_ty), mask=keep)


@triton.jit
def _longitude(ring, place, angles):
    """In 2^-32 turns."""
    turns = tl.load(angles + 3 * ring + 1) + place.to(tl.int64) * tl.load(angles + 3 * ring + 2)
    return (turns >> 32).to(tl.int32)


@triton.jit
def _distance(ring, place, other, other_place, numbers, angles):
    """From each point of the first list to each of the second. Differences of angles are exact:
    they go around by themselves.
    """
    south = (tl.load(angles + 3 * ring) >> 32).to(tl.int32)
    other_south = (tl.load(angles + 3 * other) >> 32).to(tl.int32)
    south = (south[:, None] - other_south[None, :]).to(tl.float32)
    east = (
        _longitude(ring, place, angles)[:, None] - _longitude(other, other_place, angles)[None, :]
    )
    half = 7.314590396335798e-10  # pi / 2^32
    product = tl.load(numbers + 2 * ring + 1)[:, None] * tl.load(numbers + 2 * other + 1)[None, :]
    square = _sin_squared(south * half) + product * _sin_squared(east.to(tl.float32) * half)
    return 2 * _asin(tl.minimum(tl.maximum(square, 0.0), 1.0))


@triton.jit
def walk(
    index, ring, place, turn, windows, bits, rings, numbers, angles, cutoff, sharpness,
    BLOCK: tl.constexpr, WINDOW: tl.constexpr, SOFT: tl.constexpr, TRANSPOSED: tl.constexpr,
):  # fmt: skip
    """Window `index`: its points, which of them some center needs, which belongs to which center,
    and the log2 weights, which are those of the centers if transposed.
    """
    slot, center = tl.arange(0, WINDOW), tl.arange(0, BLOCK)
    words: tl.constexpr = (BLOCK + 31) // 32
    needed = tl.load(bits + words * WINDOW * index + slot)
    word = needed[None, :]
    if words == 2:
        more = tl.load(bits + words * WINDOW * index + WINDOW + slot)
        word = tl.where(center[:, None] < 32, word, more[None, :])
        needed = needed | more
    member = ((word >> (center[:, None] & 31)) & 1) != 0
    spot = tl.load(windows + WINDOW * index + slot)
    other, other_place, size = _turned(spot, turn, rings)
    other_place = tl.where(other_place >= size, other_place - size, other_place)
    if TRANSPOSED:
        bias = tl.load(numbers + 2 * ring)[:, None]
    else:
        bias = tl.load(numbers + 2 * other)[None, :]
    if SOFT:
        distance = _distance(ring, place, other, other_place, numbers, angles)
        taper = tl.minimum((cutoff - distance) * sharpness + 0.5, 1.0)
        member = member & (taper > 0)
        bias = bias + tl.log2(tl.maximum(taper, 1e-30))
    return tl.load(rings + 2 * other) + other_place, needed != 0, member, bias
