"""Spherical harmonic transforms beside torch-harmonics, and large ones beside ducc0."""

import time

import ducc0
import numpy as np
import torch
import torch_harmonics as th

from spherule import Grid, ops
from timing import THREADS, compare, set_up


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
    large()
    fine = Grid.clenshaw_curtis(721, 1440)
    for turn in ("first", "second"):
        start = time.perf_counter()
        ops.sht(torch.zeros(fine.shape), fine, 240)
        print(f"analysis of {fine.name} to lmax 240, {turn}: {time.perf_counter() - start:.2f} s")


def large() -> None:
    """One field, float64."""
    grid, lmax = Grid.healpix(256), 512
    print(f"{grid.name}, lmax {lmax}, float64; the peer is ducc0")
    coeffs = torch.randn(lmax + 1, lmax + 1, dtype=torch.complex128).tril()
    coeffs[:, 0] = coeffs[:, 0].real.to(coeffs.dtype)
    packed = np.concatenate([coeffs[m:, m].numpy() for m in range(lmax + 1)])[None]
    geometry = {
        "theta": grid.theta,
        "nphi": grid.nphi.astype(np.uint64),
        "phi0": grid.phi0,
        "ringstart": grid.ringstart.astype(np.uint64),
        "lmax": lmax,
        "spin": 0,
        "nthreads": THREADS,
    }
    field = ops.isht(coeffs, grid)
    theirs = ducc0.sht.synthesis(alm=packed, **geometry)[0]
    difference = np.abs(field.numpy() - theirs).max() / np.abs(theirs).max()
    assert difference < 1e-10, f"the peer disagrees by {difference}"
    compare(
        "H256 synthesis",
        lambda: ducc0.sht.synthesis(alm=packed, **geometry),
        lambda: ops.isht(coeffs, grid),
        9,
    )
    compare(
        "H256 analysis",
        lambda: ducc0.sht.adjoint_synthesis(map=field.numpy()[None], **geometry),
        lambda: ops.sht(field, grid, lmax),
        9,
    )


if __name__ == "__main__":
    main()
