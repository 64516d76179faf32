"""Procedural rooms, ray-traced: panoramas with labels and depth that are exact by construction."""

from spherule.data.rooms.build import room
from spherule.data.rooms.render import View, render
from spherule.data.rooms.scene import Scene
from spherule.data.rooms.source import Rooms, RoomsConfig
from spherule.data.rooms.stanford_layout import write_stanford_layout
from spherule.data.rooms.trace import Hits, trace

__all__ = [
    "Hits",
    "Rooms",
    "RoomsConfig",
    "Scene",
    "View",
    "render",
    "room",
    "trace",
    "write_stanford_layout",
]
