"""Transforms as layers, and linear maps of fields by their coefficients."""

import torch
import torch.nn.functional as F
from jaxtyping import Complex, Float
from torch import Tensor, nn

from spherule import checks
from spherule.distributed import Place, isht, sht, whole
from spherule.distributed.transforms import own_orders
from spherule.grids import Grid
from spherule.nn.checks import flat_field, require_channels
from spherule.nn.placed import Placed
from spherule.ops.autocast import no_autocast
from spherule.ops.checks import require_points, require_tensors
from spherule.ops.sht_operators import isht_operator, sht_operator


def default_lmax(grid: Grid) -> int:
    """The degree up to which transforms on a grid are exact, or nearly so on reduced ones."""
    return grid.lmax if grid.regular else grid.nrings // 2


class Harmonics(Placed):
    """The transforms of a grid up to a degree, or as far as the grid resolves it; as a layer, the
    truncation to that degree.
    """

    @checks.arguments
    def __init__(self, grid: Grid, lmax: int) -> None:
        super().__init__()
        self.lmax = checks.integer("lmax", lmax, low=0)
        self.place(grid)

    def place(self, grid: Place) -> None:
        self.grid = grid
        self.degree = min(self.lmax, whole(grid).lmax)
        # On reduced grids the transform is approximate, and corrected by what it leaves.
        self.corrections = 0 if whole(grid).regular else 2

    def analyze(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels degree order 2"]:
        """Coefficients, real and imaginary parts; over ranks, of a rank's own orders."""
        require_channels(self, "x", x, self.grid)
        x = x.contiguous() if x.dtype == torch.float64 else x.float().contiguous()
        coeffs = sht(x, self.grid, self.degree)
        for _ in range(self.corrections):
            rest = x - isht(coeffs, self.grid)
            coeffs = coeffs + sht(rest, self.grid, self.degree)
        return coeffs

    def synthesize(
        self, coeffs: Float[Tensor, "batch channels degree order 2"]
    ) -> Float[Tensor, "batch channels ..."]:
        """The field of coefficients."""
        require_tensors(coeffs=coeffs)
        if coeffs.ndim != 5 or coeffs.shape[-3] != self.degree + 1 or coeffs.shape[-1] != 2:
            raise ValueError(
                f"coeffs: expected (batch, channels, {self.degree + 1}, orders, 2), got "
                f"{tuple(coeffs.shape)}"
            )
        return isht(coeffs.contiguous(), self.grid)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        return self.synthesize(self.analyze(x)).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.grid.name}, lmax={self.lmax}"


class SHT(Placed):
    """Fields `(..., *grid.shape)` to complex coefficients `(..., lmax + 1, lmax + 1)`, [l, m >= 0].

    `ops.sht` as a layer, which compiles and exports with any batch. There are no masks: missing
    values are refused where it runs as plain Python.
    """

    @checks.arguments
    def __init__(self, grid: Grid, lmax: int | None = None) -> None:
        super().__init__()
        self.wanted = lmax if lmax is None else checks.integer("lmax", lmax, low=0)
        self.place(grid)

    def place(self, grid: Grid) -> None:
        self.grid = checks.instance("grid", grid, Grid)
        self.lmax = grid.lmax if self.wanted is None else self.wanted
        if self.lmax > grid.lmax:
            raise ValueError(f"lmax={self.lmax}: {grid!r} tells degrees apart up to {grid.lmax}")

    def forward(self, x: Float[Tensor, "..."]) -> Complex[Tensor, "..."]:
        require_points("x", x, self.grid)
        _require_present("SHT: x", x)
        x = x.contiguous() if x.dtype == torch.float64 else x.float().contiguous()
        coeffs = sht_operator(x, self.grid.name, self.lmax)
        return torch.view_as_complex(coeffs)

    def extra_repr(self) -> str:
        return f"{self.grid.name}, lmax={self.lmax}"


class ISHT(Placed):
    """The inverse of `SHT`: coefficients of any degree to a field `(..., *grid.shape)`."""

    @checks.arguments
    def __init__(self, grid: Grid) -> None:
        super().__init__()
        self.place(grid)

    def place(self, grid: Grid) -> None:
        self.grid = checks.instance("grid", grid, Grid)

    def forward(self, coeffs: Complex[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not coeffs.is_complex() or coeffs.ndim < 2 or coeffs.shape[-1] != coeffs.shape[-2]:
            raise ValueError(
                f"ISHT: coeffs: expected complex (..., lmax + 1, lmax + 1), got {coeffs.dtype} "
                f"{tuple(coeffs.shape)}"
            )
        pairs = torch.view_as_real(coeffs.resolve_conj())
        _require_present("ISHT: coeffs", pairs)
        return isht_operator(pairs.contiguous(), self.grid.name)

    def extra_repr(self) -> str:
        return self.grid.name


def _require_present(name: str, x: Tensor) -> None:
    """A transform mixes all points, so that one missing value would spoil all coefficients."""
    if not torch.compiler.is_compiling() and x.isnan().any():
        raise ValueError(f"{name} has {int(x.isnan().sum())} missing values; fill them first")


class _Mix(Placed):
    """A linear map of fields by their coefficients. What is beyond `lmax` is dropped."""

    @checks.arguments
    def __init__(self, in_channels: int, out_channels: int, grid: Grid, lmax: int) -> None:
        super().__init__()
        self.in_channels = checks.integer("in_channels", in_channels, low=1)
        self.out_channels = checks.integer("out_channels", out_channels, low=1)
        self.harmonics = Harmonics(grid, lmax)

    def forward(
        self,
        x: Float[Tensor, "batch in_channels ..."],
        added: Float[Tensor, "batch out_channels ..."] | None = None,
    ) -> Float[Tensor, "batch out_channels ..."]:
        """`added` is another field, which passes the same truncation."""
        grid, harmonics = self.harmonics.grid, self.harmonics
        flat_field(self, "x", x, self.in_channels, grid)
        if added is not None:
            flat_field(self, "added", added, self.out_channels, grid)
            if added.shape[0] != x.shape[0]:
                raise ValueError(
                    f"added: expected a batch of {x.shape[0]}, as x has, got {tuple(added.shape)}"
                )
        coeffs = harmonics.analyze(x if added is None else torch.cat([x, added.to(x.dtype)], 1))
        with no_autocast(x):
            mixed = self._mixed(coeffs[:, : self.in_channels])
        if added is not None:
            mixed = mixed + coeffs[:, self.in_channels :]
        return harmonics.synthesize(mixed).to(x.dtype)

    def _mixed(self, coeffs: Tensor) -> Tensor:
        """Of coefficients (batch, channels, degree, order, 2)."""
        raise NotImplementedError

    @property
    def fitting_samples(self) -> int:
        """How many samples the weights are found from; degrees have many orders each."""
        return 64

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"


class SpectralMix(_Mix):
    """For each degree up to `lmax` a matrix over channels, the same for all orders: the linear
    maps of fields that commute with rotations. What is beyond `lmax` is dropped.

    At first each output channel is the input channel of the same number.
    """

    weight: nn.Parameter
    """(lmax + 1, out_channels, in_channels)"""

    def __init__(self, in_channels: int, out_channels: int, grid: Grid, lmax: int) -> None:
        super().__init__(in_channels, out_channels, grid, lmax)
        identity = torch.eye(out_channels, in_channels).repeat(self.harmonics.lmax + 1, 1, 1)
        self.weight = nn.Parameter(identity)

    def _mixed(self, coeffs: Tensor) -> Tensor:
        weight = self.weight[: self.harmonics.degree + 1].to(coeffs.dtype)
        return torch.einsum("loi,bilmc->bolmc", weight, coeffs)


class ZonalMix(_Mix):
    """Linear maps of fields that commute with turns about the axis, as those of a rotating planet
    do: for each degree and order a complex matrix over channels and the degrees within `reach`.

    The weights are found by least squares (`models.fit_zonal`) and take no gradients. At first each
    output channel is the input channel of the same number.
    """

    weight: nn.Parameter
    """(pairs of degree and order, out_channels, in_channels, neighboring degrees, 2)"""
    pairs: Tensor
    """Which of them a rank has, and where they stand among its coefficients, (2, own pairs)."""

    def __init__(
        self, in_channels: int, out_channels: int, grid: Grid, lmax: int, *, reach: int = 3
    ) -> None:
        super().__init__(in_channels, out_channels, grid, lmax)
        self.reach = checks.integer("reach", reach, low=0)
        size = order_pairs(self.harmonics.lmax).shape[1]
        weight = torch.zeros(size, out_channels, in_channels, 2 * reach + 1, 2)
        weight[..., reach, 0] = torch.eye(out_channels, in_channels)
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.place(grid)

    def place(self, grid: Place) -> None:
        super().place(grid)
        degree = self.harmonics.degree
        orders = own_orders(grid, degree)
        degrees, order = order_pairs(degree)
        place = torch.full((degree + 1,), -1)
        place[list(orders)] = torch.arange(len(orders))
        own = place[order]
        there = (degrees * len(orders) + own)[own >= 0]
        self.set_table("pairs", torch.stack([torch.nonzero(own >= 0)[:, 0], there]))

    def _mixed(self, coeffs: Tensor) -> Tensor:
        which, there = self.pairs
        near = neighboring_degrees(coeffs, self.reach).flatten(2, 3).index_select(2, there)
        weight = self.weight.index_select(0, which).to(coeffs.dtype)
        real, imaginary = (
            torch.einsum("poik,bipck->bopc", part, near) for part in weight.unbind(-1)
        )
        mixed = real + torch.stack([-imaginary[..., 1], imaginary[..., 0]], dim=-1)
        size = coeffs.shape[2:4]
        whole = coeffs.new_zeros(coeffs.shape[0], self.out_channels, size.numel(), 2)
        return whole.index_copy(2, there, mixed).unflatten(2, size)

    @property
    def fitting_samples(self) -> int:
        """Two dozen for each number that an equation has to find."""
        return 24 * self.in_channels * (2 * self.reach + 1)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, reach={self.reach}"


def order_pairs(lmax: int) -> Tensor:
    """Degrees and orders m <= l, (2, pairs), degree by degree."""
    return torch.tril_indices(lmax + 1, lmax + 1)


def neighboring_degrees(coeffs: Tensor, reach: int) -> Tensor:
    """Beside each coefficient (..., degree, order, 2) those of its order within `reach` degrees,
    as a last dimension; zeros beyond the ends.
    """
    ends = F.pad(coeffs, (0, 0, 0, 0, reach, reach))
    return ends.unfold(-3, 2 * reach + 1, 1)
