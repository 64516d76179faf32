"""All recipes, and how they are found by name."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from spherule import checks
from spherule.recipes import tables, titles
from spherule.recipes.paper import PUBLISHED, Published
from spherule.recipes.rows import ABLATION, LARGE, ROWS, Row
from spherule.train import RunConfig

SIZES = ("paper", "small", "tiny")
"""What may follow a name, as in `:tiny`."""


@dataclass(frozen=True)
class Recipe:
    """A name, what the paper calls it, and the function that makes its run."""

    name: str
    title: str
    make: Callable[[str], RunConfig]
    published: Published | None = None
    """What the paper reports."""


def _table(
    prefix: str, rows: dict[str, Row], make: Callable[[Row, str], RunConfig]
) -> list[Recipe]:
    names = {key: f"{prefix}/{key}" for key in rows}
    return [
        Recipe(names[key], row.title, partial(make, row), PUBLISHED.get(names[key]))
        for key, row in rows.items()
    ]


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        *_table("swe", ROWS | ABLATION, tables.shallow_water),
        *_table("seg", ROWS | LARGE, tables.segmentation),
        *_table("depth", ROWS, tables.depth),
        *_table("forecast", ROWS, tables.forecast),
        Recipe("swe/linear", titles.LINEAR, tables.linear_water),
        Recipe("swe/spectral-transformer-local", titles.SPECTRAL, tables.spectral_water),
        Recipe("swe/spectral-transformer-local-stable", titles.STABLE, tables.stable_water),
        Recipe("swe/zonal-linear", titles.ZONAL_LINEAR, tables.zonal_linear_water),
        Recipe("swe/zonal-transformer-local", titles.ZONAL, tables.zonal_water),
        Recipe("forecast/linear", titles.LINEAR, tables.linear_forecast),
        Recipe("forecast/spectral-transformer-local", titles.SPECTRAL, tables.spectral_forecast),
    )
}
"""All recipes by name."""


@checks.arguments
def add(recipe: Recipe) -> None:
    """Make a recipe from outside the package known."""
    if recipe.name in RECIPES:
        raise ValueError(f"recipe {recipe.name!r} is known already: expected another name")
    RECIPES[recipe.name] = recipe


SHORT = {"forecast": "forecast/s2-transformer-local"}
"""Names that stand for others."""


@checks.arguments
def get(name: str) -> RunConfig:
    """The run of a name such as `swe/s2-transformer-local` or `depth/s2-transformer:tiny`."""
    base, colon, size = name.partition(":")
    base = SHORT.get(base, base)
    if base not in RECIPES:
        near = difflib.get_close_matches(base, [*RECIPES, *SHORT], n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        raise ValueError(f"name={name!r} is no recipe: {hint}spherule list shows all")
    if colon and size not in SIZES:
        raise ValueError(f"name={name!r}: size {size!r} is not one of {', '.join(SIZES)}")
    recipe = RECIPES[base]
    run = recipe.make(size or "paper")
    if size in ("", "paper"):
        return replace(run, recipe=base, title=recipe.title)
    return replace(run, recipe=f"{base}:{size}", title=f"{recipe.title}, {size}")
