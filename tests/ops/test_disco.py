import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.spatial.transform import Rotation
from scipy.special import eval_legendre, sph_harm_y

from spherule import Grid, native, ops
from spherule.geometry.filters import Stencil
from spherule.ops.disco import _disco, _disco_weight, cpu, reference
from tests.oracles import random_coeffs

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")

# Same, down, up; periods that fill vectors and that do not; odd sizes, poles, reduced grids.
PAIRS = [
    ("gauss:16x32", "gauss:16x32"),
    ("gauss:18x40", "gauss:9x20"),
    ("gauss:8x16", "gauss:16x32"),
    ("gauss:24x48", "fejer:16x32@0.5"),
    ("clenshaw_curtis:13x25", "clenshaw_curtis:13x25"),
    ("equiangular:12x24", "equiangular:12x24"),
    ("gauss:12x25@0.25", "gauss:7x13"),
    ("H4", "H2"),
    ("H2", "gauss:10x21"),
    ("O6", "O6"),
    ("gauss:1x32", "gauss:1x32"),  # empty hats reach for points: more than four cover one
    ("gauss:2x4", "gauss:1x2"),
]
CHANNELS = [(5, 3, 1), (3, 5, 1), (6, 4, 2), (6, 6, 6), (3, 6, 3), (70, 2, 1), (1, 1, 1)]
TOLERANCE = {torch.float32: 3e-6, torch.float64: 1e-14}


def stencil_of(source: str, target: str | None = None, **options) -> Stencil:
    return Stencil.hats(
        Grid.from_name(source), None if target is None else Grid.from_name(target), **options
    )


def random_input(stencil, in_channels, out_channels, groups, dtype, batch=2):
    x = torch.randn(batch, in_channels, *stencil.in_grid.shape, dtype=dtype)
    weight = torch.randn(out_channels, in_channels // groups, stencil.basis, dtype=dtype)
    return x.requires_grad_(), weight.requires_grad_()


def with_gradients(y, *inputs):
    torch.manual_seed(1)
    return y, *torch.autograd.grad(y, inputs, torch.randn(y.shape, dtype=y.dtype))


@pytest.fixture
def poisoned():
    """Memory that a kernel forgets to write holds NaN."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_kernel_matches_reference_in_value_and_gradients(source, target, dtype, poisoned) -> None:
    stencil = stencil_of(source, target)
    for channels in CHANNELS:
        x, weight = random_input(stencil, *channels, dtype)
        by_group = weight.unflatten(0, (channels[2], -1))
        expected, _ = reference.convolve(x.flatten(2), by_group, stencil, False)
        expected = expected.reshape(2, channels[1], *stencil.out_grid.shape)
        expected = with_gradients(expected, x, weight)
        for a, b in zip(
            with_gradients(ops.disco(x, weight, stencil), x, weight), expected, strict=True
        ):
            assert a.shape == b.shape
            assert (a - b).abs().max() <= 4 * TOLERANCE[dtype] * b.abs().max()


@pytest.mark.parametrize(("source", "target"), [PAIRS[0], PAIRS[9]])
def test_everything_works_without_the_native_library(source, target, monkeypatch) -> None:
    stencil = stencil_of(source, target)
    x, weight = random_input(stencil, 6, 4, 2, torch.float64)
    expected = with_gradients(ops.disco(x, weight, stencil), x, weight)
    monkeypatch.setattr(native, "load", lambda: (None, "absent"))
    for a, b in zip(
        with_gradients(ops.disco(x, weight, stencil), x, weight), expected, strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_constants_stay_constant_at_every_latitude(source, target) -> None:
    stencil = stencil_of(source, target)
    weight = torch.randn(3, 2, stencil.basis, dtype=torch.float64)
    x = torch.ones(1, 2, *stencil.in_grid.shape, dtype=torch.float64)
    y = ops.disco(x, weight, stencil).reshape(3, -1)
    expected = weight.sum(dim=(1, 2))[:, None].expand_as(y)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("points", [1, 7, 128, 300, 5000])
@pytest.mark.parametrize(("out", "into", "groups"), [(1, 1, 1), (7, 33, 1), (27, 6, 2), (5, 70, 3)])
def test_products_over_channels(out, into, groups, points, dtype, poisoned) -> None:
    """Blocks of points, tiles of rows and vectors of channels, whole and broken off."""
    x = torch.randn(2, groups * into, points, dtype=dtype, requires_grad=True)
    weight = torch.randn(groups, out, into, dtype=dtype, requires_grad=True)
    expected = torch.einsum("goi,bgin->bgon", weight, x.unflatten(1, (groups, into)))
    expected = with_gradients(expected.flatten(1, 2), x, weight)
    torch.manual_seed(1)
    dy = torch.randn(expected[0].shape, dtype=dtype)
    found = (
        cpu.mix(x.detach(), weight.detach()),
        cpu.mix(dy, weight.detach().mT),
        cpu.mix_weight(x.detach(), dy, groups),
    )
    for a, b in zip(found, expected, strict=True):
        assert (a - b).abs().max() <= 10 * TOLERANCE[dtype] * b.abs().max()


@pytest.mark.parametrize("groups", [1, 3])
def test_longitude_rolls_commute(groups: int) -> None:
    stencil = stencil_of("gauss:16x48", "gauss:8x16")
    x, weight = random_input(stencil, 3, 3, groups, torch.float64)
    rolled = ops.disco(x.roll(6, -1), weight, stencil)
    torch.testing.assert_close(rolled, ops.disco(x, weight, stencil).roll(2, -1))


def eigenvalue(l: int, hat: int, cutoff: float) -> float:
    """Funk and Hecke: what an isotropic hat, normalized to keep constants, makes of Y_lm."""
    step = cutoff / 3
    ends = [hat * step - step, hat * step, hat * step + step]

    def moment(l: int) -> float:
        def integrand(d: float) -> float:
            height = 1 - abs(d - hat * step) / step
            return height * eval_legendre(l, math.cos(d)) * math.sin(d)

        return sum(quad(integrand, max(a, 0), max(b, 0))[0] for a, b in pairwise(ends))

    return moment(l) / moment(0)


@pytest.mark.parametrize("family", ["gauss:{0}x{1}", "clenshaw_curtis:{3}x{1}", "O{2}", "H{4}"])
def test_isotropic_hats_have_the_eigenvalues_of_funk_and_hecke(family: str) -> None:
    cutoff, errors = 0.8, []
    exact = torch.tensor([[eigenvalue(l, hat, cutoff) for l in range(7)] for hat in range(3)])
    for n in (16, 32, 64):
        grid = Grid.from_name(family.format(n, 2 * n, n // 2, n + 1, n // 4))
        stencil = Stencil.hats(grid, cutoff=cutoff, angles=1)
        harmonics = [sph_harm_y(l, l // 2, grid.point_theta, grid.point_phi).real for l in range(7)]
        u = torch.tensor(np.array(harmonics)).reshape(7, 1, *grid.shape)
        y = ops.disco(u, torch.eye(3, dtype=torch.float64)[:, None], stencil)
        difference = y - exact.T.reshape(7, 3, *[1] * len(grid.shape)) * u
        errors.append(ops.integrate(difference**2, grid).sqrt().amax(dim=0).numpy())
    assert np.all(errors[0] / errors[1] > 2)
    assert np.all(errors[1] / errors[2] > 2)
    assert np.all(errors[2] < 3e-3)


def test_rotation_error_of_the_isotropic_basis_falls_with_resolution() -> None:
    R = Rotation.from_euler("zyz", [0.4, 1.1, -0.7]).as_matrix()
    coeffs, weight = random_coeffs(8), torch.randn(1, 1, 3, dtype=torch.float64)
    errors = {1: [], 4: []}
    for n in (16, 32, 64):
        grid = Grid.gauss(n, 2 * n)
        for angles, found in errors.items():
            stencil = Stencil.hats(grid, cutoff=0.8, angles=angles)
            hats = torch.cat([weight[..., :1], weight[..., 1:].repeat_interleave(angles, -1)], -1)
            if angles > 1:
                hats[..., 1::4] *= 2  # without this, four equal azimuths are one ring
            rotated = ops.isht(ops.rotate(coeffs, R), grid)
            y = ops.disco(ops.isht(coeffs, grid)[None, None], hats, stencil)[0, 0]
            then = ops.isht(ops.rotate(ops.sht(y, grid, 14), R), grid)
            first = ops.disco(rotated[None, None], hats, stencil)[0, 0]
            norm = ops.integrate(then**2, grid)
            found.append((ops.integrate((then - first) ** 2, grid) / norm).item() ** 0.5)
    assert errors[1][0] / errors[1][1] > 2
    assert errors[1][1] / errors[1][2] > 2
    assert errors[1][2] < 5e-3
    assert errors[4][2] > 0.05  # the meridian shows


@pytest.mark.parametrize("other", ["O32", "H32", "fejer:64x130@0.5"])
def test_regular_and_reduced_grids_agree_on_smooth_fields(other: str) -> None:
    coeffs = random_coeffs(6, 2)
    target, outputs = Grid.gauss(12, 24), []
    weight = torch.randn(2, 2, 9, dtype=torch.float64)
    for grid in (Grid.gauss(64, 128), Grid.from_name(other)):
        stencil = Stencil.hats(grid, target, cutoff=0.6)
        outputs.append(ops.disco(ops.isht(coeffs, grid)[None], weight, stencil))
    assert (outputs[0] - outputs[1]).norm() < 0.01 * outputs[0].norm()


def test_gradients() -> None:
    for source, target in (("gauss:4x16", "gauss:4x16"), ("O2", "gauss:3x5")):
        stencil = stencil_of(source, target, cutoff=2.0)
        for channels in ((2, 1, 1), (1, 2, 1), (2, 2, 2)):
            inputs = random_input(stencil, *channels, torch.float64, batch=1)
            assert torch.autograd.gradcheck(
                lambda x, w, s=stencil: ops.disco(x, w, s), inputs, fast_mode=True
            )
            assert torch.autograd.gradgradcheck(
                lambda x, w, s=stencil: ops.disco(x, w, s), inputs, fast_mode=True
            )


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("out", [4, 8])
@pytest.mark.parametrize("source", ["gauss:8x16", "O4"])
@pytest.mark.usefixtures("unchecked")  # sizes are symbols there
def test_ops_are_well_registered(source: str, out: int, groups: int) -> None:
    stencil = stencil_of(source)
    x = torch.randn(2, 4, stencil.in_grid.size, requires_grad=True)
    weight = torch.randn(groups, out // groups, 4 // groups, stencil.basis, requires_grad=True)
    for transposed in (False, True):
        y, hats = _disco(x, weight, stencil.name, transposed)
        torch.library.opcheck(_disco.overload, (x, weight, stencil.name, transposed))
        dy = torch.randn_like(y).requires_grad_()
        arguments = (x, dy, hats.detach(), torch.empty(0), groups, stencil.name, transposed)
        torch.library.opcheck(_disco_weight.overload, arguments)


@pytest.mark.usefixtures("unchecked")
def test_an_exported_program_is_bound_to_no_kernel(monkeypatch) -> None:
    """What was traced with the library runs where there is none, and says nothing of devices."""
    for source in ("gauss:8x16", "O4"):
        stencil = stencil_of(source)

        class Layer(torch.nn.Module):
            def forward(self, x, weight, stencil=stencil):
                return ops.disco(x, weight, stencil)

        for channels in ((4, 2, 1), (2, 4, 1), (4, 4, 4)):
            inputs = tuple(t.detach() for t in random_input(stencil, *channels, torch.float64))
            expected = ops.disco(*inputs, stencil)
            program = torch.export.export(Layer(), inputs)
            ops_used = {str(n.target) for n in program.graph.nodes if "spherule" in str(n.target)}
            assert ops_used == {"spherule.disco.default"}
            with monkeypatch.context() as patch:
                patch.setattr(native, "load", lambda: (None, "absent"))
                torch.testing.assert_close(program.module()(*inputs), expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(("source", "target"), [PAIRS[1], PAIRS[4], PAIRS[9]])
def test_same_bits_for_any_number_of_threads(source, target, dtype) -> None:
    stencil = stencil_of(source, target)
    x = torch.randn(3, 5, stencil.in_grid.size, dtype=dtype)
    parts = torch.randn(3, 5, 9, stencil.in_grid.size, dtype=dtype)
    weight, dy = (
        torch.randn(5, 9, dtype=dtype),
        torch.randn(3, 5, stencil.out_grid.size, dtype=dtype),
    )
    calls = [
        lambda: cpu.mix(x, weight[None].mT),
        lambda: cpu.mix_weight(x, x, 1),
        lambda: cpu.spread(x, stencil, False),
        lambda: cpu.gather(parts, stencil, False),
        lambda: cpu.spread(dy, stencil, True),
    ]
    if stencil.period in (20, 25):
        calls += [
            lambda: cpu.depthwise(x, weight, stencil, False),
            lambda: cpu.correlate_depthwise(x, dy, stencil, False),
        ]
    threads = torch.get_num_threads()
    for call in calls:
        results = []
        for n in (1, 2, 3):
            torch.set_num_threads(n)
            results += [call(), call()]
        torch.set_num_threads(threads)
        assert all(torch.equal(results[0], other) for other in results[1:])


@pytest.mark.parametrize("channels", [(4, 2, 1), (2, 4, 1), (4, 4, 4)])
def test_compiles_and_exports_whole(channels: tuple, unchecked) -> None:
    stencil = stencil_of("gauss:8x16")
    x, weight = random_input(stencil, *channels, torch.float32)

    class Layer(torch.nn.Module):
        def forward(self, x, weight):
            return ops.disco(x, weight, stencil)

    expected = with_gradients(Layer()(x, weight), x, weight)
    compiled = torch.compile(Layer(), fullgraph=True, backend="aot_eager")
    for a, b in zip(with_gradients(compiled(x, weight), x, weight), expected, strict=True):
        torch.testing.assert_close(a, b)
    exported = torch.export.export(Layer(), (x.detach(), weight.detach()))
    torch.testing.assert_close(exported.module()(x.detach(), weight.detach()), expected[0])


@pytest.mark.parametrize("channels", [(4, 2, 1), (2, 4, 1), (4, 4, 4)])
@pytest.mark.parametrize("source", ["gauss:8x16", "O4"])
def test_16_bit_and_autocast(source: str, channels: tuple) -> None:
    stencil = stencil_of(source)
    x, weight = random_input(stencil, *channels, torch.float32)
    expected = ops.disco(x, weight, stencil)
    low = ops.disco(x.bfloat16(), weight.bfloat16(), stencil)
    with torch.autocast("cpu", torch.bfloat16):
        cast = ops.disco(x, weight, stencil)
    assert low.dtype == cast.dtype == torch.bfloat16
    for y in (low, cast):
        assert (y - expected).abs().max() < 0.05 * expected.abs().max()
    gradient = torch.autograd.grad(cast.float().square().sum(), weight)[0]
    assert gradient.dtype == torch.float32
    assert gradient.isfinite().all()


@pytest.mark.parametrize("channels", [(4, 2, 1), (2, 4, 1), (4, 4, 4)])
def test_empty_batch_and_strided_input(channels: tuple) -> None:
    for source in ("gauss:8x16", "O4"):
        stencil = stencil_of(source)
        x, weight = random_input(stencil, *channels, torch.float64, batch=0)
        y = ops.disco(x, weight, stencil)
        assert y.shape == (0, channels[1], *stencil.out_grid.shape)
        gradients = torch.autograd.grad(y.sum(), (x, weight))
        assert gradients[0].shape == x.shape
        assert not gradients[1].any()
        x, weight = random_input(stencil, *channels, torch.float64)
        strided = x.detach().transpose(0, 1).contiguous().transpose(0, 1)
        torch.testing.assert_close(
            ops.disco(strided, weight, stencil), ops.disco(x, weight, stencil)
        )


def test_channels_mix_on_the_side_where_it_is_cheaper(monkeypatch) -> None:
    stencil = stencil_of("gauss:16x32")
    called = []
    for name in ("spread", "gather", "depthwise"):
        op = getattr(cpu, name)
        monkeypatch.setattr(cpu, name, lambda *a, name=name, op=op: called.append(name) or op(*a))
    for channels in ((16, 3, 1), (3, 16, 1), (8, 8, 8)):
        ops.disco(*(t.detach() for t in random_input(stencil, *channels, torch.float32)), stencil)
    assert called == ["gather", "spread", "depthwise"]


def test_bad_input_is_named(unchecked) -> None:
    stencil = stencil_of("gauss:8x16")
    x, weight = torch.zeros(1, 4, 8, 16), torch.zeros(6, 4, 9)
    for arguments, error, words in [
        ((x[0], weight, stencil), ValueError, r"x: expected \(batch, channels, 8, 16\)"),
        ((x.mT, weight, stencil), ValueError, r"x: expected \(batch, channels, 8, 16\)"),
        ((x.long(), weight, stencil), TypeError, "x: expected a floating-point"),
        ((x.double(), weight, stencil), TypeError, "weight: expected torch.float64"),
        ((x, weight[..., :8], stencil), ValueError, "weight: expected .* 9 hats"),
        ((x, weight[0], stencil), ValueError, "weight: expected"),
        ((x, torch.zeros(6, 3, 9), stencil), ValueError, "4 channels"),
        ((x, torch.zeros(5, 1, 9), stencil), ValueError, "groups"),
        ((x, weight.numpy(), stencil), TypeError, "weight: expected a floating-point tensor"),
        ((x.numpy(), weight, stencil), TypeError, "x: expected a floating-point tensor"),
        ((x, weight, "gauss:8x16"), TypeError, "stencil: expected a Stencil"),
    ]:
        with pytest.raises(error, match=words):
            ops.disco(*arguments)
