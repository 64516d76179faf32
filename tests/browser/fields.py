"""Fields that move, for pages to show."""

import numpy as np
import torch

from spherule import Grid, ops


def waves(grid: Grid, frames: int, *, lmax: int = 20, seed: int = 0) -> np.ndarray:
    """(frames, *grid.shape): a random field whose degrees drift apart."""
    generator = torch.Generator().manual_seed(seed)
    coeffs = torch.randn(lmax + 1, lmax + 1, dtype=torch.complex128, generator=generator).tril()
    coeffs[:, 0] = coeffs[:, 0].real.to(coeffs.dtype)
    l, m = torch.arange(lmax + 1)[:, None], torch.arange(lmax + 1)
    turn = torch.arange(frames)[:, None, None] * m * (0.03 + 0.002 * l)
    return ops.isht(coeffs * (1 + l / 6.0) ** -2 * torch.exp(-1j * turn), grid).numpy()
