"""The rest of the table: ranks, files, recipes, runs, and what objects do once they are made."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from spherule import Grid, Neighborhood, data, distributed, models, nn, pde, recipes, rooms, runs
from spherule.data.regrid import regrid
from spherule.models import LinearConfig
from spherule.train import RunConfig, TrainingConfig, measure
from tests.fields import era5_like
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
    real,
    tensor,
)

TESTS = Path(__file__).parents[1]
RUN = TESTS / "runs" / "v0_1_0"
FIELDS = era5_like("era5", times=2)
MATCH = Grid.match([60.0, 0.0, -60.0], [0.0, 90.0, 180.0, 270.0], repair=True)
STATISTICS = data.Statistics((0.0,) * 3, (1.0,) * 3)

field = tensor(torch.randn(2, 3, 8, 16))
unweighted = tensor(torch.randn(2, 3, 8, 16), alone=True)
few = count(1, 1, 2)
place = GRIDS
device = Kind(("auto", "cpu"), (3, None, b"cpu"))
nobody = Kind((), (None, "run", 3, RUN, {}))  # no run: the rest is not looked at
nowhere = Kind((), (3, None, b"x", ["a"], 1.5))
paths = Kind((), ("/nowhere", Path("/nowhere"), 3, None, Path("/dev/null"), TESTS))
methods = choice("bilinear", "nearest", "conservative", "spectral")


def accessor(method: str) -> Any:
    import spherule.accessor  # noqa: F401

    return lambda **kwargs: getattr(FIELDS.z.spherule, method)(**kwargs)


CALLS: dict[str, Call] = {
    "accessor.regrid": (accessor("regrid"), {"grid": PLACES, "method": methods}),
    "accessor.sht": (accessor("sht"), {"lmax": count(0, 3, high=10**6).optional()}),
    "accessor.power_spectrum": (
        accessor("power_spectrum"),
        {"lmax": count(0, 3, high=10**6).optional()},
    ),
    "accessor.globe": (accessor("globe"), {"path": nowhere}),
    "grids.Grid.part": (
        GRID.part,
        {"start": count(0, 0, 3, high=8), "stop": count(0, 4, 8, high=8)},
    ),
    **{
        f"grids.{name}.{method}": (
            getattr(thing, method),
            {"start": count(0, 0, 1, high=3), "stop": count(0, 3, high=3)},
        )
        for name, thing, method in (("Grid", MATCH.grid, "points"), ("Match", MATCH, "part"))
    },
    **{
        f"grids.Match.{name}": (
            getattr(MATCH, name),
            {
                "u": Kind(
                    (np.zeros((2, *shape)), torch.zeros(shape)),
                    (None, 3, "u", np.zeros(shape).T, np.zeros(()), [[1.0]], torch.zeros(7)),
                )
            },
        )
        for name, shape in (("to_grid", (3, 4)), ("from_grid", MATCH.grid.shape))
    },
    "data.regrid.regrid": (
        regrid,
        {
            "source": paths,
            "target": Kind((Path("/nowhere/x.nc"),), ("x.nc", 3, None)),
            "grid": GRIDS,
            "method": methods,
            "repair": FLAG,
        },
    ),
    "data.write_store": (
        lambda **kwargs: next(data.write_store("/nowhere/x.zarr", **kwargs)),
        {
            "config": Kind((), (None, "gauss:6x12", {}, data.ShallowWaterConfig)),
            "samples": few,
            "seed": count(0, 1),
            "workers": count(0, 0),
        },
    ),
    "data.write_panoramas": (
        lambda **kwargs: next(data.write_panoramas("/nowhere/x.zarr", config={}, **kwargs)),
        {
            "source": Kind((), (None, 3, "rooms", object())),
            "size": Kind(((8, 16),), ((8,), (8.0, 16), "8x16", None, 8)),
            "workers": count(0, 0),
            "bad": choice("skip", "raise"),
        },
    ),
    "data.Statistics.denormalize": (
        STATISTICS.denormalize,
        {"fields": tensor(torch.randn(2, 3, 8, 16), leading=False, alone=True), "grid": GRIDS},
    ),
    **{
        f"distributed.{f.__name__}": (f, {"place": place})
        for f in (distributed.own, distributed.whole, distributed.area_shares)
    },
    **{
        f"distributed.{f.__name__}": (
            f,
            {
                "x": Kind((torch.ones(3),), (None, 1.0, [1.0], np.ones(3), "x")),
                "place": place,
            },
        )
        for f in (distributed.summed, distributed.agreed)
    },
    **{
        f"distributed.{f.__name__}": (
            f,
            {
                name: Kind((torch.ones(3, 8, 16),), (None, 1.0, [1.0], np.ones(3), "x")),
                "place": place,
            },
        )
        for f, name in ((distributed.scattered, "field"), (distributed.gathered, "part"))
    },
    "distributed.power_spectrum": (
        distributed.power_spectrum,
        {
            "u": tensor(torch.randn(3, 8, 16), leading=False, alone=True),
            "place": place,
            "lmax": count(0, 3, high=GRID.lmax),
        },
    ),
    "distributed.disk_halo": (
        distributed.disk_halo,
        {
            "source": place,
            "target": place,
            "radius": real(0.3, beyond=(-1.0, 45.0)).optional(),
        },
    ),
    "distributed.ring_halo": (distributed.ring_halo, {"source": place, "target": place}),
    "distributed.sht": (
        distributed.sht,
        {
            "u": tensor(torch.randn(3, 8, 16), leading=False, alone=True),
            "place": place,
            "lmax": count(0, 3, high=GRID.lmax),
        },
    ),
    "distributed.isht": (
        distributed.isht,
        {"coeffs": Kind((torch.randn(5, 5, 2),), (None, 3, [1.0], torch.ones(()), torch.ones(2)))}
        | {"place": place},
    ),
    "distributed.order_runs": (
        distributed.order_runs,
        {"lmax": count(0, 3), "ranks": few},
    ),
    "distributed.Shards": (
        distributed.Shards,
        {
            "grid": GRIDS,
            "mesh": Kind((), (None, "cpu", 2, [0, 1])),
            "balance": choice("work", "points"),
            "cutoff": real(0.3, beyond=(0.0, -1.0, 45.0)).optional(),
        },
    ),
    "geometry.Neighborhood.part": (
        lambda start, stop: Neighborhood.disk(GRID.part(start, stop), GRID, 0.9),
        {"start": count(0, 0, 3, high=8), "stop": count(0, 4, 8, high=8)},
    ),
    "nn.Resample.on": (
        lambda grids: nn.Resample(GRID, GRID).on(grids, GRID),
        {"grids": Kind((GRID,), (*NAMES.wrong, "gauss:8x16", (8, 16)))},
    ),
    "nn.DiscoConv.after": (
        lambda x: nn.DiscoConv(3, 2, GRID).after(torch.nn.Identity(), x),
        {"x": field},
    ),
    "nn.Harmonics.analyze": (nn.Harmonics(GRID, 3).analyze, {"x": unweighted}),
    "nn.Harmonics.synthesize": (
        nn.Harmonics(GRID, 3).synthesize,
        {"coeffs": Kind((torch.randn(1, 1, 4, 4, 2),), (None, "x", [1.0], torch.ones(4, 4)))},
    ),
    "models.Linear.fit": (
        lambda batches: models.Linear(LinearConfig(lmax=2), GRID, 3, 3).fit(batches),
        {"batches": Kind(([(torch.randn(2, 3, 8, 16),) * 2],), ([], None, 3, [1], "ab"))},
    ),
    "models.ModelConfig.from_dict": (
        lambda config: LinearConfig.from_dict(config),
        {"config": Kind(({}, {"lmax": 3}), (None, [], "x", {"x": 1}, {3: 1}))},
    ),
    "models.Model.from_pretrained": (
        models.Linear.from_pretrained,
        {"directory": Kind((), ("/nowhere", Path("/nowhere"), 3, None, "hf://owner/name"))},
    ),
    **{
        f"pde.{integrator.__name__}.states": (
            lambda integrator=integrator, **kwargs: next(integrator().states(**kwargs)),
            {
                "equation": Kind((pde.Equation(torch.neg),), (None, "decay", torch.neg)),
                "y": Kind((torch.ones(3),), (None, 1.0, [1.0], np.ones(3))),
                "dt": real(0.1),
            },
        )
        for integrator in (pde.Heun3, pde.AdamsBashforth3)
    },
    "pde.Equation": (
        pde.Equation,
        {
            "tendency": Kind((torch.neg,), (None, 3, "neg", torch.ones(3))),
            "damping": Kind((None, torch.ones(3)), (1.0, "none", [1.0])),
        },
    ),
    "rooms.render.rotation": (
        lambda rotation: rooms.render(rooms.room(0, 0), "2x4", rotation=rotation),
        {"rotation": array(np.eye(3)).optional()},
    ),
    "recipes.get": (
        recipes.get,
        {
            "name": Kind(
                ("swe/linear:tiny", "forecast"),
                ("swe", "", ":tiny", "swe/linear:huge", "swe/linear:", 3, None, b"x", "SWE/linear"),
            )
        },
    ),
    "recipes.add": (
        recipes.add,
        {"recipe": Kind((), (None, "x", {}, recipes.RECIPES["swe/linear"], recipes.Recipe))},
    ),
    "train.measure": (
        measure,
        {
            "task": Kind((), (None, "swe", 3)),
            "model": Kind((models.Linear(LinearConfig(), GRID, 3, 3),), (None, "linear", 3)),
            "part": choice("validation", "test"),
            "samples": few.optional(),
            "batch": few,
        },
    ),
    "train.RunConfig.load": (
        RunConfig.load,
        {"path": Kind((RUN / "config.json",), paths.wrong)},
    ),
    "runs.Run.open": (
        runs.Run.open,
        {
            "directory": Kind((RUN, str(RUN)), ("/nowhere", 3, None, Path("/nowhere"))),
            "which": choice("best", "last"),
        },
    ),
    "runs.train": (
        lambda **kwargs: runs.train(directory="/nowhere/run", **kwargs),
        {
            "config": Kind((), (None, "swe/linear", {}, TrainingConfig(), RunConfig)),
            "resume": FLAG,
            "overwrite": FLAG,
            "init": Kind((None,), (3, "x", b"x")),
            "on_step": Kind((None, print), (3, "print")),
            "log": Kind((print,), (None, 3, "print")),
        },
    ),
    "runs.evaluate": (
        runs.evaluate,
        {"run": nobody, "samples": few.optional(), "batch": few, "device": device},
    ),
    "runs.evaluated": (
        runs.evaluated,
        {"directories": Kind((), (None, 3, "/nowhere", ["/nowhere"], [3])), "device": device},
    ),
    "runs.predict": (
        runs.predict,
        {"run": nobody, "source": paths, "target": nowhere, "steps": few, "device": device},
    ),
    "runs.publish": (runs.publish, {"run": nobody, "address": WORD, "device": device}),
    "runs.roll_out": (
        runs.roll_out,
        {"run": nobody, "hours": real(6.0, beyond=(0.0, -1.0)), "samples": few, "device": device},
    ),
    "runs.score": (
        runs.score,
        {"run": nobody, "samples": few.optional(), "batch": few, "device": device},
    ),
    "runs.RunDirectory": (
        lambda path: runs.RunDirectory(path).read_config(),
        {"path": Kind((RUN,), (Path("/nowhere"), Path("/dev/null")))},
    ),
}
