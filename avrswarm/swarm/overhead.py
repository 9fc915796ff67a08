"""The overhead controller: timed commands of a scene as infrared pulses (hardware reference 8)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from avrswarm.chip.state import TIME_UNITS_PER_SECOND
from avrswarm.robot.messages import CalibrationMode, Message, MessageType, pulse_cycles
from avrswarm.scene.model import Command, Scene
from avrswarm.swarm.window import Controller

Floats = NDArray[np.float64]

CRYSTAL_HZ = 8_000_000
REPEAT_CYCLES = 83_259
"""From one frame to the next: 35 259 cycles of sending, then its LED 3 ms on and 3 ms off (8.2)."""

_TYPES = {
    "run": MessageType.RUN,
    "pause": MessageType.WAKEUP,
    "wakeup": MessageType.WAKEUP,
    "sleep": MessageType.SLEEP,
    "voltage": MessageType.VOLTAGE,
    "charge": MessageType.CHARGE,
    "reset": MessageType.RESET,
    "boot": MessageType.BOOT,
}


def message_of(command: Command) -> Message:
    """Return the message that a command sends."""
    if command.command == "message":
        assert command.type is not None
        assert command.data is not None
        return Message.make(command.type, bytes(command.data))
    if command.command == "read_uid":
        assert command.bit is not None
        return Message.make(MessageType.READUID, bytes([command.bit]))
    if command.command == "calibrate":
        return Message.make(MessageType.CALIB, _calibration(command))
    return Message.make(_TYPES[command.command])


def _calibration(command: Command) -> bytes:
    """Return the data of a CALIB message: only the fields of its mode are filled (8.4)."""
    assert command.mode is not None
    mode = CalibrationMode[command.mode.upper()]
    place = {
        CalibrationMode.SAVE: 1,
        CalibrationMode.UID: 1,
        CalibrationMode.TURN_LEFT: 3,
        CalibrationMode.TURN_RIGHT: 4,
        CalibrationMode.STRAIGHT: 5,
    }[mode]
    values = bytes(value for value in (command.left, command.right) if value is not None)
    if command.uid is not None:
        values = command.uid.to_bytes(2, "little")
    return bytes([mode]).ljust(place, b"\0") + values


def make_controller(scene: Scene, robots: int) -> Controller:
    """Return all pulses of the scene's commands in order of time; nobody is reached yet."""
    cycle_units = TIME_UNITS_PER_SECOND // CRYSTAL_HZ
    times = [np.zeros(0, np.int64)]
    commands = [np.zeros(0, np.int64)]
    for number, command in enumerate(scene.controller):
        pulses = np.array(pulse_cycles(message_of(command).pack()), np.int64)
        start = round(command.at_s * TIME_UNITS_PER_SECOND)
        frames = 1 + int(command.repeat_s * CRYSTAL_HZ) // REPEAT_CYCLES
        cycles = np.arange(frames, dtype=np.int64)[:, None] * REPEAT_CYCLES + pulses
        times.append(start + cycles.ravel() * cycle_units)
        commands.append(np.full(cycles.size, number, np.int64))
    time = np.concatenate(times)
    order = np.argsort(time, kind="stable")
    return Controller(
        time=time[order],
        command=np.concatenate(commands)[order],
        reaches=np.zeros((max(1, len(scene.controller)), robots), np.uint8),
        counts=float(scene.optics.controller_counts),
    )


def aim(
    controller: Controller, scene: Scene, x_mm: NDArray[np.float64], y_mm: NDArray[np.float64]
) -> None:
    """Work out whom each command reaches, with robots where they stand now."""
    for number, command in enumerate(scene.controller):
        if command.radius_mm is None or command.x_mm is None or command.y_mm is None:
            controller.reaches[number, :] = 1
            continue
        dx, dy = x_mm - command.x_mm, y_mm - command.y_mm
        controller.reaches[number, :] = dx * dx + dy * dy <= command.radius_mm**2
