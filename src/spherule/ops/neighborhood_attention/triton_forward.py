"""Neighborhood attention in Triton, forward.

`q`, `k`, ... are pointers, with strides over batch, heads, points and channels; lse and parts are
contiguous float32.
"""

import triton
import triton.language as tl

from spherule.ops.neighborhood_attention.triton_walk import centers, rows, store_rows, walk


@triton.jit
def forward(
    q, k, v, key_mask, out, lse, part_out, part_lse,
    programs, tiles, windows, bits, rings, numbers, angles,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, o_b, o_h, o_n, o_d, mask_b,
    batch_heads, heads, queries, parts, scale, cutoff, sharpness,
    DIM: tl.constexpr, WIDTH: tl.constexpr, VALUE_DIM: tl.constexpr, VALUE_WIDTH: tl.constexpr,
    BLOCK: tl.constexpr, WINDOW: tl.constexpr,
    SOFT: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """out and lse of whole tiles, their parts of split ones."""
    bh = tl.program_id(0) % batch_heads
    programs += 5 * (tl.program_id(0) // batch_heads)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    q += b * q_b + h * q_h
    k += b * k_b + h * k_h
    v += b * v_b + h * v_h
    out += b * o_b + h * o_h
    ring, place, point, center, turn = centers(programs, tiles, rings, BLOCK)
    query = rows(q, point, q_n, q_d, center, DIM, WIDTH)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    sum = tl.zeros((BLOCK, VALUE_WIDTH), tl.float32)
    for index in range(tl.load(programs + 2), tl.load(programs + 3)):
        row, there, member, bias = walk(
            index, ring, place, turn, windows, bits, rings, numbers, angles, cutoff, sharpness,
            BLOCK, WINDOW, SOFT, False,
        )  # fmt: skip
        if MASKED:
            there = there & (tl.load(key_mask + b * mask_b + row, mask=there, other=0) != 0)
            member = member & there[None, :]
        key = rows(k, row, k_n, k_d, there, DIM, WIDTH)
        s = tl.dot(query, tl.trans(key), input_precision=PRECISION) * scale + bias
        s = tl.where(member, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        base = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - base[:, None])
        fade = tl.exp2(top - base)
        total = total * fade + tl.sum(p, 1)
        value = rows(v, row, v_n, v_d, there, VALUE_DIM, VALUE_WIDTH)
        sum = sum * fade[:, None]
        sum = tl.dot(p.to(value.dtype), value, sum, input_precision=PRECISION)
        top = new
    empty = total == 0.0
    sum = sum / tl.where(empty, 1.0, total)[:, None]
    # A NaN in the scores makes the total NaN, and so the result.
    found = (tl.where(empty, 0.0, top) + tl.log2(tl.where(empty, 1.0, total))) * 0.6931471805599453
    found = tl.where(empty, float("-inf"), found)
    slot = tl.load(programs + 4)
    if slot < 0:
        store_rows(out, sum, point, o_n, o_d, center, VALUE_DIM, VALUE_WIDTH)
        tl.store(lse + bh.to(tl.int64) * queries + point, found, mask=center)
    else:
        spot = (bh.to(tl.int64) * parts + slot) * BLOCK + tl.arange(0, BLOCK)
        store_rows(part_out, sum, spot, VALUE_DIM, 1, center, VALUE_DIM, VALUE_WIDTH)
        tl.store(part_lse + spot, found, mask=center)


@triton.jit
def merge(
    out, lse, part_out, part_lse, splits, tiles, rings,
    o_b, o_h, o_n, o_d, batch_heads, heads, queries, parts,
    VALUE_DIM: tl.constexpr, VALUE_WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Parts of a split tile by their log-sum-exp, in a fixed order."""
    bh = tl.program_id(0) % batch_heads
    splits += 4 * (tl.program_id(0) // batch_heads)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    _, _, point, center, _ = centers(splits, tiles, rings, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    sum = tl.zeros((BLOCK, VALUE_WIDTH), tl.float32)
    for slot in range(tl.load(splits + 2), tl.load(splits + 3)):
        spot = (bh.to(tl.int64) * parts + slot) * BLOCK + tl.arange(0, BLOCK)
        s = tl.load(part_lse + spot, mask=center, other=float("-inf"))
        new = tl.maximum(top, s)
        base = tl.where(new == float("-inf"), 0.0, new)
        p, fade = tl.exp(s - base), tl.exp(top - base)
        total = total * fade + p
        part = rows(part_out, spot, VALUE_DIM, 1, center, VALUE_DIM, VALUE_WIDTH)
        sum = sum * fade[:, None] + p[:, None] * part
        top = new
    empty = total == 0.0
    sum = sum / tl.where(empty, 1.0, total)[:, None]
    found = tl.where(empty, 0.0, top) + tl.log(tl.where(empty, 1.0, total))
    found = tl.where(empty, float("-inf"), found)
    store_rows(out + b * o_b + h * o_h, sum, point, o_n, o_d, center, VALUE_DIM, VALUE_WIDTH)
    tl.store(lse + bh.to(tl.int64) * queries + point, found, mask=center)
