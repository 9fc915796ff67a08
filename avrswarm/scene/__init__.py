"""What shall be run? A TOML file becomes checked data, and the data becomes robots on a table.

- ``model``: every key a scene may have, with unit, default, limits and meaning
- ``read``: TOML and ``--set key=value`` to a ``Scene``; mistakes become messages that say what to
write
- ``shipped``: scenes and firmware that come with the package, found by bare name
- ``columns``, ``picture``, ``obstacles``: files and shapes that a scene refers to
- ``place``: where the robots stand
- ``build``: the world, light, optics and calibration values of a scene
- ``describe``: all keys as a table, for the documentation
"""

from avrswarm.scene.model import Scene
from avrswarm.scene.place import Placed, place_robots
from avrswarm.scene.read import read_scene, scene_of
from avrswarm.scene.shipped import find_firmware, find_scene, list_scenes

__all__ = [
    "Placed",
    "Scene",
    "find_firmware",
    "find_scene",
    "list_scenes",
    "place_robots",
    "read_scene",
    "scene_of",
]
