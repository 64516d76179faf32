"""Gradients of neighborhood attention in Triton. With P the softmax weights, dP = dO v and
delta = dO . out - dlse,

    dS = P (dP - delta),    dq = scale dS k,    dk = scale dS^T q,    dv = P^T dO.

dq walks along the keys of tiles of queries, dk and dv along the queries of tiles of keys: every
sum has one owner and one order. Parts of split tiles are contiguous float32, as are lse and delta.
"""

import triton
import triton.language as tl

from spherule.ops.neighborhood_attention.triton_walk import centers, rows, store_rows, walk


@triton.jit
def backward_queries(
    q, k, v, key_mask, out, lse, grad_out, grad_lse, delta, dq, part,
    programs, tiles, windows, bits, rings, numbers, angles,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, o_b, o_h, o_n, o_d,
    g_b, g_h, g_n, g_d, dq_b, dq_h, dq_n, dq_d, mask_b,
    batch_heads, heads, queries, parts, scale, cutoff, sharpness,
    DIM: tl.constexpr, WIDTH: tl.constexpr, VALUE_DIM: tl.constexpr, VALUE_WIDTH: tl.constexpr,
    BLOCK: tl.constexpr, WINDOW: tl.constexpr,
    SOFT: tl.constexpr, MASKED: tl.constexpr, LSE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dq, and delta for the other kernel. `scale` is without log2(e)."""
    bh = tl.program_id(0) % batch_heads
    programs += 5 * (tl.program_id(0) // batch_heads)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    k += b * k_b + h * k_h
    v += b * v_b + h * v_h
    ring, place, point, center, turn = centers(programs, tiles, rings, BLOCK)
    statistic = bh.to(tl.int64) * queries + point
    query = rows(q + b * q_b + h * q_h, point, q_n, q_d, center, DIM, WIDTH)
    grad = rows(grad_out + b * g_b + h * g_h, point, g_n, g_d, center, VALUE_DIM, VALUE_WIDTH)
    result = rows(out + b * o_b + h * o_h, point, o_n, o_d, center, VALUE_DIM, VALUE_WIDTH)
    d = tl.sum(grad.to(tl.float32) * result.to(tl.float32), 1)
    if LSE:
        d -= tl.load(grad_lse + statistic, mask=center, other=0.0)
    # All parts of a split tile store the same.
    tl.store(delta + statistic, d, mask=center)
    top = tl.load(lse + statistic, mask=center, other=0.0) * 1.4426950408889634
    sum = tl.zeros((BLOCK, WIDTH), tl.float32)
    for index in range(tl.load(programs + 2), tl.load(programs + 3)):
        row, there, member, bias = walk(
            index, ring, place, turn, windows, bits, rings, numbers, angles, cutoff, sharpness,
            BLOCK, WINDOW, SOFT, False,
        )  # fmt: skip
        if MASKED:
            there = there & (tl.load(key_mask + b * mask_b + row, mask=there, other=0) != 0)
            member = member & there[None, :]
        key = rows(k, row, k_n, k_d, there, DIM, WIDTH)
        value = rows(v, row, v_n, v_d, there, VALUE_DIM, VALUE_WIDTH)
        s = tl.dot(query, tl.trans(key), input_precision=PRECISION)
        s = s * (scale * 1.4426950408889634) + bias
        p = tl.where(member, tl.exp2(tl.where(member, s - top[:, None], 0.0)), 0.0)
        dp = tl.dot(grad, tl.trans(value), input_precision=PRECISION)
        ds = tl.where(member, p * (dp - d[:, None]), 0.0)
        sum = tl.dot(ds.to(key.dtype), key, sum, input_precision=PRECISION)
    sum *= scale
    slot = tl.load(programs + 4)
    if slot < 0:
        store_rows(dq + b * dq_b + h * dq_h, sum, point, dq_n, dq_d, center, DIM, WIDTH)
    else:
        spot = (bh.to(tl.int64) * parts + slot) * BLOCK + tl.arange(0, BLOCK)
        store_rows(part, sum, spot, DIM, 1, center, DIM, WIDTH)


@triton.jit
def backward_keys(
    q, k, v, key_mask, lse, delta, grad_out, dk, dv, part_dk, part_dv,
    programs, tiles, windows, bits, rings, numbers, angles,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, g_b, g_h, g_n, g_d,
    dk_b, dk_h, dk_n, dk_d, dv_b, dv_h, dv_n, dv_d, mask_b,
    batch_heads, heads, queries, parts, scale, cutoff, sharpness,
    DIM: tl.constexpr, WIDTH: tl.constexpr, VALUE_DIM: tl.constexpr, VALUE_WIDTH: tl.constexpr,
    BLOCK: tl.constexpr, WINDOW: tl.constexpr,
    SOFT: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """dk and dv; tables are those of the transpose. Scores are transposed: (keys, queries)."""
    bh = tl.program_id(0) % batch_heads
    programs += 5 * (tl.program_id(0) // batch_heads)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    q += b * q_b + h * q_h
    grad_out += b * g_b + h * g_h
    ring, place, point, center, turn = centers(programs, tiles, rings, BLOCK)
    counts = center
    if MASKED:
        counts = center & (tl.load(key_mask + b * mask_b + point, mask=center, other=0) != 0)
    key = rows(k + b * k_b + h * k_h, point, k_n, k_d, counts, DIM, WIDTH)
    value = rows(v + b * v_b + h * v_h, point, v_n, v_d, counts, VALUE_DIM, VALUE_WIDTH)
    sum = tl.zeros((BLOCK, WIDTH), tl.float32)
    value_sum = tl.zeros((BLOCK, VALUE_WIDTH), tl.float32)
    for index in range(tl.load(programs + 2), tl.load(programs + 3)):
        row, there, member, bias = walk(
            index, ring, place, turn, windows, bits, rings, numbers, angles, cutoff, sharpness,
            BLOCK, WINDOW, SOFT, True,
        )  # fmt: skip
        if MASKED:
            member = member & counts[:, None]
        statistic = bh.to(tl.int64) * queries + row
        top = tl.load(lse + statistic, mask=there, other=0.0) * 1.4426950408889634
        d = tl.load(delta + statistic, mask=there, other=0.0)
        query = rows(q, row, q_n, q_d, there, DIM, WIDTH)
        grad = rows(grad_out, row, g_n, g_d, there, VALUE_DIM, VALUE_WIDTH)
        s = tl.dot(key, tl.trans(query), input_precision=PRECISION)
        s = s * (scale * 1.4426950408889634) + bias
        p = tl.where(member, tl.exp2(tl.where(member, s - top[None, :], 0.0)), 0.0)
        value_sum = tl.dot(p.to(grad.dtype), grad, value_sum, input_precision=PRECISION)
        dp = tl.dot(value, tl.trans(grad), input_precision=PRECISION)
        ds = tl.where(member, p * (dp - d[None, :]), 0.0)
        sum = tl.dot(ds.to(query.dtype), query, sum, input_precision=PRECISION)
    sum *= scale
    slot = tl.load(programs + 4)
    if slot < 0:
        store_rows(dk + b * dk_b + h * dk_h, sum, point, dk_n, dk_d, center, DIM, WIDTH)
        store_rows(
            dv + b * dv_b + h * dv_h, value_sum, point, dv_n, dv_d, center, VALUE_DIM, VALUE_WIDTH
        )
    else:
        spot = (bh.to(tl.int64) * parts + slot) * BLOCK + tl.arange(0, BLOCK)
        store_rows(part_dk, sum, spot, DIM, 1, center, DIM, WIDTH)
        store_rows(part_dv, value_sum, spot, VALUE_DIM, 1, center, VALUE_DIM, VALUE_WIDTH)


@triton.jit
def add_parts(
    x, part, splits, tiles, rings, x_b, x_h, x_n, x_d, batch_heads, heads, parts,
    DIM: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of the parts of a split tile, in a fixed order."""
    bh = tl.program_id(0) % batch_heads
    splits += 4 * (tl.program_id(0) // batch_heads)
    b, h = (bh // heads).to(tl.int64), (bh % heads).to(tl.int64)
    _, _, point, center, _ = centers(splits, tiles, rings, BLOCK)
    sum = tl.zeros((BLOCK, WIDTH), tl.float32)
    for slot in range(tl.load(splits + 2), tl.load(splits + 3)):
        spot = (bh.to(tl.int64) * parts + slot) * BLOCK + tl.arange(0, BLOCK)
        sum += rows(part, spot, DIM, 1, center, DIM, WIDTH)
    store_rows(x + b * x_b + h * x_h, sum, point, x_n, x_d, center, DIM, WIDTH)
