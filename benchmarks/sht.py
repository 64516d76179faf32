"""Spherical harmonic transforms beside torch-harmonics."""

import time

import torch
import torch_harmonics as th

from spherule import Grid, ops
from timing import compare, set_up


def main() -> None:
    set_up()
    print("spherical harmonic transform, 12 fields, 128x256 Gauss, lmax 127, float32")
    grid, lmax = Grid.gauss(128, 256), 127
    u = torch.randn(12, *grid.shape)
    options = {"lmax": lmax + 1, "mmax": lmax + 1, "grid": "legendre-gauss"}
    forward = th.RealSHT(*grid.shape, **options).float()
    inverse = th.InverseRealSHT(*grid.shape, **options).float()
    coeffs = forward(u)
    difference = (coeffs - ops.sht(u, grid, lmax)).abs().max() / coeffs.abs().max()
    assert difference < 1e-5, f"the peer disagrees by {difference}"
    compare("analysis", lambda: forward(u), lambda: ops.sht(u, grid, lmax), 60)
    compare("synthesis", lambda: inverse(coeffs), lambda: ops.isht(coeffs, grid), 60)
    v, c = u.clone().requires_grad_(), coeffs.detach().clone().requires_grad_()
    compare(
        "analysis, forward + backward",
        lambda: forward(v).abs().sum().backward(),
        lambda: ops.sht(v, grid, lmax).abs().sum().backward(),
        40,
    )
    compare(
        "synthesis, forward + backward",
        lambda: inverse(c).sum().backward(),
        lambda: ops.isht(c, grid).sum().backward(),
        40,
    )
    fine = Grid.clenshaw_curtis(721, 1440)
    start = time.perf_counter()
    ops.sht(torch.zeros(fine.shape), fine, 240)
    print(f"building the analysis of {fine.name} to lmax 240: {time.perf_counter() - start:.2f} s")
    start = time.perf_counter()
    ops.isht(torch.zeros(241, 241, dtype=torch.complex128), fine)
    print(f"building its synthesis in float64: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
