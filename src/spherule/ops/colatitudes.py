"""Spherical harmonic transforms along the colatitudes: ring spectra (..., ring, order) to
coefficients (..., degree, order) and back, for all orders or some.

By one matrix product an order, batched, with tables that are kept; or, where these or the fields
are many numbers, by Legendre functions that are made on the fly (`legendre`).
"""

import numpy as np
import torch
from torch import Tensor

from spherule.geometry.transforms import Basis, Continuation, continuation, continued_analysis
from spherule.grids import Grid
from spherule.ops import legendre
from spherule.ops.autocast import no_autocast
from spherule.ops.legendre import Rings
from spherule.ops.tables import table

Orders = tuple[int, ...]
"""Which orders m the columns are; by default all of them, from 0 on."""


def to_coeffs(
    basis: Basis, spectra: Tensor, grid: Grid, lmax: int | None = None, orders: Orders | None = None
) -> Tensor:
    """Analysis, by the grid's weights, or continued over the poles where its steps are equal."""
    lmax = spectra.shape[-1] - 1 if lmax is None else lmax
    dtype, device = spectra.real.dtype, spectra.device
    if not legendre.preferred(grid, lmax, spectra):
        return _contract(_analysis(basis, grid, lmax, dtype, device, orders), spectra)
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
    if not legendre.preferred(grid, lmax, coeffs):
        return _contract(_analysis(basis, grid, lmax, dtype, device, orders).mT, coeffs)
    step, every = _continued(grid, lmax, dtype), _every(orders, lmax)
    if step is None:
        spectra = _made_rings(basis, coeffs, legendre.rings_of(grid), every)
        return spectra * _weights(grid, dtype, device)[:, None]
    nodes = _made_rings(basis, coeffs, step.rings, every) * step.weights
    return step.apply(nodes, every, basis.spin, transposed=True)


def to_rings(basis: Basis, coeffs: Tensor, grid: Grid, orders: Orders | None = None) -> Tensor:
    """Synthesis."""
    lmax, dtype, device = coeffs.shape[-2] - 1, coeffs.real.dtype, coeffs.device
    if not legendre.preferred(grid, lmax, coeffs):
        return _contract(_synthesis(basis, grid, lmax, dtype, device, orders).mT, coeffs)
    return _made_rings(basis, coeffs, legendre.rings_of(grid), _every(orders, lmax))


def to_rings_adjoint(
    basis: Basis, spectra: Tensor, grid: Grid, lmax: int, orders: Orders | None = None
) -> Tensor:
    """The transpose of `to_rings`."""
    dtype, device = spectra.real.dtype, spectra.device
    if not legendre.preferred(grid, lmax, spectra):
        return _contract(_synthesis(basis, grid, lmax, dtype, device, orders), spectra)
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
        if not orders:  # a rank may have none
            nodes, rings = self.step.matrix(0, spin).shape
            return spectra.new_zeros(*spectra.shape[:-2], rings if transposed else nodes, 0)
        alike: dict[int, list[int]] = {}
        for column, m in enumerate(orders):
            alike.setdefault(id(self.step.matrix(m, spin)), []).append(column)
        parts = []
        for columns in alike.values():
            matrix = torch.from_numpy(self.step.matrix(orders[columns[0]], spin)).to(self.dtype)
            pairs = torch.view_as_real(spectra[..., columns].resolve_conj()).flatten(-2)
            with no_autocast(matrix):
                done = (matrix.mT if transposed else matrix) @ pairs
            parts.append(torch.view_as_complex(done.unflatten(-1, (-1, 2))))
        back = np.argsort(np.concatenate([*alike.values()]))
        return torch.cat(parts, dim=-1)[..., torch.from_numpy(back)]


@table(maxsize=8)
def _continued(grid: Grid, lmax: int, dtype: torch.dtype) -> _Continued | None:
    step = continuation(grid, lmax)
    return None if step is None else _Continued(step, _cell(grid), dtype)


def _contract(table: Tensor, x: Tensor) -> Tensor:
    """sum over j of table[m, i, j] x[..., j, m], as one real batched product over the orders.

    Orders go to the front and back again as transposes of matrices of real numbers: torch copies
    these in tiles, other permutations number by number.
    """
    *batch, rows, orders = x.shape
    size, out = x.shape[:-2].numel(), table.shape[-2]
    pairs = torch.view_as_real(x.resolve_conj().reshape(size * rows, orders)).flatten(-2)
    columns = pairs.mT.contiguous().reshape(orders, 2 * size, rows)
    with no_autocast(table):
        product = torch.bmm(columns, table.mT).reshape(2 * orders, size * out)
    result = product.mT.contiguous().reshape(*batch, out, orders, 2)
    return torch.view_as_complex(result)


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
    """The transposed synthesis with the grid's weights, or the continued analysis; laid out with
    degrees last, as the product of the analysis reads it.
    """
    values = continued_analysis(basis, grid, lmax)
    if values is None:
        table = _synthesis(basis, grid, lmax, dtype, device, orders)
        table = table * _weights(grid, dtype, device)
    else:
        values = (values if orders is None else values[[*orders]]) * _cell(grid)
        table = torch.from_numpy(values).to(device, dtype)
    return table.mT.contiguous().mT


@table(maxsize=64)
def _weights(grid: Grid, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.tensor(grid.ring_weights, dtype=dtype, device=device)


def _cell(grid: Grid) -> float:
    """Between neighboring points of a ring."""
    return 2 * np.pi / grid.shape[1]
