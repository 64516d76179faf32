"""Rooms of a seed stay what they were: numbers of trained models depend on them.

    python -m tests.rooms.test_recorded

records them anew, when rooms are to be others; then everything measured on them is old.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from spherule.rooms import Scene, render, room
from spherule.rooms.textures import TEXTURES, Spot

RECORDED = Path(__file__).parent / "recorded.json"
SCENES, PICTURES = 40, 12


def numbers_of(scene: Scene) -> list[float]:
    """Sums over all that a scene is made of."""
    pieces, table = scene.pieces, scene.materials
    parts = [
        [p.origin @ (1, 2, 3) + p.axes.ravel() @ np.arange(9) for p in pieces],
        [(p.centers @ (1, 2, 3)).sum() for p in pieces],
        [(p.halves @ (1, 2, 3)).sum() for p in pieces],
        [p.casts.sum() for p in pieces],
        [np.sum(o) for o in (scene.size, scene.camera, scene.ambient, scene.exposure)],
        [lamp.center @ (1, 2, 3) + np.sum(lamp.half) + lamp.power.sum() for lamp in scene.lamps],
        [scene.surfaces.label.sum(), scene.surfaces.material.sum()],
        [np.sum(x, dtype=np.float64) for x in (table.texture, table.a, table.b, table.p)],
    ]
    return [float(np.sum(part)) for part in parts]


def colors_of(scene: Scene) -> list[list[float]]:
    """Mean and deviation of each color of a picture, and of depth."""
    view = render(scene, "16x32")
    values = np.concatenate([view.rgb, np.nan_to_num(view.depth)[..., None]], -1).reshape(-1, 4)
    return [values.mean(0).tolist(), values.std(0).tolist()]


def samples_of(texture: Callable[[Spot], np.ndarray], count: int = 600) -> list[float]:
    """Sums of its colors over places of all kinds, each with a weight of its own."""
    draw = np.random.default_rng(0).uniform
    u, v = draw(-3, 3, (2, count)).astype(np.float32)
    halves = draw(0.1, 2, (2, count)).astype(np.float32)
    a, b = draw(0, 1, (2, 3, count)).astype(np.float32)
    p, q = np.maximum(draw(-0.3, 1.2, (2, count)), 0).astype(np.float32)
    seed = np.arange(count, dtype=np.uint32)
    footprint = draw(0.001, 0.1, count).astype(np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):  # what has no width needs none
        colors = np.nan_to_num(texture(Spot(u, v, *halves, a, b, p, q, seed, footprint)))
    return (colors.astype(np.float64) @ draw(0, 1, (count, 2)) / count).ravel().tolist()


def test_textures_stay_what_they_were() -> None:
    recorded = json.loads(RECORDED.read_text())["textures"]
    for texture in TEXTURES:
        np.testing.assert_allclose(samples_of(texture), recorded[texture.__name__], atol=2e-5)


def test_rooms_of_a_seed_stay_what_they_were() -> None:
    recorded = json.loads(RECORDED.read_text())["scenes"]
    for index, numbers in enumerate(recorded):
        np.testing.assert_allclose(numbers_of(room(0, index)), numbers, rtol=1e-6, atol=1e-6)


def test_pictures_of_a_seed_stay_what_they_were() -> None:
    recorded = json.loads(RECORDED.read_text())["pictures"]
    for index, colors in enumerate(recorded):
        # Light is in float32.
        np.testing.assert_allclose(colors_of(room(0, index)), colors, atol=5e-4)


if __name__ == "__main__":
    scenes = [numbers_of(room(0, index)) for index in range(SCENES)]
    pictures = [colors_of(room(0, index)) for index in range(PICTURES)]
    textures = {texture.__name__: samples_of(texture) for texture in TEXTURES}
    rounded = json.loads(
        json.dumps({"scenes": scenes, "pictures": pictures, "textures": textures}),
        parse_float=lambda x: float(f"{float(x):.9g}"),
    )
    RECORDED.write_text(json.dumps(rounded, indent=1) + "\n")
