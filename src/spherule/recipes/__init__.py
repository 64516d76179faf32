"""Every row of the paper's tables as a complete run, at the paper's size or smaller."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from spherule.recipes.registry import RECIPES, SIZES, Recipe, add, get

__all__ = ["RECIPES", "SIZES", "Recipe", "add", "get"]


def __getattr__(name: str) -> Any:
    """When they are used: a list of names and titles needs no torch."""
    if name not in __all__:
        raise AttributeError(f"module 'spherule.recipes' has no attribute {name!r}")
    from spherule.recipes import registry

    return getattr(registry, name)
