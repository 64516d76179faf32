"""Rooms as a source of panoramas: numbered, each the same however and wherever it is made."""

import hashlib
import operator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import NDArray

from spherule import checks
from spherule.data.panoramas import Panorama
from spherule.geometry.rotations import about_y, about_z
from spherule.grids import image_grid
from spherule.rooms import Scene, View, render, room

AREAS = 6


@dataclass(frozen=True)
class RoomsConfig:
    """What a panorama is."""

    size: str = "128x256"
    """Rows and columns of the images."""
    tilt: float = 0.0
    """The most that the camera is tilted, degrees: tops of the cameras are spread evenly over the
    cap of this radius, so that 180 is any rotation at all."""

    def __post_init__(self) -> None:
        checks.shape("size", self.size)
        checks.number("tilt", self.tilt, low=0, high=180)

    @property
    def shape(self) -> tuple[int, int]:
        return checks.shape("size", self.size)


class Rooms:
    """Panorama i of a seed, for every i >= 0 or for the first `samples`.

    Cameras look in any direction of the compass, and are tilted as the config says. Rooms belong to
    six areas in turn, as buildings do, so that areas can be held out.
    """

    def __init__(
        self, config: RoomsConfig | None = None, *, seed: int = 0, samples: int | None = None
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed={seed} must be >= 0")
        if samples is not None and samples < 1:
            raise ValueError(f"samples={samples} must be at least 1")
        self.config, self.seed, self.samples = config or RoomsConfig(), seed, samples

    def __len__(self) -> int:
        if self.samples is None:
            raise TypeError("these rooms have no end: give samples=")
        return self.samples

    def __getitem__(self, index: int) -> Panorama:
        scene, view = self.view(index)
        return Panorama(view.rgb, view.label, view.depth, self.name(index, scene), area_of(index))

    def view(self, index: int, rotation: Float[NDArray, "3 3"] | None = None) -> tuple[Scene, View]:
        """The room and what its camera sees, turned by a rotation instead of its own."""
        index = operator.index(index)
        if index < 0 or (self.samples is not None and index >= self.samples):
            end = "have no end" if self.samples is None else f"end at {self.samples}"
            raise IndexError(f"index={index}: rooms are counted from 0 and {end}")
        scene = room(self.seed, index)
        grid = image_grid(*self.config.shape)
        turned = self.rotation(index) if rotation is None else rotation
        return scene, render(scene, grid, rotation=turned)

    def rotation(self, index: int) -> NDArray[np.float64]:
        """How the camera of a room is turned: R of f'(x) = f(R^-1 x)."""
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index, 1)))
        alpha, gamma = rng.uniform(0, 2 * np.pi, 2)
        low = np.cos(np.radians(self.config.tilt))
        beta = np.arccos(np.clip(1 - rng.random() * (1 - low), -1, 1))
        return about_z(alpha) @ about_y(beta) @ about_z(gamma)

    def name(self, index: int, scene: Scene) -> str:
        """camera_<hash>_<room>, as Stanford's files are named."""
        key = hashlib.blake2b(f"{self.seed} {index}".encode(), digest_size=16).hexdigest()
        return f"camera_{key}_{room_of(index, scene)}"


def area_of(index: int) -> str:
    return f"area_{index % AREAS + 1}"


def room_of(index: int, scene: Scene) -> str:
    """Kind and number of a room within its area."""
    return f"{scene.kind}_{index // AREAS + 1}"
