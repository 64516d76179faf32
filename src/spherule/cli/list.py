"""`spherule list`, which imports no torch."""

import sys
from dataclasses import dataclass

from spherule.recipes.paper import PUBLISHED
from spherule.recipes.titles import TITLES


@dataclass(frozen=True)
class List:
    """Show the recipes: every row of the paper's tables."""

    def run(self) -> None:
        titles = _all_titles()
        wide, widest = (max(map(len, words)) for words in (titles, titles.values()))
        print(f"{'recipe':{wide}}  {'model':{widest}}  validation loss in the paper")
        for name, title in titles.items():
            known = PUBLISHED.get(name)
            loss = "" if known is None else f"{known.metrics['loss'][0]:.3f}"
            print(f"{name:{wide}}  {title:{widest}}  {loss}".rstrip())
        print(
            "\nEach also as NAME:small and NAME:tiny, which train on a laptop's CPU. "
            "forecast: your own data."
        )


def _all_titles() -> dict[str, str]:
    """With those that --import has added."""
    registry = sys.modules.get("spherule.recipes.registry")
    if registry is None:
        return TITLES
    return {recipe.name: recipe.title for recipe in registry.RECIPES.values()}
