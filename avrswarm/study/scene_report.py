"""What will this scene run? All checks that a run would make, and a summary, without running it."""

from __future__ import annotations

from typing import Any

from avrswarm.program import load_program
from avrswarm.record.watch import Watch
from avrswarm.scene import Scene, build, list_scenes, place_robots, read_scene


def check_whole(scene: Scene) -> None:
    """Place the robots, load their programs and find what is watched.

    Raises
    ------
    AvrSwarmError
        If the scene cannot be run; the message says why.
    """
    placed = place_robots(scene)
    programs = [load_program(group.firmware) for group in scene.robots]
    build.make_robots(scene, placed)
    build.make_scene_optics(scene)
    Watch(scene, [programs[group] for group in placed.group.tolist()])


def describe_scene(scene: Scene) -> dict[str, Any]:
    """Return a summary as plain data, in the form that ``avrswarm scene-check --json`` prints."""
    return {
        "file": str(scene.path) if scene.path else None,
        "name": scene.scene.name,
        "description": scene.scene.description,
        "seconds": scene.scene.seconds,
        "seed": scene.scene.seed,
        "robots": scene.robot_count,
        "groups": [
            {
                "name": group.name or group.firmware.stem,
                "count": group.places,
                "firmware": str(group.firmware),
                "placement": group.placement.kind,
            }
            for group in scene.robots
        ],
        "arena": scene.arena.model_dump(mode="json"),
        "optics": scene.optics.preset,
        "lights": len(scene.lights),
        "objects": len(scene.objects),
        "commands": [
            {"at_s": command.at_s, "command": command.command} for command in scene.controller
        ],
    }


def describe_shipped() -> list[dict[str, Any]]:
    """Return what comes with the package, lessons in their order first."""
    found = []
    for name, path, title in list_scenes():
        scene = read_scene(path)
        found.append(
            {
                "name": name,
                "robots": scene.robot_count,
                "seconds": scene.scene.seconds,
                "title": title,
                "file": str(path),
            }
        )
    return found
