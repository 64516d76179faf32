"""Calls drawn at random over the whole public API: each answers, or says which argument is wrong
and why.
"""

import faulthandler
import importlib
import re
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.malformed.calls import CALLS

pytestmark = pytest.mark.usefixtures("unchecked")

EVERY_DAY, ALL, CHUNK = 500, 5000, 50
SECONDS = 2
NOT_CALLED = {
    # Results that functions fill in, names to inherit from, constants; what writes files or needs a
    # trained model.
    "grids": {"Match", "healpix"},
    "nn": {"Bound", "Placed", "place"},
    "models": {"MODELS", "MODEL_CONFIGS", "LinearFit", "Model", "ModelConfig"},
    "objectives": {"MeanStd"},
    "pde": {"EARTH", "AdamsBashforth3", "Equation", "Heun3", "Integrator", "initial_states"},
    "rooms": {"CLASSES", "Hits", "Scene", "View"},
    "tasks": {"DepthTask", "ForecastTask", "SegmentationTask", "ShallowWaterTask"},
    "data": {"CLASSES", "BadPanorama", "Fold", "PanoramaSource", "PanoramaStatistics"}
    | {"write_panoramas", "write_store"},
    "train": {"TASKS", "Interrupted", "StepEvent", "Task", "TaskConfig", "Trained", "Trainer"}
    | {"measure"},
}


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


@pytest.mark.parametrize("package", sorted({call.split(".")[0] for call in CALLS}))
def test_every_public_name_is_called_here(package: str) -> None:
    called = {call.split(".")[1].rstrip("()") for call in CALLS if call.startswith(f"{package}.")}
    public = set(importlib.import_module(f"spherule.{package}").__all__)
    assert public - called - NOT_CALLED.get(package, set()) == set()


@pytest.mark.parametrize("name", CALLS)
def test_arguments_that_fit_are_taken(name: str) -> None:
    function, kinds = CALLS[name]
    if all(kind.right for kind in kinds.values()):
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
    except (TypeError, ValueError) as error:
        words = str(error)
        if not bad:
            return None  # values that fit alone need not fit each other
        if not any(re.search(rf"(?<![a-z_]){key}(?![a-z_])", words) for key in bad) and not any(
            str(value) in words for key in bad if isinstance(value := arguments[key], Path)
        ):
            return f"{call}: names none of it: {type(error).__name__}: {words}"
        if not re.search(r"expected|must|needs|lacks|not|none|no ", words):
            return f"{call}: tells not what was expected: {words}"
    except FileNotFoundError as error:
        if not any(str(arguments[key]) in str(error) for key in bad):
            return f"{call}: names none of it: {error}"
    except BaseException as error:
        return f"{call}: {type(error).__name__}: {error}"
    else:
        return f"{call}: taken" if bad else None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def short(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    text = repr(value) if dtype is None else f"{dtype}{tuple(value.shape)}"
    return text if len(text) < 60 else text[:57] + "..."
