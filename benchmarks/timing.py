"""Ratios within one run: peer and ours take turns, so that a noisy machine is noisy for both.

Numbers are printed and kept in build/bench.json, which `compare.py` reads.
"""

import itertools
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from spherule.allocator import keep_memory

THREADS = 2
KEPT = Path(__file__).parent.parent / "build" / "bench.json"
LONG = 1000.0
"""Milliseconds from which on a call is its own warm-up."""
TURN = 30.0
"""Milliseconds that short calls are repeated for."""


def set_up() -> None:
    keep_memory()  # as training does: else what is measured is how often glibc gave memory back
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    print(f"{machine()}, {THREADS} threads, torch {torch.__version__}")


def machine() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def keep(script: str, name: str, low: float, median: float, high: float) -> None:
    """Keep a number of which more is better, with its quartiles."""
    KEPT.parent.mkdir(exist_ok=True)
    known = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    known[f"{script}: {name}"] = {"low": low, "median": median, "high": high}
    KEPT.write_text(json.dumps(known, indent=1, sort_keys=True))


def milliseconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def alternate(
    first: Callable[[], object], second: Callable[[], object], repeats: int
) -> tuple[list[float], list[float]]:
    """Times of both calls in milliseconds, taken in turns after one warm-up each."""
    first(), second()
    times = [(_warm(first), _warm(second)) for _ in range(repeats)]
    return [a for a, _ in times], [b for _, b in times]


def _warm(call: Callable[[], object]) -> float:
    """The call after another, if it is short: the first finds the other side's data in the caches,
    and the memory that it freed given back to the system. Of very short calls the median of many.
    """
    before = milliseconds(call)
    if before > LONG:
        return before
    return statistics.median(milliseconds(call) for _ in range(max(1, round(TURN / before))))


def compare(
    name: str,
    peer: Callable[[], object],
    ours: Callable[[], object],
    repeats: int = 15,
    *,
    ours_makes: int = 1,
) -> float:
    """Print medians and their ratio, with the spread of the ratios of single turns; where one call
    of ours does the work of several of the peer's, times are for one.
    """
    theirs, mine = alternate(peer, ours, repeats)
    mine = [time / ours_makes for time in mine]
    ratios = sorted(a / b for a, b in zip(theirs, mine, strict=True))
    ratio = statistics.median(theirs) / statistics.median(mine)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    keep(Path(sys.argv[0]).stem, name, low, ratio, high)
    print(
        f"{name:52s} peer {statistics.median(theirs):9.2f} ms  ours "
        f"{statistics.median(mine):9.2f} ms"
        f"  ratio {ratio:6.2f}  (quartiles {low:.2f} to {high:.2f})"
    )
    return ratio


def sgemm() -> float:
    """GF/s of a large product, as many threads as are set."""
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    a @ b
    taken = [milliseconds(lambda: a @ b) for _ in range(3)]
    return 2 * 1024**3 / statistics.median(taken) * 1e-6


def beside_sgemm(call: Callable[[], object], repeats: int) -> tuple[list[float], list[float]]:
    """Times of a call in milliseconds, and of each the rate of sgemm: the mean of those before and
    after it, because a virtual machine's rate changes within seconds.
    """
    call()
    times, rates = [], [sgemm()]
    for _ in range(repeats):
        times.append(_warm(call))
        rates.append(sgemm())
    return times, [(a + b) / 2 for a, b in itertools.pairwise(rates)]


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    low, median, high = statistics.quantiles(values, n=4)
    return low, median, high
