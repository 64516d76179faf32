"""The checker of signatures in tests: an int is fine where a float is asked for."""

from collections.abc import Callable

from beartype import BeartypeConf, beartype


def checked(function: Callable) -> Callable:
    return beartype(function, conf=BeartypeConf(is_pep484_tower=True))
