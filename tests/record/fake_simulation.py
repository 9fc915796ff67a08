"""A simulation without chips: bodies where a test puts them, messages that a test makes up."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from avrswarm.chip.state import allocate
from avrswarm.program import load_program
from avrswarm.record.fates import HEARD, SENT
from avrswarm.robot.messages import Message
from avrswarm.scene import place_robots
from avrswarm.scene.build import make_robots, make_scene_motors, make_scene_world
from avrswarm.scene.read import check_scene

STEP_S = 0.004
FRAME_S = 34_968 / 8e6


def make_scene(points, **sections):
    content = {
        "scene": {"name": "fake"},
        "robots": [
            {
                "firmware": "blink",
                "placement": {"kind": "at", "points_mm": [list(p) for p in points]},
            }
        ],
        "optics": {"preset": "ideal"},
        "record": {"pictures": False},
    }
    for name, values in sections.items():
        if isinstance(values, dict):
            content[name] = {**content.get(name, {}), **values}
        else:
            content[name] = values
    return check_scene(content, Path("fake.toml"))


class FakeSimulation:
    def __init__(self, scene):
        self.scene = scene
        placed = place_robots(scene)
        self.group = placed.group
        self.traits = make_robots(scene, placed)
        self.world = make_scene_world(scene, placed)
        self.motors = make_scene_motors(scene, self.traits)
        programs = [load_program(group.firmware) for group in scene.robots]
        self.robots = [SimpleNamespace(program=programs[group]) for group in placed.group]
        self.chips = allocate(len(self.robots))
        self.seed = scene.scene.seed
        self.faults = []
        self.colours = np.zeros(len(self.robots), np.int64)
        self.steps = 0
        self.sent, self.heard, self.uart = [], [], []

    @property
    def time_s(self):
        return self.steps * STEP_S

    def led_colours(self):
        return self.colours.copy()

    def drain_sent(self):
        return self._due("sent", SENT, 2)

    def drain_heard(self):
        return self._due("heard", HEARD, 1)

    def drain_uart(self):
        printed, self.uart = self.uart, []
        return printed

    def digest(self):
        return f"{self.steps:064x}"

    def step(self, count=1):
        self.steps += count

    def _due(self, name, dtype, column):
        rows = getattr(self, name)
        due = [row for row in rows if row[column] <= self.time_s]
        setattr(self, name, [row for row in rows if row[column] > self.time_s])
        return np.array(due, dtype)

    # ---- making things up ------------------------------------------------------------------------

    def send(self, robot, start_s, data=b"", *, pulses=None, to=(), bad=(), gains=(700, 150)):
        """One frame, and who hears it rightly or wrongly."""
        frame = np.frombuffer(Message.make(0, data).pack(), np.uint8)
        end_s = start_s + (FRAME_S if pulses is None else 2420 / 8e6)
        complete = int(pulses is None)
        self.sent.append((robot, start_s, end_s, pulses or 74, complete, frame))
        for receiver in to:
            self.heard.append((receiver, end_s + 2e-6, frame, 1, *gains))
        for receiver in bad:
            self.heard.append((receiver, end_s + 2e-6, frame ^ 4, 0, *gains))
