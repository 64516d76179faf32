"""How OpenMP's threads wait for each other. To be said before torch is loaded."""

import os
import sys

_SPINS = 1_000
"""Turns of libgomp's waiting loop, some hundredths of a millisecond: longer than what lies between
two loops of an operator, far shorter than what another program takes of a core."""

_CHOSEN = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")


def spin_briefly() -> bool:
    """Let threads of this process and its children spin for a moment and then sleep; whether that
    could be done.

    By default they spin for milliseconds: on a machine whose cores others use too, many times as
    slow. The command line does this by itself; importing the package does not. What the environment
    says already stands, and once torch is loaded it is too late.
    """
    if "torch" in sys.modules or any(name in os.environ for name in _CHOSEN):
        return False
    os.environ["GOMP_SPINCOUNT"] = str(_SPINS)
    return True
