"""DISCO convolution in Triton, without the field under each hat in memory: a tile of it is summed,
mixed at once, and forgotten.

Fields are contiguous (batch, channels, points), tables those of `gpu.Tables`, and the weight
(groups, hats, out, in), or (hats, channels) where DEPTHWISE.
"""

import triton
import triton.language as tl


@triton.jit
def _targets(tile, shape, points, TILE: tl.constexpr, SHIFTS: tl.constexpr):
    """The row of the tables, the longitudes (counted within a period), the points of a tile, and
    which are there.
    """
    if SHIFTS:
        per_row, period, phases = tl.load(shape), tl.load(shape + 1), tl.load(shape + 2)
        row = tile // per_row
        q = tile % per_row * TILE + tl.arange(0, TILE)
        point = (row // phases * period + q) * phases + row % phases
        there = q < period
    else:
        row = tile
        q = tile * TILE + tl.arange(0, TILE)
        point = q
        there = q < points
    return row, q, point, there


@triton.jit
def _under_hat(
    x, sources, values, shape, low, high, q, target, channel, channels, points,
    TILE: tl.constexpr, CHANNELS: tl.constexpr, SHIFTS: tl.constexpr,
):  # fmt: skip
    """(channels, points of the tile): x, averaged by one hat."""
    u = tl.zeros((CHANNELS, TILE), tl.float32)
    for entry in range(low, high):
        if SHIFTS:
            step, size = tl.load(shape + 3), tl.load(shape + 4)
            place = tl.load(sources + 2 * entry + 1) + q * step
            source = tl.load(sources + 2 * entry) + tl.where(place >= size, place - size, place)
            value = tl.load(values + entry) + tl.zeros((TILE,), tl.float32)
            needed = target
        else:
            place = entry * TILE + tl.arange(0, TILE)
            source, value = tl.load(sources + place), tl.load(values + place)
            # Entries that only fill up must not bring in a NaN.
            needed = value != 0
        there = (channel < channels)[:, None] & needed[None, :]
        where = x + channel.to(tl.int64)[:, None] * points + source[None, :]
        u += value[None, :] * tl.load(where, mask=there, other=0.0).to(tl.float32)
    return u


@triton.jit
def convolve(
    x, weight, y, sources, values, start, shape, groups, in_channels, out_channels, in_points,
    out_points,
    HATS: tl.constexpr, TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
    SHIFTS: tl.constexpr, DEPTHWISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One program: a tile of points, a block of output channels of one group and batch. Channels
    are counted within a group; depthwise, all are one group.
    """
    row, q, point, target = _targets(tl.program_id(0), shape, out_points, TILE, SHIFTS)
    batch, group = (tl.program_id(1) // groups).to(tl.int64), tl.program_id(1) % groups
    o = tl.program_id(2) * OUT + tl.arange(0, OUT)
    x += (batch * groups + group) * in_channels * in_points
    y += (batch * groups + group) * out_channels * out_points
    total = tl.zeros((OUT, TILE), tl.float32)
    for hat in range(HATS):
        low = tl.load(start + row * HATS + hat)
        high = tl.load(start + row * HATS + hat + 1)
        if DEPTHWISE:
            u = _under_hat(
                x, sources, values, shape, low, high, q, target, o, in_channels, in_points,
                TILE, OUT, SHIFTS,
            )  # fmt: skip
            w = tl.load(weight + hat * in_channels + o, mask=o < in_channels, other=0.0)
            total += w.to(tl.float32)[:, None] * u
        else:
            for first in range(0, in_channels, IN):
                c = first + tl.arange(0, IN)
                u = _under_hat(
                    x, sources, values, shape, low, high, q, target, c, in_channels, in_points,
                    TILE, IN, SHIFTS,
                )  # fmt: skip
                line = (group * HATS + hat) * out_channels + o
                there = (o < out_channels)[:, None] & (c < in_channels)[None, :]
                where = weight + line[:, None] * in_channels + c[None, :]
                w = tl.load(where, mask=there, other=0.0)
                total = tl.dot(w, u.to(w.dtype), total, input_precision=PRECISION)
    there = (o < out_channels)[:, None] & target[None, :]
    where = y + o.to(tl.int64)[:, None] * out_points + point[None, :]
    tl.store(where, total.to(y.dtype.element_ty), mask=there)


@triton.jit
def correlate(
    x, dy, part, sources, values, start, shape, batch, groups, in_channels, out_channels,
    in_points, out_points, tiles_all, tiles_each,
    HATS: tl.constexpr, TILE: tl.constexpr, IN: tl.constexpr, OUT: tl.constexpr,
    SHIFTS: tl.constexpr, DEPTHWISE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Gradient of `convolve` with respect to the weight: part (chunks, *weight) in float32, for
    `tiles_each` of all tiles a chunk; their sum is the gradient.
    """
    chunk = tl.program_id(0)
    group, hat = tl.program_id(1) // HATS, tl.program_id(1) % HATS
    blocks = tl.cdiv(in_channels, IN)
    c = tl.program_id(2) % blocks * IN + tl.arange(0, IN)
    o = tl.program_id(2) // blocks * OUT + tl.arange(0, OUT)
    total = tl.zeros((IN,) if DEPTHWISE else (OUT, IN), tl.float32)
    last = tl.minimum((chunk + 1) * tiles_each, tiles_all)
    for b in range(batch):
        field = (b * groups + group).to(tl.int64)
        for tile in range(chunk * tiles_each, last):
            row, q, point, target = _targets(tile, shape, out_points, TILE, SHIFTS)
            low = tl.load(start + row * HATS + hat)
            high = tl.load(start + row * HATS + hat + 1)
            origin = x + field * in_channels * in_points
            u = _under_hat(
                origin, sources, values, shape, low, high, q, target, c, in_channels, in_points,
                TILE, IN, SHIFTS,
            )  # fmt: skip
            rows = c if DEPTHWISE else o
            there = (rows < out_channels)[:, None] & target[None, :]
            where = field * out_channels * out_points + rows.to(tl.int64)[:, None] * out_points
            g = tl.load(dy + where + point[None, :], mask=there, other=0.0)
            if DEPTHWISE:
                total += tl.sum(g.to(tl.float32) * u, 1)
            else:
                total = tl.dot(g, tl.trans(u.to(g.dtype)), total, input_precision=PRECISION)
    if DEPTHWISE:
        where = (chunk.to(tl.int64) * HATS + hat) * in_channels + c
        tl.store(part + where, total, mask=c < in_channels)
    else:
        line = ((chunk.to(tl.int64) * groups + group) * HATS + hat) * out_channels + o
        there = (o < out_channels)[:, None] & (c < in_channels)[None, :]
        tl.store(part + line[:, None] * in_channels + c[None, :], total, mask=there)
