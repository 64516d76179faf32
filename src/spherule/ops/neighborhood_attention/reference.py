"""Neighborhood attention in the symbols of its equation: the oracle of every kernel, and the
fallback where there is none.

    out_i = sum_j w_ij exp(q_i . k_j scale) v_j / sum_j w_ij exp(q_i . k_j scale),    lse_i = log of
    the denominator,

over the keys j of query i, with w_ij the quadrature weight of j times the soft edge.
"""

from functools import lru_cache

import torch
from torch import Tensor

from spherule.geometry.neighborhood import Neighborhood


def neighborhood_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    neighborhood: Neighborhood,
    scale: float,
    key_mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """(out, lse); 16-bit inputs are computed in float32, and lse stays so."""
    dtype = q.dtype
    if dtype in (torch.float16, torch.bfloat16):
        q, k, v = q.float(), k.float(), v.float()
    parts = []
    for r, (start, n) in enumerate(zip(*_rings(neighborhood), strict=True)):
        keys, log_w = (x.to(q.device) for x in _ring(neighborhood, r))
        parts.append(
            _attend(q[:, :, start : start + n], k, v, keys, log_w.to(q.dtype), scale, key_mask)
        )
    out, lse = (torch.cat(x, dim=2) for x in zip(*parts, strict=True))
    return out.to(dtype), lse


def _attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    keys: Tensor,
    log_w: Tensor,
    scale: float,
    key_mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """keys, log_w: (queries, most keys of a query), -inf where there is none."""
    counts = (log_w > -torch.inf)[None]
    if key_mask is not None:
        counts = counts & key_mask.reshape(-1, key_mask.shape[-1])[:, keys]
    counts = counts[:, None]
    # Keys that do not count are replaced before the products, so that their NaNs stay out, forward
    # and backward.
    k_j = k[:, :, keys].masked_fill(~counts[..., None], 0)
    v_j = v[:, :, keys].masked_fill(~counts[..., None], 0)
    s = (torch.einsum("bhqd,bhqkd->bhqk", q, k_j) * scale + log_w.clamp(min=-1e30)).masked_fill(
        ~counts, -torch.inf
    )
    empty = ~counts.any(dim=-1)
    # A query without keys: softmax over nothing is 0, and its gradient too.
    s = s.masked_fill(empty[..., None], 0)
    lse = s.logsumexp(dim=-1)
    # Not exp(s - lse): where logits are large, the digits of lse are too few to normalize.
    p = s.softmax(dim=-1).masked_fill(~counts, 0)
    out = torch.einsum("bhqk,bhqkd->bhqd", p, v_j)
    return out, lse.masked_fill(empty, -torch.inf)


def _rings(neighborhood: Neighborhood) -> tuple[list[int], list[int]]:
    query = neighborhood.table.query
    return query.ringstart.tolist(), query.nphi.tolist()


@lru_cache(maxsize=1024)
@torch.inference_mode(False)  # made in inference, used in training too
def _ring(neighborhood: Neighborhood, r: int) -> tuple[Tensor, Tensor]:
    keys, log_w = neighborhood.ring(r)
    return torch.from_numpy(keys).clamp(min=0), torch.from_numpy(log_w)
