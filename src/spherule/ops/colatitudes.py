"""Spherical harmonic transforms along the colatitudes: ring spectra (..., ring, order) to
coefficients (..., degree, order) and back, for all orders or some.

By one matrix product an order, batched, with tables that are kept; or, where they would be large,
by Legendre functions that are made on the fly (`legendre`).
"""

import numpy as np
import torch
from torch import Tensor

from spherule.geometry.transforms import Basis, Continuation, continuation, continued_analysis
from spherule.grids import Grid
from spherule.ops import legendre
from spherule.ops.legendre import Rings
from spherule.ops.linear_map import LinearMap
from spherule.ops.tables import table

Orders = tuple[int, ...]
"""Which orders m the columns are; by default all of them, from 0 on."""
TOGETHER = 32
"""Orders in one product: fewer are slower, with more there are more zeros among their functions."""


def to_coeffs(
    basis: Basis, spectra: Tensor, grid: Grid, lmax: int | None = None, orders: Orders | None = None
) -> Tensor:
    """Analysis, by the grid's weights, or continued over the poles where its steps are equal."""
    lmax = spectra.shape[-1] - 1 if lmax is None else lmax
    dtype, device = spectra.real.dtype, spectra.device
    if not legendre.preferred(grid, lmax, dtype, device):
        table = _analysis(basis, grid, lmax, dtype, device, orders)
        return _Contraction.apply(spectra, table, orders, True, False)
    step, every = _continued(grid, lmax, dtype), _every(orders, lmax)
    if step is None:
        weighted = spectra * _weights(grid, dtype, device)[:, None]
        return _made_coeffs(basis, weighted, legendre.rings_of(grid), every, lmax)
    nodes = step.apply(spectra, every, basis.spin) * step.weights
    return _made_coeffs(basis, nodes, step.rings, every, lmax)


def to_coeffs_adjoint(
    basis: Basis, coeffs: Tensor, grid: Grid, orders: Orders | None = None
) -> Tensor:
    """The transpose of `to_coeffs`."""
    lmax, dtype, device = coeffs.shape[-2] - 1, coeffs.real.dtype, coeffs.device
    if not legendre.preferred(grid, lmax, dtype, device):
        table = _analysis(basis, grid, lmax, dtype, device, orders)
        return _Contraction.apply(coeffs, table, orders, True, True)
    step, every = _continued(grid, lmax, dtype), _every(orders, lmax)
    if step is None:
        spectra = _made_rings(basis, coeffs, legendre.rings_of(grid), every)
        return spectra * _weights(grid, dtype, device)[:, None]
    nodes = _made_rings(basis, coeffs, step.rings, every) * step.weights
    return step.apply(nodes, every, basis.spin, transposed=True)


def to_rings(basis: Basis, coeffs: Tensor, grid: Grid, orders: Orders | None = None) -> Tensor:
    """Synthesis."""
    lmax, dtype, device = coeffs.shape[-2] - 1, coeffs.real.dtype, coeffs.device
    if not legendre.preferred(grid, lmax, dtype, device):
        table = _synthesis(basis, grid, lmax, dtype, device, orders)
        return _Contraction.apply(coeffs, table, orders, False, False)
    return _made_rings(basis, coeffs, legendre.rings_of(grid), _every(orders, lmax))


def to_rings_adjoint(
    basis: Basis, spectra: Tensor, grid: Grid, lmax: int, orders: Orders | None = None
) -> Tensor:
    """The transpose of `to_rings`."""
    dtype, device = spectra.real.dtype, spectra.device
    if not legendre.preferred(grid, lmax, dtype, device):
        table = _synthesis(basis, grid, lmax, dtype, device, orders)
        return _Contraction.apply(spectra, table, orders, False, True)
    return _made_coeffs(basis, spectra, legendre.rings_of(grid), _every(orders, lmax), lmax)


def _every(orders: Orders | None, lmax: int) -> Orders:
    return tuple(range(lmax + 1)) if orders is None else orders


def _made_rings(basis: Basis, coeffs: Tensor, rings: Rings, orders: Orders) -> Tensor:
    """The functions of a basis are sums of P_lm of the orders above and below. What `roll` brings
    around has the factor 0.
    """
    if basis.neighbors is None:
        return legendre.to_rings(coeffs, rings, orders)
    above, below, down = _neighbors(basis, coeffs)
    up, low = ((coeffs * factor).roll(-down, -2) for factor in (above, below))
    both = torch.stack([up.roll(1, -1), low.roll(-1, -1)])
    up, low = legendre.to_rings(both, rings, orders)
    return up.roll(-1, -1) + low.roll(1, -1)


def _made_coeffs(basis: Basis, spectra: Tensor, rings: Rings, orders: Orders, lmax: int) -> Tensor:
    if basis.neighbors is None:
        return legendre.to_coeffs(spectra, rings, orders, lmax)
    both = torch.stack([spectra.roll(1, -1), spectra.roll(-1, -1)])
    up, low = legendre.to_coeffs(both, rings, orders, lmax)
    above, below, down = _neighbors(basis, up)
    return above * up.roll(-1, -1).roll(down, -2) + below * low.roll(1, -1).roll(down, -2)


def _neighbors(basis: Basis, coeffs: Tensor) -> tuple[Tensor, Tensor, int]:
    """Factors (degree, order), and how far down in degree the neighbors are."""
    assert basis.neighbors is not None
    above, below, down = basis.neighbors(coeffs.shape[-2] - 1)
    up, low = (torch.from_numpy(f.T.copy()).to(coeffs.real.dtype) for f in (above, below))
    return up, low, down


class _Continued:
    """A continuation as tensors."""

    def __init__(self, step: Continuation, cell: float, dtype: torch.dtype) -> None:
        self.step, self.dtype = step, dtype
        self.rings = Rings.of(step.theta)
        self.weights = torch.from_numpy(cell * step.weights).to(dtype)[:, None]

    def apply(
        self, spectra: Tensor, orders: Orders, spin: int, *, transposed: bool = False
    ) -> Tensor:
        """Each order by its matrix: (..., ring, order) to (..., node, order), or back."""
        alike: dict[int, list[int]] = {}
        for column, m in enumerate(orders):
            alike.setdefault(id(self.step.matrix(m, spin)), []).append(column)
        parts = []
        for columns in alike.values():
            matrix = torch.from_numpy(self.step.matrix(orders[columns[0]], spin)).to(self.dtype)
            pairs = torch.view_as_real(spectra[..., columns].resolve_conj()).flatten(-2)
            done = (matrix.mT if transposed else matrix) @ pairs
            parts.append(torch.view_as_complex(done.unflatten(-1, (-1, 2))))
        back = np.argsort(np.concatenate([*alike.values()]))
        return torch.cat(parts, dim=-1)[..., torch.from_numpy(back)]


@table(maxsize=8)
def _continued(grid: Grid, lmax: int, dtype: torch.dtype) -> _Continued | None:
    step = continuation(grid, lmax)
    return None if step is None else _Continued(step, _cell(grid), dtype)


class _Contraction(LinearMap):
    """sum over j of x[..., j, m] table[m, j, i], where either i or j are degrees, as real products
    batched over some orders each: of these, degrees below the lowest order have no part in them.

    Orders go to the front and back again as transposes of matrices of real numbers: torch copies
    these in tiles, other permutations number by number.
    """

    @staticmethod
    def forward(
        x: Tensor, table: Tensor, orders: Orders | None, to_degrees: bool, transposed: bool
    ) -> Tensor:
        table = table.mT if transposed else table
        *batch, rows, count = x.shape
        size, out = x.shape[:-2].numel(), table.shape[-1]
        pairs = torch.view_as_real(x.resolve_conj().reshape(size * rows, count)).flatten(-2)
        columns = pairs.mT.contiguous().reshape(count, 2 * size, rows)
        product = columns.new_empty(count, 2 * size, out)
        for start in range(0, count, TOGETHER):
            some = slice(start, start + TOGETHER)
            lowest = start if orders is None else min(orders[some])
            if to_degrees != transposed:
                product[some, :, :lowest] = 0.0
                there = product[some, :, lowest:]
                torch.bmm(columns[some], table[some, :, lowest:], out=there)
            else:
                torch.bmm(columns[some, :, lowest:], table[some, lowest:], out=product[some])
        result = product.reshape(2 * count, size * out).mT.contiguous()
        return torch.view_as_complex(result.reshape(*batch, out, count, 2))


@table(maxsize=24)
def _synthesis(
    basis: Basis,
    grid: Grid,
    lmax: int,
    dtype: torch.dtype,
    device: torch.device,
    orders: Orders | None,
) -> Tensor:
    values = basis.values(lmax, grid.theta)
    return torch.from_numpy(values if orders is None else values[[*orders]]).to(device, dtype)


@table(maxsize=24)
def _analysis(
    basis: Basis,
    grid: Grid,
    lmax: int,
    dtype: torch.dtype,
    device: torch.device,
    orders: Orders | None,
) -> Tensor:
    """The transposed synthesis with the grid's weights, or the continued analysis; (order, ring,
    degree).
    """
    table = continued_analysis(basis, grid, lmax)
    if table is None:
        synthesis = _synthesis(basis, grid, lmax, dtype, device, orders)
        return (synthesis * _weights(grid, dtype, device)).mT.contiguous()
    table = (table if orders is None else table[[*orders]]) * _cell(grid)
    return torch.from_numpy(table).to(device, dtype).mT.contiguous()


@table(maxsize=64)
def _weights(grid: Grid, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(grid.ring_weights, dtype=dtype, device=device)


def _cell(grid: Grid) -> float:
    """Between neighboring points of a ring."""
    return 2 * np.pi / grid.shape[1]
