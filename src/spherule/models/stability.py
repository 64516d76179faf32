"""Linear maps that do not grow when they are applied again and again.

The map that best predicts a stationary process from itself has no eigenvalue beyond the unit
circle. A fit to so many samples has some, by a percent, and a hundred leads make e of it. They are
moved back, with the least change of the weights to first order.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from spherule.nn.spectral import order_pairs

SLACK = 1e-4
"""How far beyond the circle an eigenvalue may stay: 4 % in 360 leads."""
_ROUNDS = 60


def steady_linear(weight: Tensor) -> Tensor:
    """Of weights of `nn.SpectralMix`, those of a map that does not grow."""
    out = weight.shape[1]
    steady = weight.clone()
    for matrix in steady:
        states = matrix[:, :out].to(torch.complex128)
        matrix[:, :out] = steady_matrix(states, torch.ones_like(states.real)).real
    return steady


def steady_zonal(weight: Tensor) -> Tensor:
    """Of weights of `nn.ZonalMix`, those of a map that does not grow."""
    pairs, out, _, taps, _ = weight.shape
    reach, steady = taps // 2, torch.view_as_complex(weight.clone())
    orders = order_pairs(int((2 * pairs) ** 0.5) - 1)[1]
    for order in range(int(orders.max()) + 1):
        own = orders == order  # degree by degree
        near = steady[own, :, :out].permute(0, 3, 1, 2)
        row = torch.arange(len(near))[:, None]
        column = row + torch.arange(taps)  # from `reach` before the first degree
        shape = (len(near), len(near) + 2 * reach, out, out)
        states, free = near.new_zeros(shape), near.real.new_zeros(shape)
        states[row, column], free[row, column] = near, 1.0
        inner = slice(reach, reach + len(near))
        square = (
            u[:, inner].transpose(1, 2).reshape(2 * (len(near) * out,)) for u in (states, free)
        )
        found = steady_matrix(*square).reshape(len(near), out, len(near), out).transpose(1, 2)
        found = F.pad(found, (0, 0, 0, 0, reach, reach))[row, column]
        steady[own, :, :out] = found.permute(0, 2, 3, 1)
    return torch.view_as_real(steady)


def steady_matrix(matrix: Tensor, free: Tensor) -> Tensor:
    """A complex matrix with its eigenvalues brought into the unit circle by a small change of the
    entries that are free, 1, and not of those that are not, 0.
    """
    for _ in range(_ROUNDS):
        values, right = torch.linalg.eig(matrix)
        size = values.abs()
        if size.max() <= 1 + SLACK:
            return matrix
        inverse = torch.linalg.inv_ex(right)[0]
        if not inverse.isfinite().all():  # vectors that are one
            break
        outside = size > 1
        left, right = inverse[outside], right.mT[outside]
        # A change moves a value by left . change . right: most along their product's conjugate.
        steepest = torch.einsum("ki,kj->kij", left, right).conj() * free
        wanted = values[outside] * (1 / size[outside] - 1)
        share = wanted / steepest.abs().square().sum((1, 2))
        matrix = matrix + torch.einsum("k,kij->ij", share, steepest)
    return matrix / torch.linalg.eigvals(matrix).abs().max().clamp(min=1)
