"""Procedural rooms, ray-traced: colors, labels and depth that are exact by construction."""

from spherule.rooms.build import room
from spherule.rooms.classes import CLASSES
from spherule.rooms.render import View, render
from spherule.rooms.scene import Scene
from spherule.rooms.trace import Hits, trace

__all__ = ["CLASSES", "Hits", "Scene", "View", "render", "room", "trace"]
