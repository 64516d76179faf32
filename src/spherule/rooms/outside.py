"""The view out of a window."""

import numpy as np
from numpy.typing import NDArray

from spherule.rooms.noise import noise
from spherule.rooms.scene import Scene


def outside(scene: Scene, d: NDArray[np.float32]) -> NDArray[np.float32]:
    """Sky with clouds, houses and trees on the horizon, a lawn and a road, by direction (3, n)."""
    seed = np.full(d.shape[1], scene.seed % 2**31, np.uint32)
    height = d[2] / np.maximum(np.hypot(d[0], d[1]), 1e-4)
    around = np.arctan2(d[1], d[0])
    none = np.zeros_like(around)
    cloud = noise(around * 5, height * 9, seed) + 0.5 * noise(around * 12, height * 20, seed)
    cloud = np.clip(cloud, 0, 1)
    up = np.clip(height * 1.4, 0, 1)
    sky = np.stack([1.5 - 0.9 * up, 1.75 - 0.7 * up, 2.0 - 0.25 * up])
    sky = sky + (2.0 - sky) * 0.7 * cloud
    block = np.floor(around * 14)
    house = 0.02 + 0.18 * np.maximum(noise(block * 0.93, none, seed + 3), 0)
    wall = 0.6 + 0.25 * noise(block, none, seed + 5)
    pane = (np.mod(height * 50, 1.0) < 0.5) & (np.mod(around * 70, 1.0) < 0.5)
    houses = np.stack([wall, wall * 0.94, wall * 0.86]) * np.where(pane, 0.6, 1.0)
    tree = 0.05 + 0.06 * noise(around * 9, none, seed + 1)
    tree = tree + 0.025 * noise(around * 60, height * 60, seed + 2)
    leafy = 0.34 + 0.22 * noise(around * 60, height * 60, seed + 4)
    trees = np.stack([0.45 * leafy, 0.62 * leafy, 0.25 * leafy])
    away = 1 / np.maximum(-height, 0.02)
    x, y = np.cos(around) * away, np.sin(around) * away
    patch = 1 + 0.25 * noise(x * 2, y * 2, seed + 6)
    lawn = np.stack([0.30 * patch, 0.42 * patch, 0.17 * patch])
    turn = scene.seed % 7
    road = np.abs(np.cos(turn) * x + np.sin(turn) * y - 4.0) < 0.8
    ground = np.where(road, np.float32(0.5), lawn)
    view = np.where(height < house, houses, sky)
    view = np.where(height < tree, trees, view)
    return np.where(height < -0.05, ground, view).astype(np.float32)
