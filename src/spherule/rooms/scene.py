"""What a room is made of: a box-shaped shell with recessed openings, and pieces that stand in it.

Lengths are meters, z is up, the floor is z = 0 and the shell reaches from the origin to `size`.
Everything a ray can meet is a surface; the tables of a scene say what each surface is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spherule.geometry.rotations import about_z
from spherule.rooms.classes import CLASSES

Vector: TypeAlias = Sequence[float] | NDArray[np.float64]
BOX, CYLINDER, ELLIPSOID = range(3)
CEILING = 5
"""A face of the shell: 0 to 3 are the walls x = 0, x = size, y = 0, y = size, 4 is the floor."""


class Part(NamedTuple):
    """One solid in the frame of its piece. A cylinder is upright; half holds the half sides."""

    kind: int
    center: tuple[float, float, float]
    half: tuple[float, float, float]
    material: int


class Material(NamedTuple):
    """A texture of `textures.py`, two colors (linear RGB), its parameters and its own seed."""

    texture: int
    a: NDArray[np.float64]
    b: NDArray[np.float64]
    p: tuple[float, float]
    seed: int


@dataclass(frozen=True)
class Opening:
    """A rectangle of a wall that is set back: `low` and `high` are along the wall and in height."""

    wall: int
    low: tuple[float, float]
    high: tuple[float, float]
    recess: float
    reveal: int
    """Surface of the four sides."""
    panel: int
    """Surface of the far side: the glass of a window, the leaf of a door."""


@dataclass(frozen=True)
class Piece:
    """Solids that share a frame: local = axes @ (world - origin)."""

    origin: NDArray[np.float64]
    axes: NDArray[np.float64]
    kinds: NDArray[np.int64]
    centers: NDArray[np.float64]
    halves: NDArray[np.float64]
    surface: int
    """Of the first solid; the others follow."""
    casts: NDArray[np.int64]
    """The solids large enough to cast a shadow in the light of lamps."""
    bound_center: NDArray[np.float64] = field(init=False)
    """Of a sphere around all of it, in the world."""
    bound_radius: float = field(init=False)

    def __post_init__(self) -> None:
        low, high = self.extent
        center = self.origin + (low + high) / 2 @ self.axes
        object.__setattr__(self, "bound_center", center)
        object.__setattr__(self, "bound_radius", float(np.linalg.norm(high - low)) / 2)

    @cached_property
    def blockers(self) -> NDArray[np.float64]:
        """Half sides of the boxes that cast the solids' shadows: a box instead of a cylinder or an
        ellipsoid of about its size.
        """
        flat = np.array([1.0, 0.88, 0.8])[self.kinds]
        return self.halves * np.stack([flat, flat, np.where(self.kinds == ELLIPSOID, 0.8, 1.0)], 1)

    @cached_property
    def extent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The least and greatest coordinates in its own frame."""
        return (self.centers - self.halves).min(0), (self.centers + self.halves).max(0)


@dataclass(frozen=True)
class Lamp:
    """A rectangle that shines along `normal`; power is what it sends out, by color."""

    center: NDArray[np.float64]
    half: tuple[float, float]
    """Half sides: x and y of a ceiling panel, along the wall and z of a window."""
    normal: NDArray[np.float64]
    power: NDArray[np.float64]
    panel: bool
    """Whether it is seen as a bright rectangle of the ceiling."""


@dataclass(frozen=True)
class Sun:
    """Parallel light that enters through the windows."""

    towards: NDArray[np.float64]
    """Unit vector from the room to the sun."""
    color: NDArray[np.float64]


@dataclass(frozen=True)
class Surfaces:
    """What each surface is, by its number."""

    label: NDArray[np.uint8]
    instance: NDArray[np.int64]
    """Things of a class are counted from 1."""
    material: NDArray[np.int64]
    half: NDArray[np.float32]


@dataclass(frozen=True)
class Materials:
    """A table of `Material`."""

    texture: NDArray[np.uint8]
    a: NDArray[np.float32]
    b: NDArray[np.float32]
    p: NDArray[np.float32]
    seed: NDArray[np.uint32]

    @classmethod
    def table(cls, materials: Sequence[Material]) -> "Materials":
        texture, a, b, p, seed = zip(*materials, strict=True)
        return cls(
            np.array(texture, np.uint8),
            np.array(a, np.float32),
            np.array(b, np.float32),
            np.array(p, np.float32),
            np.array(seed, np.uint32),
        )


@dataclass(frozen=True)
class Scene:
    """A room and where the camera stands in it."""

    kind: str
    """office, conferenceRoom, ..."""
    size: NDArray[np.float64]
    camera: NDArray[np.float64]
    openings: tuple[Opening, ...]
    pieces: tuple[Piece, ...]
    surfaces: Surfaces
    materials: Materials
    lamps: tuple[Lamp, ...]
    sun: Sun | None
    ambient: NDArray[np.float64]
    """Light that comes from everywhere, by color."""
    exposure: float
    seed: int


class Workshop:
    """Collects the surfaces of a scene while it is built."""

    def __init__(self, shadowless: Sequence[int] = ()) -> None:
        """Solids with `shadowless` textures cast no shadows: books between shelves, lamps."""
        self.shadowless = tuple(shadowless)
        self.materials: list[Material] = []
        self.pieces: list[Piece] = []
        self.openings: list[Opening] = []
        self._surfaces: list[tuple[int, int, int, tuple[float, float, float]]] = []
        self._counts = [0] * len(CLASSES)

    def material(
        self,
        texture: int,
        a: Vector,
        b: Vector = (0.0, 0.0, 0.0),
        p: tuple[float, float] = (0.0, 0.0),
    ) -> int:
        """A new material with a seed of its own."""
        first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
        seed = 7 + 13 * len(self.materials)
        self.materials.append(Material(texture, first, second, p, seed))
        return len(self.materials) - 1

    def instance(self, label: str) -> int:
        """The next number for a thing of this class."""
        self._counts[CLASSES.index(label)] += 1
        return self._counts[CLASSES.index(label)]

    def surface(
        self,
        label: str,
        instance: int,
        material: int,
        half: tuple[float, float, float] = (0.0, 0.0, 0.0),
    ) -> int:
        self._surfaces.append((CLASSES.index(label), instance, material, half))
        return len(self._surfaces) - 1

    def material_of(self, surface: int) -> int:
        return self._surfaces[surface][2]

    def place(
        self,
        things: Sequence[tuple[str, Sequence[Part]]],
        at: Vector,
        turn: float = 0.0,
        axes: NDArray[np.float64] | None = None,
    ) -> Piece:
        """Put things, each a class and its solids, into the room as one piece, turned about z."""
        first = len(self._surfaces)
        parts: list[Part] = []
        for label, solids in things:
            number = self.instance(label)
            for part in solids:
                self.surface(label, number, part.material, part.half)
                parts.append(part)
        casts = [
            k
            for k, part in enumerate(parts)
            if self._surfaces[first + k][0] != CLASSES.index("window")
            and self.materials[part.material].texture not in self.shadowless
            and sorted(part.half)[1] >= 0.02
        ]
        piece = Piece(
            np.asarray(at, np.float64),
            about_z(-turn) if axes is None else axes,
            np.array([part.kind for part in parts]),
            np.array([part.center for part in parts], np.float64),
            np.array([part.half for part in parts], np.float64),
            first,
            np.array(casts, np.int64),
        )
        self.pieces.append(piece)
        return piece

    def surfaces(self) -> Surfaces:
        label, instance, material, half = zip(*self._surfaces, strict=True)
        return Surfaces(
            np.array(label, np.uint8),
            np.array(instance, np.int64),
            np.array(material, np.int64),
            np.array(half, np.float32),
        )
