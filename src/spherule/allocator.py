"""Memory that is freed and wanted again: the C library's habit of handing it back, and how to
break it.
"""

import ctypes
import sys
from functools import cache

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
"""glibc's numbers for `mallopt`."""


@cache
def keep_memory() -> bool:
    """Let this process keep what it frees; whether that could be done.

    By default glibc returns large blocks to the system at once and gets them back page by page,
    each zeroed: a third of a training step. A process that keeps them holds its peak until it ends.
    Training and runs on disk do this by themselves; importing the package does not. Elsewhere than
    on glibc nothing is done.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # another C library
        return False
    return bool(mallopt(_MMAP_MAX, 0) and mallopt(_TRIM_THRESHOLD, -1))
