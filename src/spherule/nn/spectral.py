"""Linear maps over channels in harmonics: one matrix a degree."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from spherule import checks
from spherule.grids import Grid
from spherule.nn.checks import flat_field
from spherule.nn.placed import Placed
from spherule.ops.forward_mode import multilinear
from spherule.ops.sht_operators import isht_operator, sht_operator


def default_lmax(grid: Grid) -> int:
    """The degree up to which transforms on a grid are exact, or nearly so on reduced ones."""
    return grid.lmax if grid.regular else grid.nrings // 2


class Harmonics(Placed):
    """The transforms of a grid up to a degree, or as far as the grid resolves it; as a layer, the
    truncation to that degree.
    """

    def __init__(self, grid: Grid, lmax: int) -> None:
        super().__init__()
        self.lmax = checks.integer("lmax", lmax, low=0)
        self.place(grid)

    def place(self, grid: Grid) -> None:
        self.grid = grid
        self.degree = min(self.lmax, grid.lmax)
        # On reduced grids the transform is approximate, and corrected by what it leaves.
        self.corrections = 0 if grid.regular else 2

    def analyze(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels degree order 2"]:
        """Coefficients, real and imaginary parts."""
        x = x.contiguous() if x.dtype == torch.float64 else x.float().contiguous()
        coeffs = multilinear(sht_operator, (x,), self.grid.name, self.degree)
        for _ in range(self.corrections):
            rest = x - self.synthesize(coeffs)
            coeffs = coeffs + multilinear(sht_operator, (rest,), self.grid.name, self.degree)
        return coeffs

    def synthesize(
        self, coeffs: Float[Tensor, "batch channels degree order 2"]
    ) -> Float[Tensor, "batch channels ..."]:
        """The field of coefficients."""
        return multilinear(isht_operator, (coeffs.contiguous(),), self.grid.name)

    def forward(
        self, x: Float[Tensor, "batch channels ..."]
    ) -> Float[Tensor, "batch channels ..."]:
        return self.synthesize(self.analyze(x)).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.grid.name}, lmax={self.lmax}"


class SpectralMix(Placed):
    """For each degree up to `lmax` a matrix over channels, the same for all orders: the linear
    maps of fields that commute with rotations. What is beyond `lmax` is dropped.

    At first each output channel is the input channel of the same number.
    """

    weight: nn.Parameter
    """(lmax + 1, out_channels, in_channels)"""

    def __init__(self, in_channels: int, out_channels: int, grid: Grid, lmax: int) -> None:
        super().__init__()
        self.in_channels = checks.integer("in_channels", in_channels, low=1)
        self.out_channels = checks.integer("out_channels", out_channels, low=1)
        self.harmonics = Harmonics(grid, lmax)
        identity = torch.eye(out_channels, in_channels).repeat(self.harmonics.lmax + 1, 1, 1)
        self.weight = nn.Parameter(identity)

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
        coeffs = harmonics.analyze(x if added is None else torch.cat([x, added.to(x.dtype)], 1))
        weight = self.weight[: harmonics.degree + 1].to(coeffs.dtype)
        with torch.autocast(x.device.type, enabled=False):
            mixed = torch.einsum("loi,bilmc->bolmc", weight, coeffs[:, : self.in_channels])
        if added is not None:
            mixed = mixed + coeffs[:, self.in_channels :]
        return harmonics.synthesize(mixed).to(x.dtype)

    def extra_repr(self) -> str:
        return f"{self.in_channels}, {self.out_channels}"
