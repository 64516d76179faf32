"""When one rank fails, the others must not wait for it, and should say whose fault it was."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import torch.distributed as dist
from torch.distributed.distributed_c10d import _get_default_store

PATIENCE = 10.0
"""Seconds in which ranks that can still say something do so."""


class RankError(ConnectionError):
    """Another rank failed, so that this one cannot go on."""


@contextmanager
def named_faults() -> Iterator[None]:
    """What ends one rank ends all, with a message that names it.

    Around all that ranks do together, once after `init_process_group`. A rank that raises leaves a
    note for the others. Those find it when their next collective fails, which is as soon as the
    other process is gone, and at the latest after the process group's time-out; where there is no
    note, they name the ranks that no longer answer.
    """
    try:
        yield
    except Exception as error:
        if dist.is_initialized() and dist.get_world_size() > 1:
            _leave_note(error)
            if _is_consequence(error):
                raise RankError(_whose_fault(error)) from error
        raise


def _is_consequence(error: BaseException) -> bool:
    """Whether a collective failed, rather than what this rank itself does."""
    return isinstance(error, dist.DistError) or (
        isinstance(error, RuntimeError) and "gloo" in str(error).lower()
    )


def _leave_note(error: BaseException) -> None:
    note = "" if _is_consequence(error) else f"{type(error).__name__}: {error}"
    with suppress(Exception):  # the store may be gone with the rank that held it
        _get_default_store().set(_key(dist.get_rank()), note)


def _whose_fault(error: BaseException) -> str:
    me, world = dist.get_rank(), dist.get_world_size()
    silent = set(range(world)) - {me}
    end = time.monotonic() + PATIENCE
    try:
        store = _get_default_store()
        while silent and time.monotonic() < end:
            for rank in sorted(silent):
                if store.check([_key(rank)]):
                    silent.remove(rank)
                    if note := store.get(_key(rank)).decode():
                        return f"rank {rank} failed: {note}"
            time.sleep(0.05)
    except Exception:
        return f"rank 0 is gone, or the host that the ranks met at ({error})"
    if not silent:
        return f"rank {me} of {world}: {error}"
    ranks = ", ".join(map(str, sorted(silent)))
    return f"rank{'s' if len(silent) > 1 else ''} {ranks} of {world} no longer answer: {error}"


def _key(rank: int) -> str:
    return f"spherule/fault/{rank}"
