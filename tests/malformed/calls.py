"""The public API as a table: for every function, class and layer the kinds of its arguments."""

import functools
import math
from pathlib import Path

import numpy as np
import torch
import torch._dynamo  # the first operator imports it, which takes long

from spherule import Grid, Neighborhood, data, grids, models, nn, objectives, ops, pde, rooms
from spherule import tasks as tasks
from spherule.geometry.filters import Stencil
from spherule.pde import initial_states
from spherule.train import RunConfig, TrainingConfig
from tests.malformed.values import (
    FLAG,
    GRID,
    GRIDS,
    NAMES,
    PLACES,
    WORD,
    Call,
    Kind,
    array,
    choice,
    count,
    labels,
    mask,
    real,
    tensor,
)

torch.manual_seed(0)
HEALPIX, COARSE = Grid.healpix(2), Grid.gauss(4, 8)
DISK, STENCIL = Neighborhood.disk(GRID, GRID, 0.9), Stencil.hats(GRID)
WHOLES = (
    "whole",
    "whole 70 O4",
    "whole -1 O4 weighted",
    "whole 0 O4 weighted",
    "whole x O4 weighted",
    "whole 70 O4 O4 weighted",
    "whole 70 nothing weighted",
)
SOLVER = pde.ShallowWater(GRID, lmax=2)
DATA = data.ShallowWaterConfig(grid="gauss:6x12", step=600.0, lead=600.0)
PANORAMA = data.Panorama(
    np.zeros((8, 16, 3), np.uint8), np.zeros((8, 16), np.uint8), np.ones((8, 16), np.float32)
)
ROOM = rooms.room(0, 0)

field = tensor(torch.randn(2, 3, 8, 16), torch.full((2, 3, 8, 16), math.nan))
anything = tensor(torch.randn(2, 3, 8, 16), grid=False)
unweighted = tensor(torch.randn(2, 3, 8, 16), alone=True)
anywhere = tensor(torch.randn(3, 8, 16), leading=False, alone=True)
coeffs = tensor(torch.randn(3, 5, 5, dtype=torch.complex64).tril(), leading=False, alone=True)
heads = tensor(torch.randn(1, 2, 128, 4))
point_mask = mask(torch.rand(8, 16) > 0.3, torch.rand(2, 8, 16) > 0.3)
spectrum = Kind((torch.ones(5),), tensor(torch.ones(5), alone=True).wrong)
spectrum = Kind(
    spectrum.right,
    tuple(
        v
        for v in spectrum.wrong
        if v is not None and not (isinstance(v, torch.Tensor) and v.shape == (4,))
    ),
)
radius = real(1.0, 6.4e6, beyond=(0.0, -1.0))
rate = real(0.0, 0.3, beyond=(1.0, -0.1, 7))
part = real(0.0, 0.3, beyond=(1.5, -0.1, 7))
cutoff = real(0.9, math.pi, beyond=(0.0, -1.0, 4.0, 45.0))
channels, few = count(1, 3), count(1, 1, 2)
lmax = count(0, 3, high=GRID.lmax)
planet = Kind((pde.EARTH,), (None, "earth", 1.0, pde.Planet, {}))
generator = Kind((None, torch.Generator()), (0, "seed", np.random.default_rng(0), [1]))
modules = Kind((torch.nn.Identity(),), (None, "norm", torch.ones(2), torch.nn.Identity))
state = tensor(initial_states.williamson2(2), alone=True, leading=False)
steps = count(0, 1, 2)
rings = {
    "theta": array([0.5, 1.5, 2.5]),
    "nphi": Kind(([4, 8, 4],), ([4.0, 8, 4], [0, 8, 4], [-4, 8, 4], [4, 8], "a", [10**12, 8, 4])),
    "phi0": Kind(([0.0, 6.0, 100.0],), tuple(v for v in array([0.0, 1.0, 2.0]).wrong)),
    "ring_weights": Kind(([1.0, 1.0, 1.0],), ([-1.0, 1, 1], [0, 0, 0], [math.nan, 1, 1], "a")),
}
regular = {"nlat": count(2, 5, high=2**15), "nlon": count(1, 6, high=2**31), "offset": rate}
open_rule = regular | {"nlat": count(1, 5, high=2**15)}  # without points at the poles
qkv = {"q": heads, "k": heads, "v": tensor(torch.randn(1, 2, 128, 4), grid=False)}
attention = {
    **qkv,
    "scale": real(0.5, -1.0).optional(),
    "key_mask": mask(torch.rand(128) > 0.3, torch.rand(1, 128) > 0.3),
    "return_lse": FLAG,
}
pair = {"prediction": field, "target": field, "grid": GRIDS, "mask": point_mask}
matrix = tensor(torch.rand(2, 3, 3), torch.zeros(3, 3), leading=False, alone=True)
segmented = {
    "grid": GRIDS,
    "mask": point_mask,
    "ignore": Kind((None, 255, 2), ("none", 1.5, True, math.nan, [2])),
}
classes = labels(torch.randint(0, 3, (2, 8, 16)))
options: dict[str, Kind] = {"bias": FLAG}
built = {"grid": PLACES, "in_channels": channels, "out_channels": channels}
size = Kind(
    ((8, 16),), ((8,), (8, 16, 3), (0, 16), (8.0, 16.0), "8x16", 8, None, (-8, 16), ("8", "16"))
)

CALLS: dict[str, Call] = {
    **{
        f"grids.Grid.{family}": (getattr(Grid, family), regular)
        for family in ("equiangular", "clenshaw_curtis", "lobatto")
    },
    **{f"grids.Grid.{family}": (getattr(Grid, family), open_rule) for family in ("gauss", "fejer")},
    "grids.Grid.healpix": (Grid.healpix, {"nside": count(1, 2, 3, high=2**13)}),
    "grids.Grid.octahedral": (Grid.octahedral, {"n": count(1, 2, high=2**14)}),
    "grids.Grid.reduced_gaussian": (Grid.reduced_gaussian, {"n": count(32, 32)}),
    "grids.Grid.from_rings": (functools.partial(Grid.from_rings, partial=True), rings),
    "grids.Grid.from_name": (Grid.from_name, {"name": NAMES}),
    "grids.Grid.match": (
        Grid.match,
        {"lat": array([60.0, 0.0, -60.0]), "lon": array([0.0, 90.0, 180.0, 270.0])},
    ),
    "grids.Grid.cutoff": (GRID.cutoff, {"window": real(1, 7.5, beyond=(0.0, -1.0))}),
    "grids.image_grid": (grids.image_grid, {"rows": count(1, 4, high=2**15), "columns": few}),
    "ops.pool": (
        ops.pool,
        {
            "u": Kind(
                (torch.randn(2, 48),), (torch.ones(()), torch.ones(47), None, torch.arange(48))
            ),
            "nested": FLAG,
        },
    ),
    "ops.unpool": (
        ops.unpool,
        {"u": Kind((torch.randn(2, 48),), (torch.ones(()), torch.ones(47), None, "u", [1.0] * 48))},
    ),
    "geometry.Neighborhood.disk": (
        Neighborhood.disk,
        {
            "query_grid": GRIDS,
            "key_grid": GRIDS,
            "cutoff": cutoff,
            "edge_width": real(0.0, 0.1, beyond=(-0.1, 7.0)),
            "weighted": FLAG,
        },
    ),
    "geometry.Neighborhood.window": (
        Neighborhood.window,
        {"shape": size, "size": Kind(((3, 5), (99, 99)), (*size.wrong, (2, 4)))},
    ),
    "geometry.Neighborhood.whole": (
        Neighborhood.whole,
        {"number": count(1, 70), "key_grid": GRIDS, "weighted": FLAG},
    ),
    "geometry.Neighborhood.from_name": (
        Neighborhood.from_name,
        {
            "name": Kind(
                (DISK.name,), (*WHOLES, *NAMES.right, *NAMES.wrong, DISK.name[:-3], DISK.name + "x")
            )
        },
    ),
    "geometry.Neighborhood.ring": (DISK.ring, {"r": count(0, 3, high=7)}),
    "geometry.Neighborhood.indices": (DISK.indices, {"i": count(0, 3, high=127)}),
    "geometry.Neighborhood.weights": (DISK.weights, {"i": count(0, 3, high=127)}),
    "ops.attention_weights": (
        ops.attention_weights,
        {
            "q": heads,
            "k": heads,
            "neighborhood": Kind((DISK, GRID), ("disk", GRID.name, 0.9, None)),
            "queries": Kind(([0, 5], range(3)), ([-1], [128], ["a"], [0.5], 3, None, "ab")),
            "scale": real(0.5).optional(),
        },
    ),
    "ops.disco": (
        ops.disco,
        {
            "x": field,
            "weight": tensor(torch.randn(4, 3, STENCIL.basis)),
            "stencil": Kind((STENCIL,), (STENCIL.name, DISK, GRID, None)),
        },
    ),
    "ops.equivariance_error": (
        ops.equivariance_error,
        {
            "model": Kind((lambda x: x,), (None, "model", 3, lambda x: x.mean(), lambda x: None)),
            "grid": GRIDS,
            "channels": few,
            "lmax": count(0, 2, high=GRID.lmax),
            "samples": few,
            "seed": count(0, 1),
            "dtype": Kind((torch.float32, torch.float64), ("float32", torch.int64, None, float)),
            "out_grid": GRIDS.optional(),
        },
    ),
    "ops.neighborhood_attention": (
        ops.neighborhood_attention,
        attention | {"neighborhood": Kind((DISK,), (DISK.name, GRID, 0.9, None))},
    ),
    "ops.global_attention": (
        ops.global_attention,
        attention | {"key_grid": GRIDS, "weighted": FLAG, "dropout_p": rate},
    ),
    "ops.integrate": (ops.integrate, {"u": anywhere, "grid": GRIDS}),
    "ops.sht": (ops.sht, {"u": anywhere, "grid": GRIDS, "lmax": lmax, "iterations": steps}),
    "ops.isht": (ops.isht, {"coeffs": coeffs, "grid": GRIDS}),
    "ops.gradient": (ops.gradient, {"coeffs": coeffs, "grid": GRIDS, "radius": radius}),
    "ops.laplacian": (ops.laplacian, {"coeffs": coeffs, "radius": radius}),
    "ops.inverse_laplacian": (ops.inverse_laplacian, {"coeffs": coeffs, "radius": radius}),
    "ops.power_spectrum": (ops.power_spectrum, {"coeffs": coeffs}),
    "ops.matern_spectrum": (
        ops.matern_spectrum,
        {
            "lmax": count(1, 4),
            "length": real(0.3, beyond=(0.0, -1.0)),
            "smoothness": real(1.5, beyond=(-3.0,)),
            "std": real(1.0, beyond=(-1.0,)),
        },
    ),
    "ops.point_variance": (ops.point_variance, {"spectrum": spectrum}),
    "ops.random_coeffs": (
        ops.random_coeffs,
        {
            "spectrum": spectrum,
            "shape": Kind(((), (2,)), ((-1,), (2.0,), 3, "2", None, ("a",))),
            "generator": generator,
        },
    ),
    "ops.random_field": (
        ops.random_field,
        {
            "spectrum": spectrum,
            "grid": GRIDS,
            "shape": Kind(((), (2,)), ((-1,), (2.0,), 3, "2", None, ("a",))),
            "generator": generator,
        },
    ),
    "ops.resample": (
        ops.resample,
        {
            "u": anywhere,
            "source": GRIDS,
            "target": GRIDS.but(COARSE, HEALPIX),
            "mode": choice("bilinear", "conservative"),
        },
    ),
    "ops.rotate": (ops.rotate, {"coeffs": coeffs, "R": array(np.eye(3), torch.eye(3))}),
    "ops.spectral_filter": (
        ops.spectral_filter,
        {"coeffs": coeffs, "response": tensor(torch.ones(5))},
    ),
    "ops.vorticity_divergence": (
        ops.vorticity_divergence,
        {
            "wind": tensor(torch.randn(2, 8, 16), leading=False, alone=True),
            "grid": GRIDS,
            "lmax": lmax,
            "radius": radius,
        },
    ),
    "ops.wind": (
        ops.wind,
        {"vorticity": coeffs, "divergence": coeffs, "grid": GRIDS, "radius": radius},
    ),
    "nn.Block": (
        nn.Block,
        dict.fromkeys(("attention_norm", "attention", "feed_forward_norm", "feed_forward"), modules)
        | {"drop_path": rate},
    ),
    "nn.ChannelNorm": (nn.ChannelNorm(3), {"x": anything}),
    "nn.DropPath": (nn.DropPath, {"rate": rate}),
    "nn.Mlp": (nn.Mlp, {"channels": channels, "hidden": channels, "dropout": part}),
    "nn.Mlp()": (nn.Mlp(3, 4), {"x": anything}),
    "nn.Projection": (
        nn.Projection,
        {"in_channels": channels, "out_channels": channels, "bias": FLAG},
    ),
    "nn.DiscoConv": (
        nn.DiscoConv,
        {
            "in_channels": count(1, 2),
            "out_channels": count(1, 2, 4),
            "grid": GRIDS,
            "out_grid": GRIDS.but(COARSE, GRID).optional(),
            "radii": few,
            "angles": few,
            "cutoff": real(0.9, math.pi, beyond=(0.0, -1.0, 4.0, 45.0)).optional(),
            "groups": count(1, 2),
            "bias": FLAG,
        },
    ),
    "nn.DiscoConv()": (nn.DiscoConv(3, 2, GRID), {"x": field}),
    "nn.Harmonics": (nn.Harmonics, {"grid": GRIDS, "lmax": count(0, 3)}),
    "nn.Harmonics()": (nn.Harmonics(GRID, 3), {"x": unweighted}),
    "nn.LearnedEmbedding": (nn.LearnedEmbedding, {"channels": channels, "grid": GRIDS}),
    "nn.LearnedEmbedding()": (nn.LearnedEmbedding(3, GRID), {"x": field}),
    "nn.SequenceEmbedding": (nn.SequenceEmbedding, {"channels": channels, "grid": GRIDS}),
    "nn.SpectralEmbedding": (nn.SpectralEmbedding, {"channels": channels, "grid": GRIDS}),
    "nn.SpectralEmbedding()": (nn.SpectralEmbedding(3, GRID), {"x": field}),
    "nn.PlainInstanceNorm": (nn.PlainInstanceNorm, {"channels": channels}),
    "nn.PlainInstanceNorm()": (nn.PlainInstanceNorm(3), {"x": anything}),
    "nn.PlanarAttention": (
        nn.PlanarAttention,
        {
            "channels": count(1, 4),
            "grid": GRIDS,
            "heads": few,
            "window": count(1, 3, 5).optional(),
            "out_bias": FLAG,
        },
    ),
    "nn.PlanarAttention()": (nn.PlanarAttention(3, GRID, window=3), {"x": field}),
    "nn.PlanarConv": (
        nn.PlanarConv,
        {
            "in_channels": count(1, 2),
            "out_channels": count(1, 2, 4),
            "grid": GRIDS,
            "out_grid": GRIDS.but(GRID, COARSE).optional(),
            "kernel": few,
            "groups": few,
            "bias": FLAG,
        },
    ),
    "nn.PlanarConv()": (nn.PlanarConv(3, 2, GRID), {"x": field}),
    "nn.PlanarResample": (nn.PlanarResample, {"source": GRIDS, "target": GRIDS}),
    "nn.PlanarResample()": (nn.PlanarResample(GRID, COARSE), {"x": unweighted}),
    "nn.Resample": (nn.Resample, {"source": GRIDS, "target": GRIDS.but(HEALPIX)}),
    "nn.Resample()": (nn.Resample(GRID, HEALPIX), {"x": field}),
    "nn.SHT": (nn.SHT, {"grid": GRIDS, "lmax": count(0, 3).optional()}),
    "nn.ISHT": (nn.ISHT, {"grid": GRIDS}),
    "nn.SpectralMix": (
        nn.SpectralMix,
        {"in_channels": channels, "out_channels": channels, "grid": GRIDS, "lmax": count(0, 3)},
    ),
    "nn.SpectralMix()": (
        nn.SpectralMix(3, 3, GRID, 2),
        {"x": field, "added": field.optional()},
    ),
    "nn.ZonalMix": (
        nn.ZonalMix,
        {
            "in_channels": channels,
            "out_channels": channels,
            "grid": GRIDS,
            "lmax": count(0, 3),
            "reach": count(0, 2),
        },
    ),
    "nn.ZonalMix()": (nn.ZonalMix(3, 3, GRID, 2), {"x": field, "added": field.optional()}),
    "nn.SphericalAttention": (
        nn.SphericalAttention,
        {
            "channels": count(1, 4),
            "grid": GRIDS,
            "heads": few,
            "cutoff": cutoff.optional(),
            "query_grid": GRIDS.optional(),
            "edge_width": real(0.0, 0.1, beyond=(-0.1, 7.0)),
            "key_channels": count(1, 4).optional(),
            "value_channels": count(1, 2).optional(),
            "out_channels": count(1, 3).optional(),
            "context_channels": count(1, 3).optional(),
            "bias": FLAG,
            "qk_norm": FLAG,
        },
    ),
    "nn.SphericalAttention()": (
        nn.SphericalAttention(3, GRID, cutoff=0.9),
        {"x": field, "context": field.optional(), "key_mask": point_mask},
    ),
    "nn.SphericalInstanceNorm": (
        nn.SphericalInstanceNorm,
        {"channels": channels, "grid": GRIDS, "eps": real(1e-5, beyond=(-1.0,))},
    ),
    "nn.SphericalInstanceNorm()": (nn.SphericalInstanceNorm(3, GRID), {"x": field}),
    "objectives.Average": (
        lambda values, valid: objectives.Average().update(values, valid),
        {
            "values": Kind(
                ({"loss": torch.ones(2)},),
                ({"loss": torch.ones(())}, {"loss": 1.0}, {"loss": [1.0, 2.0]}, None, 3.0, "loss"),
            ),
            "valid": Kind((None, torch.ones(2, dtype=torch.bool)), (torch.ones(2), [0], "all")),
        },
    ),
    **{
        f"objectives.{f.__name__}": (f, pair)
        for f in (objectives.l1, objectives.l2, objectives.squared_l2, objectives.sobolev)
    },
    "objectives.depth_loss": (objectives.depth_loss, pair | {"sobolev_weight": real(0.1, 0.0)}),
    **{
        f"objectives.{f.__name__}": (f, {"confusion": matrix})
        for f in (
            objectives.accuracy,
            objectives.class_iou,
            objectives.iou_macro,
            objectives.iou_micro,
            objectives.pixel_accuracy,
        )
    },
    "objectives.confusion": (
        objectives.confusion,
        segmented
        | {
            "predicted": classes.but(classes.right[0], field.right[0]),
            "labels": classes,
            "classes": count(1, 3),
        },
    ),
    "objectives.cross_entropy": (
        objectives.cross_entropy,
        segmented
        | {
            "logits": field,
            "labels": classes,
            "class_weights": tensor(torch.ones(3)).optional(),
            "label_smoothing": part,
        },
    ),
    "pde.Planet": (
        pde.Planet,
        {"radius": radius, "omega": real(7e-5, 0.0), "gravity": real(9.8, beyond=(0.0, -1.0))},
    ),
    "pde.ShallowWater": (
        pde.ShallowWater,
        {
            "grid": GRIDS,
            "lmax": count(1, 2, high=GRID.lmax).but(2).optional(),
            "planet": planet,
            "topography": tensor(initial_states.mountain(2), alone=True).optional(),
            "damping_time": radius.optional(),
            "damping_power": few,
            "tilt": real(0.0, 0.3),
            "integrator": Kind((None, pde.Heun3()), ("heun", 3, pde.Heun3)),
            "dtype": Kind((torch.float32,), ("float32", torch.int64, torch.float16, None)),
            "device": Kind(("cpu", torch.device("cpu")), ("nowhere", 3.5, None)),
        },
    ),
    "pde.ShallowWater.advance": (
        SOLVER.advance,
        {"state": state, "dt": real(60.0, beyond=(0.0, -1.0, 1e9)), "steps": steps},
    ),
    "pde.ShallowWater.trajectory": (
        lambda **kwargs: list(SOLVER.trajectory(**kwargs)),
        {
            "state": state,
            "dt": real(60.0, beyond=(0.0, -1.0, 1e9)),
            "steps": steps,
            "every": few,
        },
    ),
    "pde.ShallowWater.fields": (SOLVER.fields, {"state": state, "grid": GRIDS.optional()}),
    "pde.ShallowWater.wind": (SOLVER.wind, {"state": state, "grid": GRIDS.optional()}),
    "pde.ShallowWater.cfl_limit": (SOLVER.cfl_limit, {"state": state}),
    "pde.initial_states.random_states": (
        initial_states.random_states,
        {
            "lmax": count(1, 3),
            "samples": count(0, 2),
            "preset": choice("public", "paper"),
            "planet": planet,
            "generator": generator,
        },
    ),
    "pde.initial_states.williamson2": (
        initial_states.williamson2,
        {"lmax": count(1, 3), "tilt": real(0.0, 0.5), "planet": planet},
    ),
    "pde.initial_states.galewsky": (
        initial_states.galewsky,
        {"lmax": count(1, 3), "perturbed": FLAG, "planet": planet},
    ),
    **{
        f"pde.initial_states.{f.__name__}": (f, {"lmax": count(1, 3), "planet": planet})
        for f in (initial_states.williamson5, initial_states.williamson6, initial_states.mountain)
    },
    "pde.initial_states.case_named": (
        initial_states.case_named,
        {"name": choice("williamson2", "galewsky")},
    ),
    "data.ShallowWaterConfig": (
        data.ShallowWaterConfig,
        {
            "grid": NAMES.but("gauss:8x16"),
            "lmax": count(1, 2, high=7).optional(),
            "lead": real(600.0, 1200.0, beyond=(0.0, -1.0, 601.0, 1e-300)),
            "step": real(600.0, 300.0, beyond=(0.0, -1.0, 7.3)),
            "preset": choice("public", "paper"),
            "mean_depth": real(1e4, beyond=(0.0, -1.0)).optional(),
            "damping_time": radius.optional(),
        },
    ),
    "data.ShallowWaterDataset": (
        data.ShallowWaterDataset,
        {
            "config": Kind((DATA,), ("gauss:6x12", {}, 3, data.ShallowWaterConfig)),
            "seed": count(0, 1),
            "statistics": Kind(
                (data.Statistics((0.0,) * 3, (1.0,) * 3),),
                ("none", 3.0, (0.0, 1.0), data.Statistics((0.0,), (1.0,))),
            ),
            "leads": few,
        },
    ),
    "data.AgedShallowWater": (
        data.AgedShallowWater,
        {
            "config": Kind((DATA,), ("gauss:6x12", {}, 3, None)),
            "days": real(0.1, beyond=(0.0, -1.0)),
            "seed": count(0, 1),
            "statistics": Kind((data.Statistics((0.0,) * 3, (1.0,) * 3),), ("none", 3.0)),
            "leads": few,
        },
    ),
    "data.ConsecutiveBatches": (data.ConsecutiveBatches, {"size": few, "start": steps}),
    "data.Statistics": (
        data.Statistics,
        {
            "mean": Kind(((0.0, 1.0),), ((math.nan, 1.0), ("a", "b"), 3.0, None, (1.0,))),
            "std": Kind(((1.0, 2.0),), ((-1.0, 1.0), (math.inf, 1.0), (1.0, 1.0, 1.0), 3.0, None)),
        },
    ),
    "data.Statistics.normalize": (
        data.Statistics((0.0,) * 3, (1.0,) * 3).normalize,
        {"fields": tensor(torch.randn(2, 3, 8, 16), leading=False, alone=True), "grid": GRIDS},
    ),
    "data.Augmentation": (
        data.Augmentation,
        {
            "roll": FLAG,
            "mirror": FLAG,
            "jitter": rate,
            "tilt": real(0.0, 0.5, beyond=(-0.1, 45.0)),
            "seed": count(0, 1),
        },
    ),
    "data.Augmentation()": (
        data.Augmentation(tilt=0.5),
        {
            "panorama": Kind((PANORAMA,), (None, PANORAMA.rgb, "image")),
            "epoch": steps,
            "index": steps,
        },
    ),
    "data.Panorama": (
        data.Panorama,
        {
            "rgb": Kind((PANORAMA.rgb,), (None, PANORAMA.depth, PANORAMA.rgb / 2.0, [1], "rgb")),
            "label": Kind((PANORAMA.label,), (None, PANORAMA.label.T, PANORAMA.depth, [1], "x")),
            "depth": Kind((PANORAMA.depth,), (None, PANORAMA.depth.T, PANORAMA.label, [1], "x")),
            "name": WORD,
            "area": WORD,
        },
    ),
    "data.depth_mask": (data.depth_mask, {"grid": GRIDS}),
    "data.PanoramaDataset": (
        data.PanoramaDataset,
        {"path": Kind((), (Path("/nowhere"), "/nowhere", 3, None, Path("/dev/null")))},
    ),
    "data.StoredShallowWater": (
        data.StoredShallowWater,
        {"path": Kind((), (Path("/nowhere"), "/nowhere", 3, None, Path("/dev/null")))},
    ),
    "data.StanfordSource": (
        data.StanfordSource,
        {"root": Kind((), ("/nowhere", Path("/nowhere"), 3, None)), "size": size},
    ),
    "rooms.room": (rooms.room, {"seed": count(0, 1), "index": count(0, 1)}),
    "rooms.render": (
        rooms.render,
        {
            "scene": Kind((ROOM,), (None, "room", 3)),
            "grid": Kind(("8x16", GRID), ("0x16", "8x", *NAMES.wrong)),
            "rotation": array(np.eye(3)).optional(),
        },
    ),
    "rooms.trace": (
        rooms.trace,
        {
            "scene": Kind((ROOM,), (None, "room", 3)),
            "directions": Kind(
                (np.eye(3),),
                (np.eye(3) * math.nan, np.ones(3), np.eye(4), "up", None, np.zeros((2, 3))),
            ),
        },
    ),
    "models.build": (
        models.build,
        {"config": Kind((models.LinearConfig(),), (None, "Linear", {}, models.LinearConfig))}
        | built,
    ),
    "models.Linear": (
        models.Linear,
        {"config": Kind((models.LinearConfig(),), (None, models.TransformerConfig(), {}))} | built,
    ),
    "models.Linear()": (models.Linear(models.LinearConfig(), GRID, 3, 3), {"x": field}),
    "models.Linear.on": (
        lambda grid: models.Linear(models.LinearConfig(lmax=2), GRID, 3, 3).on(grid),
        {"grid": PLACES},
    ),
    "models.Transformer": (
        models.Transformer,
        {
            "config": Kind(
                (models.TransformerConfig(width=4, depth=1),), (None, models.LinearConfig(), "x")
            )
        }
        | built,
    ),
    "models.Transformer()": (
        models.Transformer(models.TransformerConfig(width=4, depth=1), GRID, 3, 2),
        {"x": field},
    ),
    "models.Segformer()": (
        models.Segformer(
            models.SegformerConfig(widths=(4, 4), depths=(1, 1), heads=(1, 1)), GRID, 3, 2
        ),
        {"x": field},
    ),
    "models.Segformer": (
        models.Segformer,
        {
            "config": Kind(
                (models.SegformerConfig(widths=(4, 4), depths=(1, 1), heads=(1, 1)),),
                (None, models.LinearConfig(), "x"),
            )
        }
        | built,
    ),
    "models.VisionTransformer": (
        models.VisionTransformer,
        {
            "config": Kind(
                (models.VisionTransformerConfig(width=4, depth=1),),
                (None, models.LinearConfig(), "x"),
            )
        }
        | built,
    ),
    "models.VisionTransformer()": (
        models.VisionTransformer(models.VisionTransformerConfig(width=4, depth=1), GRID, 3, 2),
        {"x": field},
    ),
    "models.LinearConfig": (models.LinearConfig, {"lmax": count(0, 3).optional()}),
    "models.TransformerConfig": (
        models.TransformerConfig,
        {
            "position": choice("spectral", "learned", "sequence", "none"),
            "norm": choice("instance", "plain_instance", "layer"),
            "dropout": rate,
            "drop_path": rate,
            "skip": choice("none", "identity", "spectral"),
            "bandlimit": count(0, 3).optional(),
            "keep_mean": FLAG,
            "checkpoint": FLAG,
            "radii": few,
            "angles": few,
            "window": few,
            "edge_width": real(0.0, 0.1, beyond=(-1.0,)),
            "qk_norm": FLAG,
            "width": count(1, 4),
            "depth": few,
            "heads": few,
            "mlp_ratio": real(2.0, beyond=(0.0, -1.0)),
            "cutoff": cutoff.optional(),
            "convolution_cutoff": cutoff.optional(),
        },
    ),
    "models.SegformerConfig": (
        models.SegformerConfig,
        {
            name: Kind(((4, 4),), ((4, 0), (4, -1), (4.5, 4), (), [4, 4], "44", None, 4, (4,)))
            for name in ("widths", "depths", "heads")
        },
    ),
    "models.VisionTransformerConfig": (
        models.VisionTransformerConfig,
        {"patch": few, "width": count(1, 4), "depth": few, "heads": few, "dropout": rate},
    ),
    "models.fit_linear": (
        models.fit_linear,
        {
            "batches": Kind(
                ([(torch.randn(2, 3, 8, 16), torch.randn(2, 3, 8, 16))],),
                ([], None, 3, [1], [(torch.ones(2, 3, 16, 8),) * 2], [(torch.ones(()),) * 2], "ab"),
            ),
            "grid": GRIDS,
            "lmax": count(0, 2),
        },
    ),
    "models.fit_zonal": (
        models.fit_zonal,
        {
            "batches": Kind(
                ([(torch.randn(32, 3, 8, 16), torch.randn(32, 3, 8, 16))],),
                ([], None, 3, [1], [(torch.ones(2, 3, 16, 8),) * 2], [(torch.ones(()),) * 2], "ab"),
            ),
            "grid": GRIDS,
            "lmax": count(0, 2),
            "reach": count(0, 2),
        },
    ),
    "models.from_pretrained": (
        models.from_pretrained,
        {"directory": Kind((), ("/nowhere", 3, None, "/dev/null"))},
    ),
    "models.upgrade_config": (
        models.upgrade_config,
        {
            "values": Kind(
                ({"type": "LinearConfig"},), ({}, None, [], "x", {"type": 3}, {"type": []})
            )
        },
    ),
    "tasks.ShallowWaterTaskConfig": (
        tasks.ShallowWaterTaskConfig,
        {
            "grid": NAMES.but("gauss:8x16"),
            "leads": count(1, 1),
            "unroll": Kind(((), (0.5, 0.5)), ((-1.0,), "ab", None, 3, ("a",), (math.nan,))),
            "unroll_from": part,
            "unroll_gradient": choice("all", "last"),
            "noise": real(0.0, 0.1, beyond=(-1.0,)),
            "noise_lmax": count(0, 3).optional(),
            "noise_slope": real(0.0, 1.0),
            "samples": few,
            "validation_samples": few,
            "test_samples": few,
            "ages": real(0.0, 2.0, beyond=(-1.0,)),
            "lead": real(3600.0, beyond=(0.0, -1.0, 601.0)),
            "preset": choice("public", "paper"),
        },
    ),
    "tasks.DepthConfig": (
        tasks.DepthConfig,
        {
            "rooms": steps,
            "size": Kind(("8x16",), ("8x", "0x16", 8, None, (8, 16), "a")),
            "tilt": real(0.0, 45.0, beyond=(-0.1, 181.0)),
            "augment": FLAG,
            "sobolev_weight": real(0.1, beyond=(-1.0,)),
            "fold": WORD.optional(),
        },
    ),
    "tasks.SegmentationConfig": (
        tasks.SegmentationConfig,
        {
            "rooms": steps,
            "size": Kind(("8x16",), ("8x", "0x16", 8, None, (8, 16), "a")),
            "augment": FLAG,
            "label_smoothing": part,
        },
    ),
    "tasks.ForecastConfig": (
        tasks.ForecastConfig,
        {
            "variables": Kind((("z", "t"),), ("z", None, 3, (3,), ["z"])),
            "lead": Kind(
                ("6h", "30min"), ("soon", "", 6, None, "-6h", "0h", "nanh", "1e400h", "1e30d")
            ),
            "missing": choice("refuse", "mask"),
            "training_part": real(0.5, 0.8, beyond=(0.0, -0.1, 1.5)),
            "validation_part": real(0.1, beyond=(-0.1, 1.5)),
            "leads": few,
            "noise": real(0.0, 0.1, beyond=(-1.0,)),
        },
    ),
    "train.TrainingConfig": (
        TrainingConfig,
        {
            "epochs": steps,
            "batch": few,
            "accumulate": count(1, 1),
            "optimizer": choice("adam", "adamw"),
            "learning_rate": real(1e-3, beyond=(0.0, -1.0)),
            "weight_decay": real(0.0, 0.1, beyond=(-1.0,)),
            "schedule": choice("constant", "plateau", "cosine"),
            "patience": steps,
            "warmup": steps,
            "clip": real(1.0, beyond=(0.0, -1.0)).optional(),
            "ema": rate,
            "precision": choice("float32", "bfloat16"),
            "seed": count(0, 1),
            "workers": steps,
            "save_every": steps,
            "device": Kind(("auto", "cpu"), ("", "nowhere", 3, None)),
        },
    ),
    "train.RunConfig": (
        RunConfig,
        {
            "task": Kind(
                (tasks.ShallowWaterTaskConfig(),), (None, "swe", {}, models.LinearConfig())
            ),
            "model": Kind((models.LinearConfig(),), (None, "x", {}, tasks.DepthConfig())),
            "training": Kind((TrainingConfig(),), (None, "x", {})),
            "recipe": WORD,
            "title": WORD,
        },
    ),
    "train.RunConfig.from_dict": (
        lambda run: RunConfig.from_dict(run),
        {"run": Kind((), (None, 3, "x", [], {}, {"task": 3}, {"task": {"type": []}}))},
    ),
}
