"""Calls drawn at random over the whole public API: each answers, or says which argument is wrong
and why.
"""

import dataclasses
import faulthandler
import importlib
import inspect
import itertools
import pkgutil
import re
import signal
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import spherule
from tests.malformed import calls, higher_calls

pytestmark = pytest.mark.usefixtures("unchecked", "little_memory")

EVERY_DAY, ALL, CHUNK = 500, 5000, 50
SECONDS = 2
CALLS = calls.CALLS | higher_calls.CALLS
NOT_CALLED = {
    # Results that functions fill in, names to inherit from, constants.
    *("data.BadPanorama", "data.Fold", "data.PanoramaSource", "distributed.Halo"),
    *("models.LinearFit", "models.ModelConfig", "objectives.MeanStd", "pde.Integrator"),
    *("recipes.Recipe", "rooms.Hits", "rooms.Scene", "rooms.View", "runs.Rollout", "runs.Scores"),
    *("train.Interrupted", "train.StepEvent", "train.Trained", "models.Model", "nn.Bound"),
    *("nn.Placed", "nn.place", "distributed.RankError", "distributed.named_faults"),
    # What configs open and runs drive.
    *("tasks.DepthTask", "tasks.ForecastTask", "tasks.SegmentationTask", "tasks.ShallowWaterTask"),
    *("train.Task", "train.TaskConfig", "train.Trainer"),
    # Readers of files, whose numbers tests/fuzz makes wrong.
    *("data.PanoramaStatistics", "data.Statistics.from_metadata"),
    # Steps of what is called here, with what fits by then.
    *("data.Panorama.moments", "data.PanoramaDataset.panorama", "data.ShallowWaterDataset.block"),
    *("data.ShallowWaterDataset.trajectories", "distributed.Shards.of", "models.Linear.predict"),
    *("distributed.Shards.scatter", "distributed.Shards.gather", "objectives.Average.reduce"),
    *("objectives.Average.update", "nn.PlanarAttention.project", "nn.SphericalAttention.project"),
    *("runs.Run.task", "runs.RunDirectory.at", "runs.RunDirectory.write_metadata"),
    *("runs.RunDirectory.journal", "data.AgedShallowWater.on", "data.ShallowWaterDataset.on"),
    *("nn.DiscoConv.reach", "nn.Projection.split"),
}
HOOKS = {"branch", "check", "forward", "open", "picture", "place", "resolved", "save"}
"""Methods that a base class calls."""


class TooLong(BaseException):
    pass


@pytest.fixture(autouse=True)
def _watched() -> Iterator[None]:
    """A call that hangs in the library, where no signal is heard, ends the process."""

    def late(*_: Any) -> None:
        raise TooLong

    before = signal.signal(signal.SIGPROF, late)
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    signal.signal(signal.SIGPROF, before)


def public() -> Iterator[str]:
    """Functions, classes, and methods that take something."""
    for module in pkgutil.iter_modules(spherule.__path__):
        if module.name.startswith("_"):
            continue
        package = importlib.import_module(f"spherule.{module.name}")
        for name in getattr(package, "__all__", ()):
            thing = getattr(package, name)
            if not inspect.isroutine(thing) and not inspect.isclass(thing):
                continue
            yield f"{module.name}.{name}"
            if not inspect.isclass(thing):
                continue
            for method, value in vars(thing).items():
                function = getattr(value, "__func__", value)
                if method.startswith("_") or method in HOOKS or not inspect.isfunction(function):
                    continue
                if len(inspect.signature(function).parameters) > 1:
                    yield f"{module.name}.{name}.{method}"


def test_every_public_name_is_called_here() -> None:
    called = {call.rstrip("()") for call in CALLS}
    called |= {call.rsplit(".", 1)[0] for call in called if call.count(".") > 1}
    wanted = set(public())
    inner = {name for name in wanted if name.count(".") > 1}
    exempt = NOT_CALLED | {name for name in inner if name.rsplit(".", 1)[0] in NOT_CALLED}
    assert wanted - called - exempt == set()
    assert NOT_CALLED - wanted == set()  # all of these exist


# The others want files or processes, which no plain value stands for.
FIT = [name for name, (_, kinds) in CALLS.items() if all(kind.right for kind in kinds.values())]


@pytest.mark.parametrize("name", FIT)
def test_arguments_that_fit_are_taken(name: str) -> None:
    function, kinds = CALLS[name]
    function(**{key: kind.right[0] for key, kind in kinds.items()})


@pytest.mark.parametrize(
    "start",
    [
        pytest.param(start, marks=[] if start < EVERY_DAY else pytest.mark.slow)
        for start in range(0, ALL, CHUNK)
    ],
)
def test_malformed_calls_are_refused_and_the_argument_is_named(start: int) -> None:
    failures = [fault for seed in range(start, start + CHUNK) if (fault := attempt(seed))]
    assert not failures, "\n".join(failures)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_every_wrong_value_is_refused_on_its_own(name: str) -> None:
    function, kinds = CALLS[name]
    fits = {key: (kind.right or kind.wrong)[0] for key, kind in kinds.items()}
    never = {key for key, kind in kinds.items() if not kind.right}
    failures = []
    for key, kind in kinds.items():
        bad = sorted(never | {key})
        for value in kind.wrong:
            call = f"{name}({key}={short(value)})"
            if fault := judged(call, function, fits | {key: value}, bad):
                failures.append(fault)
    assert not failures, "\n".join(failures)


def attempt(seed: int) -> str | None:
    """What is wrong with how a call ended, if anything."""
    rng = np.random.default_rng(seed)
    name = list(CALLS)[seed % len(CALLS)]
    function, kinds = CALLS[name]
    arguments = {key: pick(rng, kind.right) for key, kind in kinds.items() if kind.right}
    bad = [key for key in kinds if key not in arguments]
    if rng.random() < 0.95:
        bad += [pick(rng, list(arguments))] if arguments else []
    arguments |= {key: pick(rng, kinds[key].wrong) for key in bad}
    call = f"{name}({', '.join(f'{k}={short(v)}' for k, v in arguments.items() if k in bad)})"
    return judged(call, function, arguments, bad)


def judged(
    call: str, function: Callable[..., Any], arguments: dict[str, Any], bad: list[str]
) -> str | None:
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            function(**arguments)
    except TooLong:
        return f"{call}: more than {SECONDS} s"
    except (TypeError, ValueError, FileNotFoundError) as error:
        words = str(error)
        if not bad:
            return None  # values that fit alone need not fit each other
        told = [key for key in bad if names(words, key, arguments[key])]
        if not told:
            return f"{call}: names none of it: {type(error).__name__}: {words}"
        if not any(shows(words, arguments[key]) for key in told):
            return f"{call}: tells not what came: {words}"
        if not EXPECTED.search(words):
            return f"{call}: tells not what was expected: {words}"
    except BaseException as error:
        return f"{call}: {type(error).__name__}: {error}"
    else:
        return f"{call}: taken" if bad else None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


EXPECTED = re.compile(
    r"expected|must|needs|one of|known|it has|does not exist|(is|are|holds) no |not an? |not valid "
)


def names(words: str, key: str, value: Any) -> bool:
    """Whether a message speaks of an argument; a path is its own name, also in a list."""
    if re.search(rf"(?<![a-z_]){key}(?![a-z_])", words):
        return True
    if isinstance(value, list):
        return any(names(words, key, entry) for entry in value)
    path = isinstance(value, Path) or (isinstance(value, str) and value.startswith(("/", "hf://")))
    return path and str(value) in words


def shows(words: str, value: Any) -> bool:
    """Whether a message says what came: the value, its kind, or what of it is wrong."""
    return any(text in words for text in told_of(value))


def told_of(value: Any) -> Iterator[str]:
    """What tells a value from others."""
    yield value.__name__ if isinstance(value, type) else type(value).__name__
    yield from (repr(value)[:40], str(value)[:40])
    if isinstance(value, float):
        yield f"{value:g}"
    if isinstance(value, torch.Tensor | np.ndarray):
        yield from (str(value.dtype), str(tuple(value.shape)), str(list(value.shape)))
        yield from (str(getattr(value, "device", "array")), str(getattr(value, "layout", "array")))
        yield from ("x".join(map(str, value.shape)), "that are not", "NaN", "differs")
    elif isinstance(value, Sized):
        yield from (f"{len(value)} ", f"got {len(value)}", f"({len(value)},)")
        yield from () if len(value) else ("none", "nothing", "None")
    elif dataclasses.is_dataclass(value):
        for name in (f.name for f in dataclasses.fields(value)):
            yield from told_of(getattr(value, name))
    elif callable(value):
        yield "(x)"  # what it makes of one
    if isinstance(value, Iterable) and getattr(value, "ndim", 1):
        values = value.values() if isinstance(value, dict) else value
        for entry in itertools.islice(itertools.chain(value, values), 20):
            yield from told_of(entry) if not isinstance(entry, str) else (repr(entry), entry)


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def short(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    text = repr(value) if dtype is None else f"{dtype}{tuple(value.shape)}"
    return text if len(text) < 60 else text[:57] + "..."
