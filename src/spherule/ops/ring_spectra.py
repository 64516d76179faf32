"""Ring spectra where rings differ: one FFT for each run of rings, on the field as it is, and all
rings folded at once by the native library. The struct mirrors csrc/ring_spectra.h.
"""

from ctypes import Structure, c_int32, c_int64, c_void_p
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from spherule import native
from spherule.grids import Grid
from spherule.ops.linear_map import LinearMap
from spherule.ops.tables import table


def preferred(grid: Grid, x: Tensor) -> bool:
    """Whether the library is to do it. Where all rings are alike there is little to do."""
    return (
        not grid.regular
        and x.device.type == "cpu"
        and x.numel() > 0
        and not torch.compiler.is_compiling()
        and native.load()[0] is not None
    )


def to_points(orders: Tensor, grid: Grid) -> Tensor:
    """The real sum over all orders of F_m exp(i m phi), F_-m the conjugate: (..., points)."""
    return _Transform.apply(orders, grid, orders.shape[-1], True, False)


def to_orders(flat: Tensor, grid: Grid, mmax: int) -> Tensor:
    """Sums over each ring's points of u exp(-i m phi): (..., ring, order)."""
    return _Transform.apply(flat, grid, mmax + 1, False, True)


class _Transform(LinearMap):
    """`both`: order m > 0 stands for -m too."""

    @staticmethod
    def forward(x: Tensor, grid: Grid, orders: int, both: bool, transposed: bool) -> Tensor:
        x = x.resolve_conj().resolve_neg().contiguous()
        batch = x.shape[:-1] if transposed else x.shape[:-2]
        x = x.reshape(batch.numel(), *x.shape[len(batch) :])
        y = (_orders if transposed else _points)(x, grid, orders, both)
        return y.reshape(*batch, *y.shape[1:])


def _points(orders: Tensor, grid: Grid, _: int, both: bool) -> Tensor:
    layout, fields = _layout(grid), orders.shape[0]
    half = orders.new_empty(fields, layout.width)
    places = half.data_ptr() + half.itemsize * layout.place
    strides = np.full(grid.nrings, layout.width)
    _call("fold", orders, grid, places, strides, both)
    u = orders.real.new_empty(fields, grid.size)
    for run in layout.runs:
        size = run.nphi // 2 + 1
        spectra = half.as_strided((fields, run.rings, size), (layout.width, size, 1), run.place)
        values = torch.fft.irfft(spectra, run.nphi, norm="forward")
        u.as_strided(values.shape, (grid.size, run.step, 1), run.start).copy_(values)
    return u


def _orders(u: Tensor, grid: Grid, orders: int, both: bool) -> Tensor:
    layout, fields = _layout(grid), u.shape[0]
    spectra = []
    for run in layout.runs:
        shape, strides = (fields, run.rings, run.nphi), (grid.size, run.step, 1)
        start = u.storage_offset() + run.start
        spectra.append(torch.fft.rfft(u.as_strided(shape, strides, start)).contiguous())
    starts = np.array([half.data_ptr() for half in spectra])[layout.run]
    places = starts + spectra[0].itemsize * layout.within
    strides_of = np.array([half.stride(0) for half in spectra])[layout.run]
    y = spectra[0].new_empty(fields, grid.nrings, orders)
    _call("unfold", y, grid, places, strides_of, both)
    return y


def _call(
    name: str, orders: Tensor, grid: Grid, places: NDArray, strides: NDArray, both: bool
) -> None:
    phases = phases_of(grid, orders.shape[-1] - 1, orders.dtype, orders.device)
    arrays = [np.ascontiguousarray(a, dtype=np.int64) for a in (grid.nphi, places, strides)]
    struct = Rings(
        *orders.shape,
        *(a.ctypes.data for a in arrays),
        None if phases is None else phases.data_ptr(),
        both,
        native.DTYPES[orders.real.dtype],
        torch.get_num_threads(),
    )
    native.call("spherule_" + name, struct, orders.data_ptr())


class Rings(Structure):
    _fields_ = (
        *((name, c_int64) for name in ("fields", "rings", "orders")),
        *((name, c_void_p) for name in ("nphi", "half", "stride", "phases")),
        *((name, c_int32) for name in ("both", "dtype", "threads")),
    )


class _Run(NamedTuple):
    """Rings of one length, equally far from each other in memory: an FFT takes them as they are."""

    nphi: int
    rings: int
    start: int
    """Of the first one's points."""
    step: int
    """To the next one's."""
    place: int
    """Of their half spectra, one after the other, among those of all runs."""


class _Layout(NamedTuple):
    runs: list[_Run]
    width: int
    """Of all half spectra."""
    run: NDArray[np.int64]
    """Of each ring, its run, and where its half spectrum is, among those of its run and of all."""
    within: NDArray[np.int64]
    place: NDArray[np.int64]


@table(maxsize=64)
def _layout(grid: Grid) -> _Layout:
    runs: list[_Run] = []
    run, within, place = (np.zeros(grid.nrings, dtype=np.int64) for _ in range(3))
    width = 0
    for nphi in np.unique(grid.nphi):
        rings, size = np.flatnonzero(grid.nphi == nphi), int(nphi) // 2 + 1
        while rings.size:
            start = grid.ringstart[rings]
            even = np.diff(start) == start[min(1, start.size - 1)] - start[0]
            count = rings.size if even.all() else 1 + int(np.argmin(even))
            step = int(start[min(1, count - 1)] - start[0])
            now, rings = rings[:count], rings[count:]
            run[now], within[now] = len(runs), size * np.arange(count)
            place[now] = width + within[now]
            runs.append(_Run(int(nphi), count, int(start[0]), step, width))
            width += count * size
    return _Layout(runs, width, run, within, place)


@table(maxsize=64)
def phases_of(grid: Grid, mmax: int, dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """exp(i m phi0), (ring, order); None where all rings start at the meridian."""
    if not grid.phi0.any():
        return None
    return torch.tensor(
        np.exp(1j * np.outer(grid.phi0, np.arange(mmax + 1))), dtype=dtype, device=device
    )
