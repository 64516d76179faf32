"""Attention, and everything around it, for fields that live on a sphere."""

import importlib
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spherule import data, distributed, geometry, grids, models, nn, objectives, ops, pde, rooms
    from spherule.geometry import Neighborhood
    from spherule.grids import Grid
    from spherule.ops import equivariance_error

__version__ = version("spherule")
__all__ = [
    "Grid",
    "Neighborhood",
    "__version__",
    "data",
    "distributed",
    "equivariance_error",
    "geometry",
    "grids",
    "models",
    "nn",
    "objectives",
    "ops",
    "pde",
    "rooms",
]

_HOMES = {"Grid": "grids", "Neighborhood": "geometry", "equivariance_error": "ops"}


def __getattr__(name: str) -> Any:
    """Packages are imported when they are used: torch takes seconds, and help needs none."""
    if name in _HOMES:
        value = getattr(importlib.import_module(f"spherule.{_HOMES[name]}"), name)
    elif name in __all__:
        value = importlib.import_module(f"spherule.{name}")
    else:
        raise AttributeError(f"module 'spherule' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
