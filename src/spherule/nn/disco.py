"""DISCO convolution as a layer."""

import math
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from spherule import checks, ops
from spherule.distributed import Place, disk_halo, own
from spherule.geometry.filters import Stencil
from spherule.grids import Grid
from spherule.nn.checks import flat_field
from spherule.nn.placed import Placed
from spherule.ops.pointwise import linear

_LEAST = 1e-6
"""The part of a hat from which on its points count as seen."""


class DiscoConv(Placed):
    """Convolution on the sphere with filters that are learned combinations of hats on a geodesic
    disk: one in the center, `angles` at each of `radii` distances.

    Args:
        in_channels: of the field.
        out_channels: of what comes out.
        grid: where the field is.
        out_grid: where it goes, by default `grid`.
        radii: distances at which hats sit.
        angles: hats at each distance. 1 makes the layer equivariant under all rotations; with more,
            filters keep their orientation to the meridian.
        cutoff: the radius of the disk in radians, by default three spacings of the coarser grid, or
            what it takes for every hat to have a point under it.
        groups: as in torch's convolutions.
        bias: whether there is one.

    >>> import torch, spherule as sph
    >>> layer = sph.nn.DiscoConv(3, 8, sph.Grid.gauss(16, 32), sph.Grid.healpix(4))
    >>> tuple(layer(torch.randn(2, 3, 16, 32)).shape)
    (2, 8, 192)
    """

    weight: nn.Parameter
    """(out_channels, in_channels // groups, hats)"""
    bias: nn.Parameter | None
    mask_argument: ClassVar[str] = "mask"

    @checks.arguments
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        grid: Grid,
        out_grid: Grid | None = None,
        *,
        radii: int = 2,
        angles: int = 4,
        cutoff: float | None = None,
        groups: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__()
        counts = {"in_channels": in_channels, "out_channels": out_channels, "groups": groups}
        for name, count in counts.items():
            checks.integer(name, count, low=1)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"DiscoConv: groups={groups} must divide in_channels={in_channels} and "
                f"out_channels={out_channels}"
            )
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        # Geometry is not state: it is shared between layers, and no part of checkpoints.
        self.stencil = Stencil.hats(grid, out_grid, cutoff=cutoff, radii=radii, angles=angles)
        self.grid: Place = grid
        self.halo = disk_halo(grid, grid, None)
        shape = (out_channels, in_channels // groups, self.stencil.basis)
        self.weight = nn.Parameter(torch.empty(shape))
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Every hat averages, so this keeps the variance of smooth fields."""
        nn.init.normal_(self.weight, std=1 / math.sqrt(self.weight[0].numel()))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(
        self,
        x: Float[Tensor, "batch in_channels *in_points"],
        mask: Bool[Tensor, "batch *in_points"] | None = None,
    ) -> Float[Tensor, "batch out_channels *out_points"]:
        """With a mask `(batch, *grid.shape)`, each hat averages over the points where it is True; a
        hat without any counts as 0.
        """
        flat_field(self, "x", x, self.in_channels, self.grid)
        if mask is not None:
            return self._biased(self._mixed(self._averages(x, mask)))
        return self._biased(ops.disco(self._seen(x), self.weight, self.stencil))

    def reach(self, mask: Bool[Tensor, "batch *in_points"]) -> Bool[Tensor, "batch *out_points"]:
        """Where the output knows of any point of a mask."""
        return (self._hats(mask[:, None].to(self.weight.dtype)) > _LEAST).any(2)[:, 0]

    def after(self, upsample: nn.Module, x: Float[Tensor, "batch in_channels *points"]) -> Tensor:
        """`self(upsample(x))` for an `upsample` that is linear and treats all channels alike.

        The channels are mixed before it, so that it sees a part for each output channel and hat
        instead of all input channels: cheaper where the output channels are few.
        """
        out_channels, in_channels, hats = self.weight.shape
        if self.groups > 1 or out_channels * hats >= in_channels:
            return self(upsample(x))
        mixing = self.weight.transpose(1, 2).reshape(out_channels * hats, in_channels)
        mixed = linear(x.flatten(2), mixing)
        # Few channels, of which no digits are lost on the way to the filters.
        mixed = mixed.to(torch.promote_types(mixed.dtype, torch.float32))
        parts = upsample(mixed.unflatten(-1, x.shape[2:]))
        each_its_hat = torch.eye(hats, dtype=parts.dtype, device=parts.device)
        weight = each_its_hat.expand(out_channels, hats, hats)
        y = ops.disco(self._seen(parts), weight, self.stencil).to(x.dtype)
        return self._biased(y)

    def place(self, grid: Place, out_grid: Place | None = None) -> None:
        s = self.stencil
        if out_grid is None and s.in_grid != s.out_grid:
            raise ValueError(
                f"DiscoConv: out_grid is needed; this layer goes from {s.in_grid!r} to "
                f"{s.out_grid!r}"
            )
        out_grid = grid if out_grid is None else out_grid
        self.grid = grid
        self.halo = disk_halo(grid, out_grid, s.cutoff)
        self.stencil = Stencil.hats(
            self.halo.seen, own(out_grid), cutoff=s.cutoff, radii=s.radii, angles=s.angles
        )

    def _hats(self, x: Tensor) -> Tensor:
        """Each hat's average of each channel, (batch, channels, hats, *out_points)."""
        hats = self.stencil.basis
        each = torch.eye(hats, dtype=x.dtype, device=x.device)[:, None]
        parts = ops.disco(self._seen(x).flatten(0, 1)[:, None], each, self.stencil)
        return parts.unflatten(0, x.shape[:2])

    def _averages(self, x: Tensor, mask: Tensor) -> Tensor:
        known = mask[:, None]
        seen = self._hats(known.to(x.dtype))
        sums = self._hats(torch.where(known, x, 0.0))
        return torch.where(seen > _LEAST, sums / seen.clamp(min=_LEAST), 0.0)

    def _mixed(self, averages: Tensor) -> Tensor:
        out_channels, in_channels, _ = self.weight.shape
        groups = (self.groups, out_channels // self.groups)
        weight = self.weight.unflatten(0, groups).flatten(2)
        parts = averages.unflatten(1, (self.groups, in_channels)).flatten(2, 3)
        mixed = torch.einsum("goi,bgip->bgop", weight, parts.flatten(3))
        return mixed.flatten(1, 2).unflatten(-1, averages.shape[3:])

    def _seen(self, x: Tensor) -> Tensor:
        return self.halo(x.flatten(2)).unflatten(-1, self.stencil.in_shape)

    def _biased(self, y: Tensor) -> Tensor:
        if self.bias is None:
            return y
        return y + self.bias.to(y.dtype).reshape(-1, *[1] * (y.ndim - 2))

    def extra_repr(self) -> str:
        s = self.stencil
        return (
            f"{self.in_channels}, {self.out_channels}, {s.in_grid.name} to {s.out_grid.name}, "
            f"radii={s.radii}, angles={s.angles}, cutoff={s.cutoff:.4g}, groups={self.groups}, "
            f"bias={self.bias is not None}"
        )
