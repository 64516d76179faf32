"""Augmentation of panoramas: image, labels and depth moved alike, labels and depths never mixed."""

import math
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, UInt8
from numpy.typing import ArrayLike

from spherule import checks
from spherule.data.panoramas import Panorama
from spherule.geometry.great_circles import angles
from spherule.geometry.interpolation import bilinear_entries
from spherule.geometry.rotations import about_y, about_z
from spherule.grids import image_grid


@dataclass(frozen=True)
class Augmentation:
    """What may happen to a panorama: decided by seed, epoch and index alone.

    Distances from the camera are the same however it is turned, so depth only moves.
    """

    roll: bool = True
    """Turn about the vertical by whole pixels."""
    mirror: bool = True
    """Exchange left and right, every other time."""
    jitter: float = 0.2
    """Brightness, contrast and saturation, each times a factor of 1 - jitter to 1 + jitter."""
    tilt: float = 0.0
    """Tilt the camera, its zenith uniform within this angle (radians) of the vertical; pi is any
    rotation. Colors are interpolated, labels and depths are those of the nearest pixel.
    """
    seed: int = 0

    def __post_init__(self) -> None:
        checks.config(self)
        if not 0 <= self.jitter < 1:
            raise ValueError(f"jitter={self.jitter} must be in [0, 1): a part of the colors")
        if not 0 <= self.tilt <= math.pi:
            raise ValueError(
                f"tilt={self.tilt} must be in [0, pi] radians; use math.radians for degrees"
            )
        if self.seed < 0:
            raise ValueError(f"seed={self.seed} must be >= 0")

    @checks.arguments
    def __call__(self, panorama: Panorama, epoch: int, index: int) -> Panorama:
        checks.integer("epoch", epoch, low=0)
        checks.integer("index", index, low=0)
        rng = np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(epoch, index)))
        # All are drawn, wanted or not: switching one off leaves the others as they were.
        turn, flip, (axis, height), factors = (
            rng.random(),
            rng.random() < 0.5,
            rng.random(2),
            1 + self.jitter * rng.uniform(-1, 1, 3),
        )
        if self.tilt > 0:
            angle = math.acos(1 - height * (1 - math.cos(self.tilt)))
            panorama = rotated(panorama, tilt_matrix(2 * math.pi * axis, angle))
        if self.roll:
            panorama = rolled(panorama, int(turn * panorama.label.shape[1]))
        if self.mirror and flip:
            panorama = mirrored(panorama)
        if self.jitter > 0:
            panorama = replace(panorama, rgb=jittered(panorama.rgb, *factors))
        return panorama


def rolled(panorama: Panorama, columns: int) -> Panorama:
    """Turned about the vertical, eastward by so many pixels."""
    rgb, label, depth = (
        np.roll(array, columns, axis=1) for array in (panorama.rgb, panorama.label, panorama.depth)
    )
    return replace(panorama, rgb=rgb, label=label, depth=depth)


def mirrored(panorama: Panorama) -> Panorama:
    rgb, label, depth = (
        np.ascontiguousarray(array[:, ::-1])
        for array in (panorama.rgb, panorama.label, panorama.depth)
    )
    return replace(panorama, rgb=rgb, label=label, depth=depth)


def rotated(panorama: Panorama, R: ArrayLike) -> Panorama:
    """Rotated, f'(x) = f(R^-1 x): RGB bilinear, label and depth of the pixel that holds R^-1 x."""
    nlat, nlon = panorama.label.shape
    grid = image_grid(nlat, nlon)
    theta, phi = angles(grid.xyz @ np.asarray(R, dtype=np.float64))
    phi %= 2 * math.pi
    entries = bilinear_entries(grid, theta, phi)
    rgb = np.stack(
        [
            np.bincount(entries.row, entries.weight * channel[entries.column], minlength=theta.size)
            for channel in panorama.rgb.reshape(-1, 3).T
        ],
        axis=-1,
    )
    row = np.minimum((theta * nlat / math.pi).astype(np.int64), nlat - 1)
    column = (phi * nlon / (2 * math.pi)).astype(np.int64) % nlon
    return replace(
        panorama,
        rgb=np.rint(rgb).clip(0, 255).astype(np.uint8).reshape(panorama.rgb.shape),
        label=panorama.label[row, column].reshape(nlat, nlon),
        depth=panorama.depth[row, column].reshape(nlat, nlon),
    )


def tilt_matrix(axis: float, angle: float) -> Float[np.ndarray, "3 3"]:
    """The rotation that moves the zenith by an angle towards longitude `axis`, turning nothing."""
    turn = about_z(axis)
    return turn @ about_y(angle) @ turn.T


def jittered(
    rgb: UInt8[np.ndarray, "nlat nlon 3"], brightness: float, contrast: float, saturation: float
) -> UInt8[np.ndarray, "nlat nlon 3"]:
    """Colors times these factors: of all, about the mean gray, and about each pixel's gray."""
    grid = image_grid(*rgb.shape[:2])
    luma = np.array([0.299, 0.587, 0.114])
    color = rgb * brightness
    mean = (grid.weights * (color @ luma)).sum() / grid.weights.sum()
    color = mean + contrast * (color - mean)
    gray = (color @ luma)[..., None]
    color = gray + saturation * (color - gray)
    return np.rint(color).clip(0, 255).astype(np.uint8)
