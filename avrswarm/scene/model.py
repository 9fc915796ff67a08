"""Every key that a scene may have: unit in its name, default, limits and meaning here.

Unknown keys, wrong types, not-a-number and infinities are errors. Paths are relative to the scene
file. What a firmware or image key names is looked into while reading, so a ``Scene`` is complete
before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from avrswarm.errors import ProgramError, SceneError
from avrswarm.program import load_eeprom, load_program
from avrswarm.robot import battery, motors, sensors
from avrswarm.scene.columns import Columns, read_columns
from avrswarm.scene.picture import read_grey
from avrswarm.scene.shipped import find_firmware
from avrswarm.world.optics import PRESETS
from avrswarm.world.shapes import is_simple

MOST_ROBOTS = 65_535
"""One per value of the 16-bit UID but the last, which is that of an erased robot."""
LAST_UID = 0xFFFE


class Section(BaseModel):
    """A table of a scene file."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


def _existing_file(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    path = _folder(info) / value
    if not path.is_file():
        raise ValueError(f"there is no such file: {path}")
    return path.resolve()


def _firmware(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return find_firmware(value, _folder(info))
    except SceneError as error:
        raise ValueError(str(error)) from None


def _folder(info: ValidationInfo) -> Path:
    context = info.context or {}
    return Path(context.get("folder", "."))


def _is_image(path: Path) -> Path:
    read_grey(path)
    return path


def _is_program(path: Path) -> Path:
    return _loads(load_program, path)


def _is_eeprom(path: Path) -> Path:
    return _loads(load_eeprom, path)


def _loads(load: Callable[[Path], object], path: Path) -> Path:
    try:
        load(path)
    except ProgramError as error:
        raise ValueError(str(error)) from None
    return path


File = Annotated[Path, BeforeValidator(_existing_file)]
ImageFile = Annotated[Path, AfterValidator(_is_image), BeforeValidator(_existing_file)]
EepromFile = Annotated[Path, AfterValidator(_is_eeprom), BeforeValidator(_existing_file)]
Firmware = Annotated[Path, AfterValidator(_is_program), BeforeValidator(_firmware)]
Byte = Annotated[int, Field(ge=0, le=255)]
Percent = Annotated[float, Field(ge=0, le=100)]
FARTHEST = 1e6
"""Places, lengths and headings beyond this are mistakes."""
Place = Annotated[float, Field(ge=-FARTHEST, le=FARTHEST)]
Point = Annotated[list[Place], Field(min_length=2, max_length=2)]
Pose = Annotated[list[Place], Field(min_length=2, max_length=3)]
Length = Annotated[float, Field(gt=0, le=FARTHEST)]


# ---- [scene], [world], [arena]
# ----------------------------------------------------------------------


class SceneInfo(Section):
    """What the scene is called and how long it runs."""

    name: str = Field(default="", description="name of the run; default: name of the file")
    description: str = Field(default="", description="one sentence for lists and reports")
    seconds: float = Field(default=10.0, gt=0, le=86_400, description="simulated time")
    seed: int = Field(default=1, ge=0, lt=2**63, description="where all randomness comes from")
    on_fault: Literal["stop_robot", "stop_run"] = Field(
        default="stop_robot",
        description="what happens when firmware does something without meaning",
    )


class WorldSettings(Section):
    """The grid of time on which the world advances."""

    step_ms: float = Field(
        default=4.0,
        ge=0.5,
        le=5.0,
        description="step of motion, light and battery; part of the result",
    )
    temperature_c: float = Field(
        default=25.0, ge=-45, le=85, description="temperature of all chips"
    )


class Arena(Section):
    """The table; its middle is the origin."""

    shape: Literal["rectangle", "circle", "open"] = Field(
        default="rectangle", description="circle has width_mm as its diameter; open has no rim"
    )
    width_mm: Length = Field(default=1000.0, description="size along x")
    height_mm: Length = Field(default=1000.0, description="size along y")
    image: ImageFile | None = Field(
        default=None, description="picture stretched over the arena: light is floor, dark is wall"
    )
    image_wall_below: float = Field(
        default=0.5,
        gt=0,
        lt=1,
        description="grey value that divides wall (darker) from floor; 1 is white",
    )


# ---- [[robots]]
# ---------------------------------------------------------------------------------------


class At(Section):
    """Places given one by one."""

    kind: Literal["at"]
    points_mm: list[Pose] = Field(
        min_length=1, description="list of [x, y] or [x, y, heading in degrees]"
    )

    @property
    def given(self) -> int | None:
        """How many places there are."""
        return len(self.points_mm)


class Pattern(Section):
    """What patterns have in common."""

    x_mm: Place = Field(default=0.0, description="middle of the pattern")
    y_mm: Place = Field(default=0.0, description="middle of the pattern")

    @property
    def given(self) -> int | None:
        """A pattern has room for any number."""
        return None


class GridPattern(Pattern):
    """Rows and columns."""

    kind: Literal["grid"]
    pitch_mm: Length = Field(default=50.0, description="distance between centres")
    columns: int | None = Field(
        default=None,
        ge=1,
        le=MOST_ROBOTS,
        description="robots in a row; default: as square as possible",
    )
    jitter_mm: float = Field(
        default=0.0, ge=0, le=1e6, description="random shift in x and y, up to this"
    )


class LinePattern(Pattern):
    """Side by side."""

    kind: Literal["line"]
    pitch_mm: Length = Field(default=50.0, description="distance between centres")
    direction_deg: float = Field(default=0.0, description="where the line points; 0 is along x")


class RingPattern(Pattern):
    """Evenly on a circle."""

    kind: Literal["ring"]
    radius_mm: Length = Field(default=100.0, description="radius through the centres of the robots")
    start_deg: float = Field(default=0.0, description="where the first robot stands; 0 is along x")


class HexPattern(Pattern):
    """Densely, ring by ring round the middle."""

    kind: Literal["hex"]
    pitch_mm: Length = Field(default=40.0, description="distance between centres")


class RandomPattern(Pattern):
    """Anywhere, without overlap."""

    kind: Literal["random"]
    gap_mm: float = Field(default=1.0, ge=0, le=1e6, description="least distance between rims")
    width_mm: Length | None = Field(
        default=None, description="size of the region; default: the arena"
    )
    height_mm: Length | None = Field(
        default=None, description="size of the region; default: the arena"
    )
    radius_mm: Length | None = Field(default=None, description="a round region instead")


class FilePattern(Section):
    """Places from a CSV file with the columns x_mm, y_mm and, if wanted, heading_deg."""

    kind: Literal["file"]
    path: File = Field(description="the CSV file")

    def columns(self) -> Columns:
        """Return what the file says."""
        return read_columns(self.path, ["x_mm", "y_mm"], ["heading_deg"])

    @property
    def given(self) -> int | None:
        """How many places there are."""
        return len(self.columns()["x_mm"])

    @model_validator(mode="after")
    def _is_readable(self) -> FilePattern:
        columns = self.columns()
        if not columns["x_mm"]:
            raise ValueError(f"{self.path} has no rows")
        for name, values in columns.items():
            for row, value in enumerate(values, 2):
                if abs(value) > FARTHEST:
                    raise ValueError(
                        f"{self.path}: row {row}, {name}: {value:g} is not between"
                        f" {-FARTHEST:g} and {FARTHEST:g}"
                    )
        return self


Placement = Annotated[
    At | GridPattern | LinePattern | RingPattern | HexPattern | RandomPattern | FilePattern,
    Field(discriminator="kind"),
]


class Eeprom(Section):
    """Calibration values; what is not given is what a good calibration of that robot would find."""

    erased: bool = Field(default=False, description="true: never calibrated, all bytes 0xFF")
    first_uid: int | None = Field(
        default=None,
        ge=0,
        le=LAST_UID,
        description="UID of the first robot; default: go on counting",
    )
    turn_left: Byte | None = Field(default=None, description="motor value; default: calibrated")
    turn_right: Byte | None = Field(default=None, description="motor value; default: calibrated")
    straight_left: Byte | None = Field(default=None, description="motor value; default: calibrated")
    straight_right: Byte | None = Field(
        default=None, description="motor value; default: calibrated"
    )
    tx_mask: Byte = Field(default=1, description="port B pins that light the infrared LED")
    osccal: int | None = Field(
        default=None, ge=0, le=0xFE, description="oscillator calibration; default: the factory's"
    )
    distance_tables: Literal["calibrated", "example", "erased"] = Field(
        default="calibrated",
        description="calibrated: from this scene's optics; example: the table of a real robot",
    )
    distance_tables_file: File | None = Field(
        default=None, description="CSV file with the columns low_gain and high_gain, 14 rows"
    )
    image: EepromFile | None = Field(
        default=None,
        description="Intel HEX file with all of the EEPROM; the keys above are ignored, but UID",
    )


class RobotGroup(Section):
    """Robots that are alike."""

    name: str = Field(default="", description="name in records; default: the firmware's")
    count: int | None = Field(
        default=None, ge=1, description="how many; default: as many as places are given, or 1"
    )
    firmware: Firmware = Field(description="a .hex or .elf file, or the name of a shipped firmware")
    placement: Placement = Field(
        default=GridPattern(kind="grid"),
        description="kind = at, grid, line, ring, hex, random or file, and its keys",
    )
    heading_deg: float | Literal["random", "outward", "inward", "clockwise", "counterclockwise"] = (
        Field(
            default=0.0,
            description="counter-clockwise from x, or random, or seen from the pattern's middle",
        )
    )
    start_delay_s: float = Field(default=0.0, ge=0, le=3600, description="time of power-on")
    radius_mm: float = Field(default=16.5, ge=5, le=500, description="radius of the body")
    mass_g: float = Field(default=10.0, gt=0, le=1e4, description="mass, for pushing")
    battery_percent: Percent = Field(default=80.0, description="charge at the start")
    charging: bool = Field(default=False, description="true: on a charger, PD0 is low")
    eeprom: Eeprom = Field(default=Eeprom(), description="calibration values")

    @property
    def places(self) -> int:
        """How many robots there are in this group."""
        given = self.placement.given
        return given if given is not None else (self.count or 1)

    @model_validator(mode="after")
    def _count_fits(self) -> RobotGroup:
        given = self.placement.given
        if given is not None and self.count is not None and given != self.count:
            raise ValueError(f"count is {self.count}, but placement gives {given} places")
        return self


# ---- [spread], [optics], [motion]
# ---------------------------------------------------------------------


class Spread(Section):
    """How one robot differs from the next; per cent are deviations of a normal distribution."""

    clock_percent: float = Field(
        default=0.5, ge=0, le=10, description="frequency of the chips; 8 MHz on average"
    )
    clock_drift_percent: float = Field(
        default=0.0, ge=0, le=5, description="slow change of frequency, largest"
    )
    clock_drift_period_s: float = Field(
        default=60.0, ge=1, le=1e6, description="period of that change"
    )
    start_delay_s: float = Field(
        default=0.25, ge=0, le=3600, description="power-on is spread evenly over this time"
    )
    motor_values: float = Field(
        default=3.0,
        ge=0,
        le=20,
        description="calibrated motor values (2.8 to 4.1 in ten real robots)",
    )
    motor_percent: Percent = Field(
        default=3.0,
        description="speed of each motor that calibration has left (turn rates within 5 %)",
    )
    light_percent: Percent = Field(default=10.0, description="sensitivity of the light sensors")


class Optics(Section):
    """Infrared. Keys that are not given come from the preset."""

    preset: Literal["ideal", "lab", "long"] = Field(
        default="lab",
        description="ideal: no noise, 100 mm; lab: noise, 100 mm; long: as 25 real robots, 200 mm",
    )
    model: Literal["calibrated", "inverse_square", "table", "disc"] = Field(
        default="calibrated", description="amplitude against distance; see avrswarm/world/optics.py"
    )
    range_mm: float = Field(
        default=100.0, ge=40, le=400, description="where an average robot just hears"
    )
    table: File | None = Field(
        default=None,
        description="for model = table: CSV file with the columns distance_mm, low_gain_counts",
    )
    disc_counts: float = Field(
        default=150.0, gt=15.1, le=2000, description="for model = disc: amplitude within the range"
    )
    path_gain: float = Field(
        default=1.0, gt=0, le=100, description="for model = inverse_square: product of both gains"
    )
    amplitude_noise_percent: Percent = Field(default=0.0, description="of each message's amplitude")
    pulse_noise_percent: float = Field(
        default=0.0,
        ge=0,
        le=25,
        description="of each pulse at the comparator, in relation to what it just hears",
    )
    adc_noise_counts: float = Field(
        default=0.0, ge=0, le=50, description="noise of infrared ADC readings"
    )
    transmit_spread_percent: Percent = Field(default=0.0, description="power of the robots' LEDs")
    receive_spread_percent: Percent = Field(
        default=0.0, description="gain of the robots' receivers"
    )
    threshold_spread_percent: Percent = Field(
        default=0.0, description="comparator limits: change the range, not the readings"
    )
    message_loss_percent: Percent = Field(
        default=0.0, description="extra loss of whole messages, per listener (Kilombo's paper: 20)"
    )
    distance_noise_mm: float = Field(
        default=0.0,
        ge=0,
        le=100,
        description="extra error of distance, per message (Kilombo's paper: 2)",
    )
    hear_own_pulses: bool = Field(default=True, description="a robot's receiver sees its own LED")
    comparator_high_us: float = Field(
        default=25.0,
        ge=1,
        le=30,
        description="how long a pulse keeps the comparator high; more than 30 would merge bits",
    )
    controller_counts: float = Field(
        default=150.0, gt=15.1, le=2000, description="amplitude of the overhead controller's light"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        preset = PRESETS.get(str(given.get("preset", "lab")))
        return given if preset is None else {**preset._asdict(), **given}

    @model_validator(mode="after")
    def _table_is_given(self) -> Optics:
        if self.model == "table" and self.table is None:
            raise ValueError("model is 'table', so the key table must name a CSV file")
        return self


class Motion(Section):
    """How robots move; see avrswarm/robot/motors.py and avrswarm/world/motion.py."""

    speed_mm_s: float = Field(
        default=10.0, ge=0, le=200, description="forward, at calibrated values"
    )
    turn_deg_s: float = Field(
        default=45.0, ge=0, le=1000, description="turning, at calibrated values"
    )
    leg_angle_deg: float = Field(
        default=125.5,
        ge=90,
        le=180,
        description="rear legs, from the heading; 90 for wheeled robots",
    )
    leg_radius_mm: float = Field(
        default=17.0, ge=0, le=500, description="rear legs, from the centre"
    )
    speed_noise_percent: Percent = Field(default=0.0, description="of the way made in one second")
    heading_noise_deg: float = Field(
        default=0.0, ge=0, le=360, description="gathered in one second of motion"
    )
    spin_up_ms: float = Field(
        default=1e3 * motors.SPIN_UP_S,
        ge=0,
        le=100,
        description="time at high duty that a start takes",
    )
    start_duty: Byte = Field(
        default=motors.START_DUTY, description="least duty that starts a resting motor"
    )
    dead_duty: Byte = Field(
        default=motors.DEAD_DUTY, description="duty that moves nothing (60: as Kilombo assumes)"
    )
    full_power: float = Field(
        default=motors.FULL_POWER,
        ge=1,
        le=10,
        description="speed at duty 255, in relation to calibrated",
    )
    turn_left: float = Field(
        default=motors.CALIBRATED[0],
        ge=1,
        le=254,
        description="average calibrated duty for turning left",
    )
    turn_right: float = Field(
        default=motors.CALIBRATED[1],
        ge=1,
        le=254,
        description="average calibrated duty for turning right",
    )
    straight_left: float = Field(
        default=motors.CALIBRATED[2],
        ge=1,
        le=254,
        description="average calibrated duty, left of both",
    )
    straight_right: float = Field(
        default=motors.CALIBRATED[3],
        ge=1,
        le=254,
        description="average calibrated duty, right of both",
    )

    @model_validator(mode="after")
    def _dead_is_least(self) -> Motion:
        least = min(self.turn_left, self.turn_right, self.straight_left, self.straight_right)
        if self.dead_duty >= least:
            raise ValueError(
                f"dead_duty {self.dead_duty} is not below the calibrated duties ({least:g})"
            )
        return self


class Sensors(Section):
    """Light sensor and battery."""

    light_angle_deg: float = Field(
        default=sensors.SENSOR_ANGLE_DEG,
        ge=-360,
        le=360,
        description="where the sensor is, from the heading",
    )
    light_radius_mm: float = Field(
        default=sensors.SENSOR_RADIUS_MM,
        ge=0,
        le=500,
        description="where the sensor is, from the centre",
    )
    light_volts_per_lux: float = Field(
        default=sensors.MICROVOLTS_PER_LUX / 1e6, gt=0, le=100, description="on ADC7, up to 3.0 V"
    )
    adc_noise_counts: float = Field(
        default=0.7,
        ge=0,
        le=50,
        description="battery, light and temperature readings; rand_hard lives on it",
    )
    battery_mah: float = Field(
        default=battery.CAPACITY_MAH, gt=0, le=1e5, description="capacity of the battery"
    )


# ---- [[lights]], [[objects]] ---------------------------------------------------------------------


class Lamp(Section):
    """A small lamp above the table."""

    kind: Literal["lamp"]
    x_mm: Place = Field(default=0.0, description="where it hangs")
    y_mm: Place = Field(default=0.0, description="where it hangs")
    height_mm: Length = Field(default=300.0, description="above the sensors")
    intensity_cd: float = Field(
        default=0.5, ge=0, le=1e6, description="0.5 cd at 300 mm give 5.6 lux below"
    )


class Gradient(Section):
    """Light that grows evenly in one direction."""

    kind: Literal["gradient"]
    middle_lux: float = Field(default=2.0, ge=0, le=1e6, description="at the origin")
    lux_per_m: float = Field(default=4.0, ge=0, le=1e6, description="how fast it grows")
    direction_deg: float = Field(default=0.0, description="where it grows; 0 is along x")


class Ambient(Section):
    """Light that is everywhere."""

    kind: Literal["ambient"]
    lux: float = Field(default=1.0, ge=0, le=1e6, description="everywhere")


class LightImage(Section):
    """A picture on the table."""

    kind: Literal["image"]
    path: ImageFile = Field(description="picture, stretched over the arena")
    white_lux: float = Field(
        default=6.0, ge=0, le=1e6, description="where it is white; black is dark"
    )


LightSource = Annotated[Lamp | Gradient | Ambient | LightImage, Field(discriminator="kind")]


class Wall(Section):
    """A straight, thin wall."""

    kind: Literal["wall"]
    from_mm: Point = Field(description="one end, [x, y]")
    to_mm: Point = Field(description="the other end, [x, y]")


class Box(Section):
    """A rectangle that nothing enters or leaves."""

    kind: Literal["box"]
    x_mm: Place = Field(default=0.0, description="middle")
    y_mm: Place = Field(default=0.0, description="middle")
    width_mm: Length = Field(default=100.0, description="size along its own x")
    height_mm: Length = Field(default=100.0, description="size along its own y")
    angle_deg: float = Field(default=0.0, description="turned counter-clockwise by this")


class Polygon(Section):
    """A closed outline that nothing enters or leaves."""

    kind: Literal["polygon"]
    points_mm: list[Point] = Field(min_length=3, description="corners, [x, y] each")

    @field_validator("points_mm")
    @classmethod
    def _is_simple(cls, points: list[list[float]]) -> list[list[float]]:
        if len({tuple(point) for point in points}) < len(points):
            raise ValueError("two corners are in one place")
        if not is_simple([(x, y) for x, y in points]):
            raise ValueError("sides touch or cross each other, or there is nothing between them")
        return points


class Disc(Section):
    """A round body, fixed or pushable."""

    kind: Literal["disc"]
    x_mm: Place = Field(default=0.0, description="middle")
    y_mm: Place = Field(default=0.0, description="middle")
    radius_mm: float = Field(default=30.0, ge=5, le=1e4, description="its radius")
    pushable: bool = Field(default=False, description="false: nothing moves it")
    mass_g: float = Field(default=20.0, gt=0, le=1e6, description="a robot has 10")


Thing = Annotated[Wall | Box | Polygon | Disc, Field(discriminator="kind")]


# ---- [[controller]], [record] --------------------------------------------------------------------

CommandName = Literal[
    "run",
    "pause",
    "wakeup",
    "sleep",
    "voltage",
    "charge",
    "reset",
    "boot",
    "read_uid",
    "calibrate",
    "message",
]


_CALIBRATED_KEYS = {
    "save": (),
    "uid": ("uid",),
    "turn_left": ("left",),
    "turn_right": ("right",),
    "straight": ("left", "right"),
}
"""What a mode of calibration sets."""


class Command(Section):
    """A message from the overhead controller, sent over and over for a while."""

    at_s: float = Field(ge=0, le=86_400, description="when it begins")
    command: CommandName = Field(description="what it says; pause and wakeup are the same")
    repeat_s: float = Field(
        default=0.1, ge=0, le=3600, description="how long it is repeated; 0: sent once"
    )
    x_mm: Place | None = Field(
        default=None, description="middle of the circle of robots that it reaches"
    )
    y_mm: Place | None = Field(default=None, description="middle of that circle")
    radius_mm: Length | None = Field(
        default=None, description="radius of that circle; default: all robots"
    )
    type: Byte | None = Field(
        default=None, description="for message: its type, 0 to 127 for user messages"
    )
    data: list[Byte] | None = Field(
        default=None, max_length=9, description="for message: up to nine bytes"
    )
    mode: Literal["save", "uid", "turn_left", "turn_right", "straight"] | None = Field(
        default=None, description="for calibrate: what is set or tried"
    )
    uid: int | None = Field(default=None, ge=0, le=0xFFFF, description="for calibrate, mode uid")
    left: Byte | None = Field(
        default=None, description="for calibrate, modes turn_left and straight: motor value"
    )
    right: Byte | None = Field(
        default=None, description="for calibrate, modes turn_right and straight: motor value"
    )
    bit: int | None = Field(
        default=None, ge=0, le=15, description="for read_uid: which bit is asked for"
    )

    @model_validator(mode="after")
    def _keys_belong(self) -> Command:
        needs = {
            "message": {"type", "data"},
            "calibrate": {"mode", *_CALIBRATED_KEYS.get(self.mode or "", ())},
            "read_uid": {"bit"},
        }.get(self.command, set())
        special = {"type", "data", "mode", "uid", "left", "right", "bit"}
        given = {key for key in special if getattr(self, key) is not None}
        mode = f" with mode '{self.mode}'" if self.mode else ""
        if missing := sorted(needs - given):
            raise ValueError(f"command '{self.command}'{mode} also needs {', '.join(missing)}")
        if extra := sorted(given - needs):
            raise ValueError(f"command '{self.command}'{mode} does not take {', '.join(extra)}")
        circle = [self.x_mm, self.y_mm, self.radius_mm]
        if any(part is not None for part in circle) and None in circle:
            raise ValueError("a circle takes all of x_mm, y_mm and radius_mm")
        return self


class Record(Section):
    """What is kept of a run."""

    trajectory_hz: float = Field(
        default=10.0, gt=0, le=1000, description="how often positions are kept"
    )
    messages: bool = Field(default=True, description="keep what became of every message")
    uart: bool = Field(default=True, description="keep what robots print")
    pictures: bool = Field(default=True, description="draw pictures at the end")
    watch: list[str] = Field(
        default=[],
        description="variables of the firmware to keep in watch.parquet, as often as positions",
    )
    watch_robots: list[Annotated[int, Field(ge=0)]] = Field(
        default=[], description="robots whose variables are kept; default: all"
    )
    film_fps: float = Field(default=25.0, gt=0, le=120, description="pictures per second of a film")
    film_speed: float = Field(
        default=4.0, gt=0, le=1000, description="simulated seconds per second of film"
    )


DEFAULT_COMMANDS = [Command(at_s=0.5, command="run")]


class Scene(Section):
    """A whole scene."""

    scene: SceneInfo = Field(default=SceneInfo(), description="name, length, seed")
    world: WorldSettings = Field(default=WorldSettings(), description="grid of time, temperature")
    arena: Arena = Field(default=Arena(), description="the table")
    robots: list[RobotGroup] = Field(min_length=1, description="groups of robots")
    spread: Spread = Field(default=Spread(), description="how robots differ")
    optics: Optics = Field(
        default_factory=lambda: Optics.model_validate({}), description="infrared light"
    )
    motion: Motion = Field(default=Motion(), description="motors and legs")
    sensors: Sensors = Field(default=Sensors(), description="light sensor and battery")
    lights: list[LightSource] = Field(default=[], description="visible light; default: darkness")
    objects: list[Thing] = Field(default=[], description="what stands on the table")
    controller: list[Command] = Field(
        default=DEFAULT_COMMANDS, description="overhead commands; default: run at 0.5 s"
    )
    record: Record = Field(default=Record(), description="what is kept")

    _path: Path | None = PrivateAttr(None)

    @property
    def path(self) -> Path | None:
        """The file it was read from."""
        return self._path

    @property
    def robot_count(self) -> int:
        """How many robots there are in all."""
        return sum(group.places for group in self.robots)

    def files(self) -> list[Path]:
        """Every file that its keys name."""
        return sorted(set(_paths_in(self.model_dump())))

    def with_seed(self, seed: int) -> Scene:
        """Return the same scene with another seed."""
        info = SceneInfo.model_validate({**self.scene.model_dump(), "seed": seed})
        copy = self.model_copy(update={"scene": info})
        copy._path = self._path
        return copy

    def error(self, key: str, text: str) -> SceneError:
        """Return an error about a key of this scene."""
        return SceneError(f"{self._path or 'scene'}: {key}: {text}")

    @field_validator("robots")
    @classmethod
    def _one_uid_each(cls, groups: list[RobotGroup]) -> list[RobotGroup]:
        total = sum(group.places for group in groups)
        if total > MOST_ROBOTS:
            raise ValueError(
                f"{total} robots in all; at most {MOST_ROBOTS} are possible, one for each UID"
                " from 0 to 65534 (65535 is what an erased robot has)"
            )
        owner: dict[int, int] = {}
        uid = 0
        for number, group in enumerate(groups):
            if group.eeprom.erased:
                continue
            uid = uid if group.eeprom.first_uid is None else group.eeprom.first_uid
            last = uid + group.places - 1
            if last > LAST_UID:
                raise ValueError(
                    f"robots.{number} needs UIDs {uid} to {last}; the last one is {LAST_UID}"
                )
            for value in range(uid, last + 1):
                if owner.setdefault(value, number) != number:
                    raise ValueError(
                        f"robots.{number} and robots.{owner[value]} both have UID {value};"
                        " set eeprom.first_uid of one of them"
                    )
            uid = last + 1
        return groups

    @field_validator("controller")
    @classmethod
    def _in_order(cls, commands: list[Command]) -> list[Command]:
        return sorted(commands, key=lambda command: command.at_s)


def _paths_in(value: Any) -> Iterator[Path]:
    if isinstance(value, Path):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _paths_in(part)
