"""From a scene to the parts of a simulation: world, optics, light, what each robot is like."""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from avrswarm.program import load_eeprom
from avrswarm.randomness import Stream, draw_gaussian, draw_uniform
from avrswarm.robot.battery import BatteryState, make_batteries
from avrswarm.robot.distance_tables import DISTANCES_MM, tables_for
from avrswarm.robot.eeprom_map import (
    EEPROM_BYTES,
    ERASED,
    HIGH_GAIN_EXAMPLE,
    LOW_GAIN_EXAMPLE,
    TABLE_POINTS,
    UID,
    EepromMap,
)
from avrswarm.robot.motors import MotorState, make_motors
from avrswarm.scene.columns import read_columns
from avrswarm.scene.model import Ambient, Eeprom, Gradient, Lamp, LightImage, Scene
from avrswarm.scene.obstacles import obstacles_of
from avrswarm.scene.picture import read_grey
from avrswarm.scene.place import Placed
from avrswarm.world import optics
from avrswarm.world.build import make_world
from avrswarm.world.light import Light, make_light
from avrswarm.world.state import WorldState

CLOCK_HZ = 8_000_000
_MOST_DEVIATIONS = 3.0  # no robot is stranger than this


class Trait(IntEnum):
    """What is drawn for each robot from the stream ``SPREAD``; the number is the second counter."""

    CLOCK = 0
    START = 1
    MOTOR_VALUES = 2  # four of them
    MOTOR_GAIN = 6  # left, right
    TRANSMIT = 8
    RECEIVE = 9
    THRESHOLD = 10
    LIGHT = 11
    DRIFT = 12


Floats = NDArray[np.float64]


class Robots(NamedTuple):
    """What each robot is like; one entry per robot.

    Attributes
    ----------
    uid
        Id in its EEPROM (65535 if that is erased).
    clock_hz
        Frequency of its chip; ``drift_phase`` (0 to 1) is where in its slow change it starts.
    start_s
        When it is switched on.
    transmit_gain, receive_gain, threshold_gain
        Power of its LED, gain of its receiver, limit of its comparator, in relation to nominal.
    light_gain
        Sensitivity of its light sensor.
    calibration, motor_gain
        Duties of nominal speed (four columns) and speed in relation to nominal (two columns).
    eeprom
        Content, 1024 bytes each.
    """

    uid: NDArray[np.int64]
    clock_hz: Floats
    drift_phase: Floats
    start_s: Floats
    transmit_gain: Floats
    receive_gain: Floats
    threshold_gain: Floats
    light_gain: Floats
    calibration: Floats
    motor_gain: Floats
    eeprom: NDArray[np.uint8]


# ---- the world
# ------------------------------------------------------------------------------------------


def make_scene_world(scene: Scene, placed: Placed) -> WorldState:
    """Return the world with all robots and discs in it."""
    obstacles = obstacles_of(scene)
    motion = scene.motion
    groups = [scene.robots[number] for number in placed.group]
    discs = obstacles.discs
    radius = [g.radius_mm for g in groups] + [d.radius_mm for d in discs]
    inverse_mass = [1 / g.mass_g for g in groups]
    inverse_mass += [1 / d.mass_g if d.pushable else 0.0 for d in discs]
    return make_world(
        np.concatenate([placed.x_mm, [d.x_mm for d in discs]]),
        np.concatenate([placed.y_mm, [d.y_mm for d in discs]]),
        np.concatenate([placed.heading_rad, np.zeros(len(discs))]),
        robots=len(groups),
        radius_mm=np.array(radius),
        inverse_mass=np.array(inverse_mass),
        speed_mm_s=motion.speed_mm_s,
        turn_rad_s=math.radians(motion.turn_deg_s),
        leg_angle_deg=motion.leg_angle_deg,
        leg_radius_mm=motion.leg_radius_mm,
        speed_noise=motion.speed_noise_percent / 100,
        heading_noise_rad=math.radians(motion.heading_noise_deg),
        noise_key=scene.scene.seed,
        bounds=obstacles.bounds,
        walls=obstacles.walls,
        depth_mm=obstacles.depth_mm,
        depth_frame=obstacles.depth_frame,
    )


def make_scene_light(scene: Scene) -> Light:
    """Return the visible light of a scene."""
    ambient = 0.0
    lamps: list[list[float]] = []
    gradients: list[list[float]] = []
    image: Floats | None = None
    for number, source in enumerate(scene.lights):
        if isinstance(source, Ambient):
            ambient += source.lux
        elif isinstance(source, Lamp):
            lamps.append([source.x_mm, source.y_mm, source.height_mm, source.intensity_cd])
        elif isinstance(source, Gradient):
            angle = math.radians(source.direction_deg)
            slope = source.lux_per_m / 1000
            gradients.append([source.middle_lux, slope * math.cos(angle), slope * math.sin(angle)])
        else:
            assert isinstance(source, LightImage)
            pixels = read_grey(source.path) * source.white_lux
            if image is not None and image.shape != pixels.shape:
                raise scene.error(f"lights.{number}.path", "all light images must have one size")
            image = pixels if image is None else image + pixels
    return make_light(
        ambient,
        np.array(lamps).reshape(-1, 4),
        np.array(gradients).reshape(-1, 3),
        image,
        scene.arena.width_mm,
        scene.arena.height_mm,
    )


def make_scene_optics(scene: Scene) -> optics.Optics:
    """Return infrared amplitude against distance."""
    wanted = scene.optics
    match wanted.model:
        case "calibrated":
            return optics.calibrated_optics(wanted.range_mm)
        case "inverse_square":
            return optics.inverse_square_optics(wanted.range_mm, wanted.path_gain)
        case "disc":
            return optics.disc_optics(wanted.range_mm, wanted.disc_counts)
        case "table":
            return _table_optics(scene)


def _table_optics(scene: Scene) -> optics.Optics:
    path = scene.optics.table
    assert path is not None
    try:
        columns = read_columns(path, ["distance_mm", "low_gain_counts"])
    except ValueError as error:
        raise scene.error("optics.table", str(error)) from None
    distances = np.array(columns["distance_mm"])
    counts = np.array(columns["low_gain_counts"])
    if len(distances) < 2 or (np.diff(distances) <= 0).any() or distances[0] < 0:
        raise scene.error("optics.table", f"{path}: distance_mm must rise, with two rows or more")
    if (counts < 0).any() or (np.diff(counts) > 0).any():
        raise scene.error("optics.table", f"{path}: low_gain_counts must fall and not be negative")
    return optics.table_optics(distances, counts)


# ---- the robots
# -----------------------------------------------------------------------------------------


def make_robots(scene: Scene, placed: Placed) -> Robots:
    """Return what each robot is like, drawn from the scene's spread."""
    count = len(placed.group)
    spread, light = scene.spread, scene.optics
    motion = scene.motion
    nominal = np.array(
        [motion.turn_left, motion.turn_right, motion.straight_left, motion.straight_right]
    )
    scatter = np.stack(
        [_deviations(scene, count, Trait.MOTOR_VALUES + k) for k in range(4)], axis=1
    )
    calibration = np.clip(nominal + spread.motor_values * scatter, motion.dead_duty + 1, 254)
    delays = np.array([group.start_delay_s for group in scene.robots])
    start = draw_uniform(scene.scene.seed, Stream.SPREAD, count, Trait.START)
    receive_gain = _gains(scene, count, Trait.RECEIVE, light.receive_spread_percent)
    uid = _uids(scene, placed)
    return Robots(
        uid=uid,
        clock_hz=CLOCK_HZ * _gains(scene, count, Trait.CLOCK, spread.clock_percent),
        drift_phase=draw_uniform(scene.scene.seed, Stream.SPREAD, count, Trait.DRIFT),
        start_s=delays[placed.group] + spread.start_delay_s * start,
        transmit_gain=_gains(scene, count, Trait.TRANSMIT, light.transmit_spread_percent),
        receive_gain=receive_gain,
        threshold_gain=_gains(scene, count, Trait.THRESHOLD, light.threshold_spread_percent),
        light_gain=_gains(scene, count, Trait.LIGHT, spread.light_percent),
        calibration=calibration,
        motor_gain=np.stack(
            [_gains(scene, count, Trait.MOTOR_GAIN + k, spread.motor_percent) for k in range(2)],
            axis=1,
        ),
        eeprom=_eeproms(scene, placed, uid, calibration, receive_gain),
    )


def make_scene_motors(scene: Scene, robots: Robots) -> MotorState:
    """Return the motors of all robots, at rest."""
    motion = scene.motion
    return make_motors(
        len(robots.uid),
        robots.calibration,
        robots.motor_gain,
        motion.spin_up_ms / 1000,
        motion.start_duty,
        motion.dead_duty,
        motion.full_power,
    )


def make_scene_batteries(scene: Scene, placed: Placed) -> BatteryState:
    """Return the batteries of all robots."""
    groups = scene.robots
    percent = np.array([group.battery_percent for group in groups])[placed.group]
    charging = np.array([int(group.charging) for group in groups], np.int64)[placed.group]
    return make_batteries(len(percent), percent, charging, scene.sensors.battery_mah)


def sensor_place(scene: Scene) -> tuple[float, float]:
    """Return where the light sensor is in a robot's frame: ahead and to the left, in mm."""
    angle = math.radians(scene.sensors.light_angle_deg)
    radius = scene.sensors.light_radius_mm
    return round(radius * math.cos(angle), 6), round(radius * math.sin(angle), 6)


def _deviations(scene: Scene, count: int, trait: int) -> Floats:
    drawn = draw_gaussian(scene.scene.seed, Stream.SPREAD, count, int(trait))
    return np.clip(drawn, -_MOST_DEVIATIONS, _MOST_DEVIATIONS)


def _gains(scene: Scene, count: int, trait: int, percent: float) -> Floats:
    """Return factors round 1, none below a twentieth."""
    return np.maximum(1 + percent / 100 * _deviations(scene, count, trait), 0.05)


def _uids(scene: Scene, placed: Placed) -> NDArray[np.int64]:
    uids = np.zeros(len(placed.group), np.int64)
    following = 0
    for number, group in enumerate(scene.robots):
        members = np.flatnonzero(placed.group == number)
        if group.eeprom.erased:
            uids[members] = 0xFFFF
            continue
        first = following if group.eeprom.first_uid is None else group.eeprom.first_uid
        uids[members] = first + np.arange(len(members))
        following = first + len(members)
    return uids


def _eeproms(
    scene: Scene,
    placed: Placed,
    uid: NDArray[np.int64],
    calibration: Floats,
    receive_gain: Floats,
) -> NDArray[np.uint8]:
    content = np.full((len(uid), EEPROM_BYTES), ERASED, np.uint8)
    curve = optics.amplitudes(make_scene_optics(scene), list(DISTANCES_MM))
    for number, group in enumerate(scene.robots):
        wanted = group.eeprom
        if wanted.erased:
            continue
        fixed = _tables_from_file(scene, number, wanted)
        base = _image(wanted)
        for robot in np.flatnonzero(placed.group == number):
            if base is not None:
                content[robot] = base
                content[robot, UID : UID + 2] = (uid[robot] & 0xFF, uid[robot] >> 8)
                continue
            low, high = fixed or _tables(wanted, curve * receive_gain[robot])
            values = [round(float(value)) for value in calibration[robot]]
            given = (
                wanted.turn_left,
                wanted.turn_right,
                wanted.straight_left,
                wanted.straight_right,
            )
            duties = [
                own if set_ is None else set_ for own, set_ in zip(values, given, strict=True)
            ]
            packed = EepromMap(
                uid=int(uid[robot]),
                osccal=wanted.osccal,
                turn_left=duties[0],
                turn_right=duties[1],
                straight_left=duties[2],
                straight_right=duties[3],
                low_gain=low,
                high_gain=high,
                tx_mask=wanted.tx_mask,
            ).pack()
            content[robot] = np.frombuffer(packed, np.uint8)
    return content


Tables = tuple[tuple[int, ...], tuple[int, ...]]


def _tables(wanted: Eeprom, amplitudes: Floats) -> Tables:
    if wanted.distance_tables == "example":
        return LOW_GAIN_EXAMPLE, HIGH_GAIN_EXAMPLE
    if wanted.distance_tables == "erased":
        return (0xFFFF,) * TABLE_POINTS, (0xFFFF,) * TABLE_POINTS
    return tables_for(list(amplitudes))


def _tables_from_file(scene: Scene, number: int, wanted: Eeprom) -> Tables | None:
    if wanted.distance_tables_file is None:
        return None
    key = f"robots.{number}.eeprom.distance_tables_file"
    try:
        columns = read_columns(wanted.distance_tables_file, ["low_gain", "high_gain"])
    except ValueError as error:
        raise scene.error(key, str(error)) from None
    low, high = (tuple(int(value) for value in columns[name]) for name in ("low_gain", "high_gain"))
    if len(low) != TABLE_POINTS:
        raise scene.error(key, f"has {len(low)} rows, {TABLE_POINTS} are needed")
    if not all(0 <= value <= 0xFFFF for value in (*low, *high)):
        raise scene.error(key, "has values outside 0 to 65535")
    return low, high


def _image(wanted: Eeprom) -> NDArray[np.uint8] | None:
    if wanted.image is None:
        return None
    content = np.full(EEPROM_BYTES, ERASED, np.uint8)
    for address, byte in load_eeprom(wanted.image).items():
        content[address] = byte
    return content
