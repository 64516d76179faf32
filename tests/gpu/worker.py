"""What happens in the processes of `conftest.py`: kernels against the reference."""

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from spherule import Grid
from spherule.geometry.filters import Stencil
from spherule.geometry.neighborhood import Neighborhood

DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def interpret() -> None:
    """Prepares a process for Triton's interpreter."""
    os.environ["TRITON_INTERPRET"] = "1"
    compile_only()
    # The interpreter of Triton 3.2 makes scalars of arrays with one element.
    warnings.filterwarnings("ignore", "Conversion of an array with ndim > 0", DeprecationWarning)
    from triton.runtime import interpreter

    # Checks every integer operation, at a third of the time; our tables are 32 bits by assertion.
    interpreter.InterpreterOptions.sanitize_overflow = False
    _teach_bfloat16(interpreter)


def compile_only() -> None:
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    poison()


def poison() -> None:
    """Memory that a kernel forgets to fill is NaN; torch's own may be as they like."""
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True, warn_only=True)


def _teach_bfloat16(interpreter) -> None:
    """The interpreter keeps bfloat16 as integers, multiplies those, and truncates instead of
    rounding.
    """
    import triton.language as tl

    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    cast = builder.cast_impl

    def value(x) -> np.ndarray:
        if x.dtype.scalar != tl.bfloat16:
            return x.data
        return (x.data.astype(np.uint32) << 16).view(np.float32)

    def create_dot(self, a, b, d, input_precision, max_num_imprecise_acc):
        product = np.matmul(value(a), value(b), dtype=d.data.dtype)
        return handle(product + d.data, d.dtype.scalar)

    def cast_impl(self, source, target):
        if source.dtype.scalar != tl.float32 or target.scalar != tl.bfloat16:
            return cast(self, source, target)
        bits = torch.from_numpy(np.ascontiguousarray(source.data)).bfloat16().view(torch.uint16)
        return handle(bits.numpy(), tl.bfloat16)

    builder.create_dot, builder.cast_impl = create_dot, cast_impl


@dataclass(frozen=True)
class Attention:
    """One comparison of the kernels with the reference."""

    query: str
    """A grid; or, without key, windows on a plane, as `9x20 5x7`."""
    key: str = ""
    cutoff: float = 0.0
    edge: float = 0.0
    dim: int = 16
    value_dim: int = 16
    dtype: str = "fp32"
    mask: str = ""
    """Nothing, `points` or `batches`."""
    heads: int = 1
    batch: int = 1
    weighted: bool = True
    channels_first: bool = False
    tile: tuple[int, int] = ()
    most: float = 1.5
    """Windows of a program over the mean, above which it is split."""

    @property
    def neighborhood(self) -> Neighborhood:
        if not self.key:
            shape, size = (tuple(map(int, w.split("x"))) for w in self.query.split())
            return Neighborhood.window(shape, size)
        grids = Grid.from_name(self.query), Grid.from_name(self.key)
        return Neighborhood.disk(*grids, self.cutoff, edge_width=self.edge, weighted=self.weighted)

    def inputs(self) -> tuple[list[Tensor], Tensor | None]:
        """q, k, v, the gradient of the output, and the mask."""
        rng, nb = torch.Generator().manual_seed(0), self.neighborhood
        sizes = [(nb.queries, self.dim), (nb.keys, self.dim), (nb.keys, self.value_dim)]
        tensors = []
        for points, dim in [*sizes, (nb.queries, self.value_dim)]:
            x = torch.randn(self.batch, self.heads, dim, points, generator=rng)
            x = x.to(DTYPES[self.dtype]).mT
            tensors.append(x if self.channels_first else x.contiguous())
        shape = {"": None, "points": (nb.keys,), "batches": (self.batch, nb.keys)}[self.mask]
        return tensors, None if shape is None else torch.rand(shape, generator=rng) > 0.4


def attention(case: Attention, kernels: Callable | None = None) -> dict[str, tuple[float, float]]:
    """Error of each result against float64, and what it may be."""
    _prefer(case.tile, case.most)
    inputs, mask = case.inputs()
    nb = case.neighborhood
    exact = _by_reference([x.double() for x in inputs], nb, mask)
    plain = _by_reference(inputs, nb, mask)
    ours = (kernels or _by_kernels)(inputs, nb, mask)
    if case.most < 1 and kernels is None:
        assert _tables(nb).parts > 0
    errors = {}
    for name, value in exact.items():
        size = value.abs().max().item()
        error, allowed = ((x[name].double() - value).abs().max().item() for x in (ours, plain))
        assert ours[name].dtype == plain[name].dtype
        limit = 1.5 * allowed + 4 * torch.finfo(ours[name].dtype).eps * max(size, 1e-3)
        if case.edge:
            # Distances of 32 bits, over the width of the edge.
            limit += 1e-6 * nb.cutoff / nb.edge_width * size
        errors[name] = (error, limit * (2 if name.startswith("d") else 1))
    return errors


def _prefer(tile: tuple[int, int], most: float) -> None:
    from spherule.geometry import tiles
    from spherule.ops.neighborhood_attention import gpu

    gpu.tables.cache_clear()
    gpu._SIZES = (tile,) if tile else ((16, 32), (32, 32), (64, 32))
    tiles._MOST, tiles._LEAST = most, 4 if most == 1.5 else 1


def _tables(nb: Neighborhood):
    from spherule.ops.neighborhood_attention import gpu

    return gpu.tables(nb, torch.device("cpu"), 16)


def _weights(lse: Tensor) -> Tensor:
    return torch.linspace(-1, 1, lse.numel(), dtype=lse.dtype).reshape(lse.shape).to(lse.device)


def _named(values) -> dict[str, Tensor]:
    return dict(zip(("out", "lse", "dq", "dk", "dv"), values, strict=True))


def _by_reference(inputs: list[Tensor], nb: Neighborhood, mask: Tensor | None) -> dict:
    from spherule.ops.neighborhood_attention import reference

    *qkv, grad = inputs
    leaves = [x.detach().requires_grad_() for x in qkv]
    out, lse = reference.neighborhood_attention(*leaves, nb, 0.4, mask)
    lse = torch.where(lse > -torch.inf, lse, 0)
    total = (out * grad).double().sum() + (lse * _weights(lse)).double().sum()
    return _named((out, lse, *torch.autograd.grad(total, leaves)))


def _by_kernels(inputs: list[Tensor], nb: Neighborhood, mask: Tensor | None) -> dict:
    from spherule.ops.neighborhood_attention import _layout, _outputs, gpu

    q, k, v, grad = inputs
    out, lse = _outputs(q, v)
    gpu.forward(q, k, v, nb, 0.4, mask, out, lse)
    grads = tuple(_layout(x, x) for x in (q, k, v))
    gpu.backward(q, k, v, nb, 0.4, mask, out, lse, grad, _weights(lse), grads)
    return _named((out, torch.where(lse > -torch.inf, lse, 0), *grads))


def masked_nans(case: Attention) -> bool:
    """Whether NaN in masked keys and values leaves all results alone, bit by bit."""
    (q, k, v, grad), mask = case.inputs()
    clean = _by_kernels([q, k, v, grad], case.neighborhood, mask)
    where = ~mask.reshape(-1, 1, mask.shape[-1], 1)
    dirty = [x.masked_fill(where, torch.nan) for x in (k, v)]
    found = _by_kernels([q, *dirty, grad], case.neighborhood, mask)
    return all(torch.equal(value, found[name]) for name, value in clean.items())


def operator(case: Attention) -> None:
    """The registered operator, as it would be on a GPU: opcheck, and gradients through autograd."""
    from spherule.ops import neighborhood_attention as op
    from spherule.ops.neighborhood_attention import gpu

    (q, k, v, grad), mask = case.inputs()
    nb, leaves = case.neighborhood, [x.requires_grad_() for x in (q, k, v)]
    expected = _by_reference([q, k, v, grad], nb, mask)
    module = sys.modules[op.__module__]
    with mock.patch.object(module, "_kernels", return_value=gpu):
        torch.library.opcheck(module.attend.overload, (*leaves, mask, nb.name, 0.4))
        out, lse = op(*leaves, nb, scale=0.4, key_mask=mask, return_lse=True)
        total = (out * grad).double().sum() + (lse * _weights(lse)).double().sum()
        found = _named((out, lse, *torch.autograd.grad(total, leaves)))
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-5)
    assert found["dq"].stride() == q.stride()


@dataclass(frozen=True)
class Convolution:
    source: str
    target: str
    groups: int
    out: int
    group_channels: int
    """Input channels of a group."""
    dtype: str = "fp32"
    batch: int = 1


def convolution(case: Convolution, device: str = "") -> dict[str, tuple[float, float]]:
    """Error of each result against float64, and what it may be."""
    from spherule.ops.disco import disco, reference

    stencil = Stencil.hats(Grid.from_name(case.source), Grid.from_name(case.target))
    rng, dtype = torch.Generator().manual_seed(0), DTYPES[case.dtype]
    shape = (case.batch, case.groups * case.group_channels, *stencil.in_shape)
    x = torch.randn(shape, generator=rng).to(dtype).requires_grad_()
    weight = torch.randn(case.out, case.group_channels, stencil.basis, generator=rng).to(dtype)
    weight.requires_grad_()
    dy = torch.randn(case.batch, case.out, *stencil.out_shape, generator=rng).to(dtype)
    by_group = weight.double().unflatten(0, (case.groups, -1))
    exact, _ = reference.convolve(x.flatten(2).double(), by_group, stencil, False)
    exact = exact.reshape(dy.shape)
    exact = exact, *torch.autograd.grad(exact, (x, weight), dy.double())
    module = sys.modules[disco.__module__]
    if device:
        y = disco(x.to(device), weight.to(device), stencil)
        ours = y.cpu(), *torch.autograd.grad(y, (x, weight), dy.to(device))
    else:
        from spherule.ops.disco import gpu

        with mock.patch.object(module, "_kernels", return_value=gpu):
            y = disco(x, weight, stencil)
            ours = y, *torch.autograd.grad(y, (x, weight), dy)
    errors = {}
    for name, a, b in zip(("y", "dx", "dweight"), ours, exact, strict=True):
        assert a.dtype == dtype
        assert a.shape == b.shape
        limit = 4 * torch.finfo(dtype).eps * b.abs().max().item()
        errors[name] = ((a.double() - b).abs().max().item(), limit)
    return errors


def convolution_operators(groups: int) -> None:
    """opcheck of both operators of a convolution, as they would be on a GPU."""
    from spherule.ops.disco import disco, gpu

    stencil = Stencil.hats(Grid.gauss(3, 6), Grid.gauss(2, 5), radii=1, angles=1)
    channels, module, nothing = 2 // groups, sys.modules[disco.__module__], torch.empty(0)
    x = torch.randn(1, 2, stencil.in_grid.size, requires_grad=True)
    dy = torch.randn(1, 2, stencil.out_grid.size, requires_grad=True)
    weight = torch.randn(groups, channels, channels, stencil.basis, requires_grad=True)
    with mock.patch.object(module, "_kernels", return_value=gpu):
        torch.library.opcheck(module._disco.overload, (x, weight, stencil.name, False))
        arguments = (x, dy, nothing, nothing, groups, stencil.name, False)
        torch.library.opcheck(module._disco_weight.overload, arguments)


def resources(name: str, dim: int, dtype: str, architecture: int, **constants) -> dict:
    """What a compiled kernel takes."""
    sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
    import gpu_resources

    return gpu_resources.resources(name, dim, DTYPES[dtype], architecture, **constants)._asdict()
