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
def centers(programs, BLOCK: tl.constexpr):
    """Columns of a tile's centers, which of them are there, and its first point and ring size."""
    point = tl.load(programs)
    first = tl.load(programs + 1)
    size = tl.load(programs + 2)
    column = first + tl.arange(0, BLOCK)
    return column, column < size, point, size


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
def walk(
    index, column, center, size, windows, pairs, numbers, arcs, cutoff, sharpness,
    WINDOW: tl.constexpr, SOFT: tl.constexpr,
):  # fmt: skip
    """Window `index`: its points, which of them some center needs, which belongs to which center,
    and the log2 weights.
    """
    pair = tl.load(windows + 3 * index)
    low = tl.load(windows + 3 * index + 1)
    high = tl.load(windows + 3 * index + 2)
    origin = tl.load(pairs + 6 * pair)
    other = tl.load(pairs + 6 * pair + 1)
    chunk = tl.load(pairs + 6 * pair + 2)
    repeat = tl.load(pairs + 6 * pair + 3)
    step = tl.load(pairs + 6 * pair + 4)
    turns = column // repeat
    arc = arcs + 2 * (chunk + column - turns * repeat)
    start = tl.load(arc, mask=center, other=0) + turns * step
    end = start + tl.load(arc + 1, mask=center, other=0)
    place = low + tl.arange(0, WINDOW)
    there = place < high
    member = (place[None, :] >= start[:, None]) & (place[None, :] < end[:, None])
    member = member & there[None, :]
    place = tl.where(place >= other, place - other, place)
    place = tl.where(place >= other, place - other, place)
    bias = tl.zeros((column.shape[0], WINDOW), tl.float32) + tl.load(numbers + 5 * pair)
    if SOFT:
        away = place + tl.load(pairs + 6 * pair + 5)
        away = tl.where(away >= other, away - other, away)
        x = away[None, :] * size - column[:, None] * other
        x = tl.where(2 * x > size * other, x - size * other, x)
        x = tl.where(-2 * x > size * other, x + size * other, x)
        angle = x.to(tl.float32) * tl.load(numbers + 5 * pair + 3) + tl.load(numbers + 5 * pair + 4)
        square = tl.load(numbers + 5 * pair + 2) * _sin_squared(0.5 * angle)
        square += tl.load(numbers + 5 * pair + 1)
        distance = 2 * _asin(tl.minimum(tl.maximum(square, 0.0), 1.0))
        taper = tl.minimum((cutoff - distance) * sharpness + 0.5, 1.0)
        member = member & (taper > 0)
        bias += tl.log2(tl.maximum(taper, 1e-30))
    return origin + place, there, member, bias
