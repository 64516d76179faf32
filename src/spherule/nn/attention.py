"""Attention as layers: projections around the ops."""

import math
from typing import Any, ClassVar

from jaxtyping import Bool, Float
from torch import Tensor, nn

from spherule import checks, ops
from spherule.distributed import Place, disk_halo, own
from spherule.geometry import Neighborhood
from spherule.grids import Grid
from spherule.nn.checks import flat_field, require_dtype
from spherule.nn.placed import Placed
from spherule.nn.projection import Projection
from spherule.ops.checks import require_points
from spherule.ops.pointwise.reference import split_heads


class SphericalAttention(Placed):
    """Multi-head attention with quadrature weights: global, or within geodesic disks. Queries come
    from a field, keys and values from it or from another, the context.

    Args:
        channels: of the field, and by default of all that follows.
        grid: where keys and values are.
        heads: among which the projected channels are shared.
        cutoff: the radius of the disks in radians; None attends to the whole sphere.
        query_grid: where queries are, by default `grid`.
        edge_width: of the disks' soft edge, in radians.
        key_channels: of projected queries and keys, over all heads.
        value_channels: of projected values, over all heads.
        out_channels: of what comes out.
        context_channels: of the context.
        bias: whether projections have one.
        qk_norm: normalize queries and keys of each head.
        dropout: of attention weights; only global attention forms them, at the price of torch's
            slower kernel.

    >>> import torch, spherule as sph
    >>> grid = sph.Grid.octahedral(8)
    >>> layer = sph.nn.SphericalAttention(32, grid, heads=4, cutoff=grid.cutoff(7))
    >>> tuple(layer(torch.randn(2, 32, *grid.shape)).shape)
    (2, 32, 544)
    """

    grid: Any
    """A grid, or shards of one; so is `query_grid`."""
    query_grid: Any
    mask_argument: ClassVar[str] = "key_mask"

    @checks.arguments
    def __init__(
        self,
        channels: int,
        grid: Grid,
        *,
        heads: int = 1,
        cutoff: float | None = None,
        query_grid: Grid | None = None,
        edge_width: float = 0.0,
        key_channels: int | None = None,
        value_channels: int | None = None,
        out_channels: int | None = None,
        context_channels: int | None = None,
        bias: bool = False,
        qk_norm: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        key_channels = channels if key_channels is None else key_channels
        value_channels = channels if value_channels is None else value_channels
        widths = {"channels": channels, "context_channels": context_channels}
        for name, count in (widths | {"heads": heads, "out_channels": out_channels}).items():
            if count is not None:
                checks.integer(name, count, low=1)
        for name, width in (("key_channels", key_channels), ("value_channels", value_channels)):
            if checks.integer(name, width, low=1) % heads:
                raise ValueError(f"{name}={width} must be a multiple of heads={heads}")
        checks.number("dropout", dropout, low=0, below=1)
        if dropout and cutoff is not None:
            raise ValueError(
                f"dropout={dropout} with cutoff={cutoff}: local attention never forms the weights "
                "that dropout would drop; put nn.Dropout or drop path behind the layer"
            )
        if cutoff is not None:
            checks.radius("cutoff", cutoff)
        if checks.number("edge_width", edge_width, low=0) and cutoff is None:
            raise ValueError(
                f"edge_width={edge_width} needs a cutoff: global attention has no edge"
            )
        self.channels = channels
        self.context_channels = channels if context_channels is None else context_channels
        self.heads = heads
        self.cutoff = cutoff
        self.edge_width = edge_width
        self.dropout = dropout
        self.widths = (key_channels, key_channels, value_channels)
        # One product for queries, keys and values where they come from the same field.
        self.fused = self.context_channels == channels
        if self.fused:
            self.qkv = Projection(channels, sum(self.widths), bias=bias)
        else:
            self.q = Projection(channels, key_channels, bias=bias)
            self.kv = Projection(self.context_channels, key_channels + value_channels, bias=bias)
        out_channels = channels if out_channels is None else out_channels
        self.out = Projection(value_channels, out_channels, bias=bias)
        self.q_norm = nn.RMSNorm(key_channels // heads) if qk_norm else None
        self.k_norm = nn.RMSNorm(key_channels // heads) if qk_norm else None
        self.place(grid, query_grid)

    def forward(
        self,
        x: Float[Tensor, "batch channels ..."],
        context: Float[Tensor, "batch context_channels ..."] | None = None,
        key_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch out_channels ..."]:
        """x `(batch, channels, *query_grid.shape)`, context `(batch, channels, *grid.shape)`;
        `key_mask` `(*grid.shape)` or `(batch, *grid.shape)` is True where a key may be attended to.
        """
        x = flat_field(self, "x", x, self.channels, self.query_grid)
        require_dtype(self, "x", x)
        if context is not None:
            context = flat_field(self, "context", context, self.context_channels, self.grid)
            require_dtype(self, "context", context)
        elif self.cross:
            raise ValueError(
                f"SphericalAttention: queries on {self.query_grid!r} attend to "
                f"{self.context_channels} channels on {self.grid!r}: give that field as context"
            )
        if key_mask is not None:
            require_points("key_mask", key_mask, own(self.grid))
            key_mask = self.halo(key_mask.flatten(-len(self.grid.shape)))
        q, k, v = self.project(x, context)
        if self.neighborhood is None:
            dropout = self.dropout if self.training else 0.0
            y = ops.global_attention(q, k, v, self.halo.seen, key_mask=key_mask, dropout_p=dropout)
        else:
            y = ops.neighborhood_attention(q, k, v, self.neighborhood, key_mask=key_mask)
        return self.out(y).unflatten(-1, self.query_grid.shape)

    def project(self, x: Tensor, context: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values (batch, heads, points, dim) of fields (batch, channels,
        points); over ranks, keys and values of all points that a rank sees.
        """
        q, k, v = self._project(x, context)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        return q, k, v

    @property
    def reach(self) -> Neighborhood | Grid:
        """What `ops.attention_weights` asks for: disks, or the grid of all keys."""
        return self.halo.seen if self.neighborhood is None else self.neighborhood

    def place(self, grid: Place, query_grid: Place | None = None) -> None:
        self.grid = grid
        self.query_grid = grid if query_grid is None else query_grid
        self.cross = self.query_grid != grid or not self.fused
        radius = None if self.cutoff is None else min(self.cutoff + self.edge_width / 2, math.pi)
        self.halo = disk_halo(grid, self.query_grid, radius)
        self.neighborhood = (
            None
            if self.cutoff is None
            else Neighborhood.disk(
                own(self.query_grid), self.halo.seen, self.cutoff, edge_width=self.edge_width
            )
        )

    def extra_repr(self) -> str:
        reach = "global" if self.cutoff is None else f"cutoff={self.cutoff:g}"
        edge = f", edge_width={self.edge_width:g}" if self.edge_width else ""
        cross = "" if self.query_grid == self.grid else f", query_grid={self.query_grid.name}"
        return f"{self.grid.name}, heads={self.heads}, {reach}{edge}{cross}"

    def _project(self, x: Tensor, context: Tensor | None) -> list[Tensor]:
        alone = not self.halo.exchanges
        if self.fused and context is None and alone:
            return self.qkv.split(x, self.widths, self.heads)
        context, (first, *others) = x if context is None else context, self.widths
        to_q, to_kv = (self.qkv, self.qkv) if self.fused else (self.q, self.kv)
        some, rest = (slice(first), slice(first, None)) if self.fused else (slice(None),) * 2
        (q,) = to_q.split(x, [first], self.heads, some)
        if alone:
            return [q, *to_kv.split(context, others, self.heads, rest)]
        # Over ranks, keys and values are sent in one tensor, and queries stay out of it.
        (kv,) = to_kv.split(context, [sum(others)], some=rest)
        return [q, *(split_heads(x, self.heads) for x in self.halo(kv).split(others, dim=1))]
