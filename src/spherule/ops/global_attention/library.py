"""Global attention by the native library: neighborhoods that are the whole sphere."""

from torch import Tensor

from spherule import native
from spherule.geometry.neighborhood import whole_name
from spherule.grids import Grid
from spherule.ops.neighborhood_attention import attend
from spherule.ops.served import served, shortened

# With vectors of 512 bits it is faster than torch's kernel, which calls for products of matrices;
# with fewer it is slower.
_WIDE = 512


def takes(q: Tensor, k: Tensor, v: Tensor, *, return_lse: bool) -> bool:
    """Whether it is there, and torch's kernel is not the better one: that gives no lse."""
    if not q.numel() or not v.numel() or not (served(q, k, v) or shortened(q)):
        return False
    return return_lse or _vector_bits() >= _WIDE


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_grid: Grid,
    scale: float,
    key_mask: Tensor | None,
    *,
    weighted: bool,
) -> tuple[Tensor, Tensor]:
    """(out, lse). By its name, since compilers can hold no neighborhood."""
    name = whole_name(q.shape[2], key_grid.name, weighted=weighted)
    return attend(q, k, v, key_mask, name, scale)


def _vector_bits() -> int:
    return native.vector_bits()


_vector_bits._dynamo_marked_constant = True  # type: ignore[attr-defined]
