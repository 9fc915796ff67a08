"""``Simulation``: a scene brought to life.

The world advances on a grid of its own (``world.step_ms``): bodies stand still within a step, so
light paths are constant in it. Steps are cut into windows, in which the chips run; the length of a
window changes speed, never results.

>>> from avrswarm import Simulation, read_scene
>>> sim = Simulation(read_scene("blink"))
>>> sim.run(seconds=0.1)
>>> round(sim.time_s, 6)
0.1
"""

from __future__ import annotations

import hashlib
import json
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from avrswarm.chip.chip import (
    DEFAULT_FUSES,
    FACTORY_OSCCAL,
    SUPPLY_VOLTS,
    UNSEEN_FIELDS,
    Chip,
)
from avrswarm.chip.kernels import power_on
from avrswarm.chip.native import NO_BLOCKS
from avrswarm.chip.state import (
    NEVER,
    PAGE_WORDS,
    REPORT_SIZE,
    SNAPSHOT_DTYPE,
    TIME_UNITS_PER_SECOND,
    Chips,
    Source,
    Tape,
    allocate,
)
from avrswarm.engine import EngineName, Translation, check_engine
from avrswarm.errors import ChipFault, RecordError, SceneError, UsageError
from avrswarm.isa.decode import FLASH_WORDS, decode_image
from avrswarm.program import Program, load_program, with_debug_information
from avrswarm.program.space import Space
from avrswarm.program.variables import Values
from avrswarm.robot import infrared
from avrswarm.robot.board import allocate_boards, look_at_all
from avrswarm.robot.infrared import FRONT_END_DTYPE, LED_PINS, MICROVOLTS_PER_COUNT, Receiver
from avrswarm.robot.listener import FRAME, MESSAGE, allocate_listeners, allocate_speakers
from avrswarm.scene import Scene, build, place_robots, read_scene
from avrswarm.scene.model import Command
from avrswarm.swarm import overhead, rounds, sharing, window
from avrswarm.swarm.rounds import Need, Part, Progress, Role, Traffic, make_plan
from avrswarm.swarm.surroundings import Surroundings
from avrswarm.swarm.window import (
    EMISSION_DTYPE,
    LONG_AGO,
    SENDER_DTYPE,
    Desk,
    Links,
    Medium,
    Outcome,
    Swarm,
    make_desk,
)
from avrswarm.world.neighbours import Neighbours, allocate_neighbours, find_neighbours
from avrswarm.world.optics import LIMIT_COUNTS, reach_mm
from avrswarm.world.state import allocate_workspace

DEFAULT_WINDOW_US = 5000.0
LONGEST_WINDOW_US = 5000
"""More cells of EEPROM than can be put back could be written in a longer one."""
STATE_FORMAT = 2
EARSHOT_MARGIN_MM = 6.0
"""Lists of who may hear whom reach so much further, and last until somebody has moved by half."""

SENT_DTYPE = np.dtype(
    [
        ("robot", "i4"),
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("pulses", "i4"),
        ("complete", "i1"),
        ("data", "u1", (12,)),
    ]
)
HEARD_DTYPE = np.dtype(
    [
        ("robot", "i4"),
        ("time_s", "f8"),
        ("data", "u1", (12,)),
        ("crc_ok", "i1"),
        ("high_gain", "i4"),
        ("low_gain", "i4"),
    ]
)


class Witnessed(NamedTuple):
    """What one robot went through in a window: all that is needed to run its chip again, alone.

    ``before`` is a copy of its chip when the window began, with the light that reached it as its
    tape; run to world time ``end`` it comes to what ``after`` is, a copy too.
    """

    before: Chip
    after: Chip
    tape: NDArray[np.int64]  # rows as in ``avrswarm.chip.state.Tape``; some are seen again later
    end: int


class Robot:
    """One robot of a simulation."""

    def __init__(self, simulation: Simulation, index: int) -> None:
        self._simulation = simulation
        self.index = index

    @property
    def chip(self) -> Chip:
        """Its chip, to look at; running it alone would tear it out of the world's time."""
        return self._simulation._chip(self.index)

    @property
    def program(self) -> Program:
        """What was flashed."""
        return self._simulation._program_of(self.index)

    @property
    def vars(self) -> Values:
        """C variables of its firmware by name, ``mydata.gradient`` or ``neighbours[3].dist``.

        Values are those of now: numbers, lists for arrays, dicts for structs.
        """
        chip = self.chip
        program = self._simulation._with_names(self.program)

        def content_of(space: Space) -> bytes:
            if space is Space.EEPROM:
                return chip.eeprom.tobytes()
            return (chip.data if space is Space.DATA else chip.flash.astype("<u2")).tobytes()

        return Values(program.variables, content_of)

    @property
    def uid(self) -> int:
        """Id in its EEPROM at the start."""
        return int(self._simulation.traits.uid[self.index])

    @property
    def x_mm(self) -> float:
        """Where its centre is."""
        return float(self._simulation.world.x_mm[self.index])

    @property
    def y_mm(self) -> float:
        """Where its centre is."""
        return float(self._simulation.world.y_mm[self.index])

    @property
    def heading_rad(self) -> float:
        """Where it points, counter-clockwise from x."""
        return float(self._simulation.world.heading_rad[self.index])

    @property
    def led(self) -> int:
        """Colour it shows: r | g << 2 | b << 4, two bits each."""
        return int(self._simulation.led_colours()[self.index])


class Robots(Sequence[Robot]):
    """All robots of a simulation; attributes are arrays with one entry per robot."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def __len__(self) -> int:
        return len(self._simulation.group)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [Robot(self._simulation, i) for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"robot {index} of {len(self)}")
        return Robot(self._simulation, index % len(self))

    def __iter__(self) -> Iterator[Robot]:
        return (Robot(self._simulation, index) for index in range(len(self)))

    @property
    def x_mm(self) -> NDArray[np.float64]:
        """Positions of all centres."""
        return self._simulation.world.x_mm[: len(self)].copy()

    @property
    def y_mm(self) -> NDArray[np.float64]:
        """Positions of all centres."""
        return self._simulation.world.y_mm[: len(self)].copy()

    @property
    def heading_rad(self) -> NDArray[np.float64]:
        """Headings, counter-clockwise from x."""
        return self._simulation.world.heading_rad[: len(self)].copy()

    @property
    def led(self) -> NDArray[np.int64]:
        """Colours shown: r | g << 2 | b << 4."""
        return self._simulation.led_colours()


class Simulation:
    """A swarm of Kilobots in a scene.

    Parameters
    ----------
    scene
        From ``read_scene``.
    seed
        Replaces the scene's seed.
    threads
        How many threads run chips; default: as many as there are cores. Changes speed only.
    window_us
        Length of the windows in which chips run. Changes speed only.
    skip_idle
        Jump over idle loops in closed form. Changes speed only.
    engine
        ``interpreter``; ``translated``: wait until programs are translated to native code; or
        ``auto``: translate in the background and interpret meanwhile. Changes speed only.
    """

    def __init__(
        self,
        scene: Scene,
        seed: int | None = None,
        threads: int | None = None,
        *,
        window_us: float = DEFAULT_WINDOW_US,
        skip_idle: bool = True,
        engine: EngineName = "auto",
    ) -> None:
        if seed is not None:
            scene = scene.with_seed(seed)
        if threads is not None and threads < 1:
            raise UsageError(f"threads must be at least 1, not {threads}")
        check_engine(engine)
        if not 10 <= window_us <= LONGEST_WINDOW_US:
            raise UsageError(
                f"window_us must be between 10 and {LONGEST_WINDOW_US}, not {window_us}"
            )
        self.scene = scene
        self.threads = threads or os.cpu_count() or 1
        self._step_units = round(scene.world.step_ms * TIME_UNITS_PER_SECOND / 1000)
        self._window_units = min(round(window_us * TIME_UNITS_PER_SECOND / 1e6), self._step_units)
        self._pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self._helpers: list[Future[int]] = []
        self._desks = [make_desk(thread) for thread in range(self.threads)]
        self._time = 0  # units
        self._step = 0
        self._uart: list[tuple[int, bytes]] = []
        self._named_programs: dict[str, Program] = {}
        self.faults: list[tuple[int, str]] = []
        self._witnesses: list[tuple[int, Callable[[Witnessed], None]]] = []
        self._files = {str(path): _digest_of(path) for path in scene.files()}
        self._build(skip_idle)
        self._translations = {
            number: Translation(program.flash, wait=engine == "translated")
            for number, program in enumerate(self.programs)
            if engine != "interpreter"
        }

    @property
    def seed(self) -> int:
        """Where all randomness comes from."""
        return self.scene.scene.seed

    # ---- building --------------------------------------------------------------------------------

    def _build(self, skip_idle: bool) -> None:
        scene = self.scene
        placed = place_robots(scene)
        count = len(placed.group)
        self.group = placed.group
        self.traits = build.make_robots(scene, placed)
        self.world = build.make_scene_world(scene, placed)
        self.motors = build.make_scene_motors(scene, self.traits)
        self.battery = build.make_scene_batteries(scene, placed)
        self._build_chips(count, skip_idle)
        self.traits = self.traits._replace(eeprom=self._swarm.chips.eeprom)
        self._build_medium(count)
        ahead_mm, aside_mm = build.sensor_place(scene)
        self._surroundings = Surroundings(
            world=self.world,
            work=allocate_workspace(self.world),
            motors=self.motors,
            battery=self.battery,
            light=build.make_scene_light(scene),
            drive_left=np.zeros(count),
            drive_right=np.zeros(count),
            lux=np.zeros(count),
            microvolts_per_lux=self.traits.light_gain * scene.sensors.light_volts_per_lux * 1e6,
            shown=np.full((count, 3), -1, np.int32),
            listed_x_mm=np.full(count, np.inf),
            listed_y_mm=np.full(count, np.inf),
            slack_mm=EARSHOT_MARGIN_MM / 2,
            sensor_ahead_mm=float(ahead_mm),
            sensor_aside_mm=float(aside_mm),
            temperature_c=float(scene.world.temperature_c),
            dt_s=scene.world.step_ms / 1000,
        )
        self._plan = make_plan(count, self.threads)
        self._plan.progress[Progress.MOVED] = 1
        self._plan.progress[Progress.WINDOW] = self._window_units
        self._plan.progress[Progress.HELPERS] = min(self.threads, count) - 1
        room = count + 256
        self._traffic = Traffic(
            np.zeros((room, 5), np.int64),
            np.zeros((room, 12), np.uint8),
            np.zeros((room, 5), np.int64),
            np.zeros((room, 12), np.uint8),
            np.zeros(3, np.int64),
        )

    def _build_chips(self, count: int, skip_idle: bool) -> None:
        scene = self.scene
        self.programs: list[Program] = []
        images: dict[str, int] = {}
        image_of_group = []
        for group in scene.robots:
            program = load_program(group.firmware)
            if program.digest not in images:
                images[program.digest] = len(self.programs)
                self.programs.append(program)
            image_of_group.append(images[program.digest])
        flash = np.array([program.flash for program in self.programs], np.uint16)
        code = np.zeros((len(flash), FLASH_WORDS), np.uint32)
        for image in range(len(flash)):
            decode_image(flash[image], code[image])
        chips = allocate(count)
        chips.eeprom[:] = self.traits.eeprom
        chips.image = self._program_index = np.array(image_of_group, np.int64)[self.group]
        chips.fuses[:] = DEFAULT_FUSES
        chips.oscillator_calibration = FACTORY_OSCCAL
        chips.aref_microvolts = chips.avcc_microvolts = round(SUPPLY_VOLTS * 1e6)
        infrared_noise = round(scene.optics.adc_noise_counts * MICROVOLTS_PER_COUNT)
        chips.adc_noise_microvolts[:, :2] = infrared_noise
        other_noise = round(scene.sensors.adc_noise_counts * MICROVOLTS_PER_COUNT)
        chips.adc_noise_microvolts[:, 6:9] = other_noise
        numbers = np.arange(count, dtype=np.int64)
        chips.noise_key = (numbers * 0x1000003D + self.seed * 0x10001 + 0x5851F42D) & (2**62 - 1)
        chips.outside_driven[:, 2] = 1  # PD0: the charger's open-drain output with its pull-up
        chips.outside_level[:, 2] = 1 - self.battery.charging
        for robot in range(count):
            period = round(TIME_UNITS_PER_SECOND / self.traits.clock_hz[robot])
            power_on(chips, robot, period)
        self._periods = chips.rc_period_factory.copy()
        chips.time_base = np.round(self.traits.start_s * TIME_UNITS_PER_SECOND).astype(np.int64)
        chips.skip_idle = int(skip_idle)
        chips.tape_in_time = 1
        chips.analog_pin = infrared.ANALOG_PIN
        chips.logged_pins[:, 0] = LED_PINS
        chips.logged_pins[:, 2] = infrared.ANALOG_PIN
        listeners, listeners_next = allocate_listeners(count), allocate_listeners(count)
        snapshots = np.zeros(count, SNAPSHOT_DTYPE).view(np.recarray)
        senders = np.zeros(count, SENDER_DTYPE).view(np.recarray)
        senders.last_pulse = LONG_AGO
        self._swarm = Swarm(
            chips=chips,
            chip_bytes=_bytes_of(chips),
            snapshots=snapshots,
            snapshot_bytes=_bytes_of(snapshots),
            front=np.zeros(count, FRONT_END_DTYPE).view(np.recarray),
            front_next=np.zeros(count, FRONT_END_DTYPE).view(np.recarray),
            emissions=np.zeros((2, count), EMISSION_DTYPE).view(np.recarray),
            current=np.zeros(count, np.int64),
            senders=senders,
            listeners=listeners,
            listeners_next=listeners_next,
            listener_bytes=_bytes_of(listeners),
            listener_next_bytes=_bytes_of(listeners_next),
            verdict=np.zeros((count, 3), np.int64),
            speakers=allocate_speakers(count),
            flash=flash,
            code=code,
            program=self._program_index,
            blocks=np.zeros((len(self.programs), len(NO_BLOCKS)), np.int64),
            flash_before=flash.copy(),
            page_before=np.zeros((len(flash), 2 * PAGE_WORDS), np.uint16),
            fresh=np.ones(count, np.uint8),
            inbox=np.zeros(count, np.int64),
            outcome=np.zeros(count, np.int64),
            audible=np.zeros(count, np.int64),
            quiet_until=np.full(count, LONG_AGO),
            tick_at=np.zeros(count, np.int64),
            ahead=np.zeros(count, np.uint8),
            eager=np.zeros(count, np.int64),
            dead=np.zeros(count, np.uint8),
            boards=allocate_boards(count),
        )

    def _build_medium(self, count: int) -> None:
        scene, traits = self.scene, self.traits
        curve = build.make_scene_optics(scene)
        threshold = LIMIT_COUNTS * traits.threshold_gain
        self._medium = Medium(
            optics=curve,
            transmit_gain=traits.transmit_gain,
            receiver=Receiver(
                gain=traits.receive_gain,
                threshold=threshold,
                high_us=float(scene.optics.comparator_high_us),
            ),
            power=infrared.led_power(),
            amplitude_noise=scene.optics.amplitude_noise_percent / 100,
            pulse_noise=scene.optics.pulse_noise_percent / 100,
            message_loss=scene.optics.message_loss_percent / 100,
            distance_noise_mm=float(scene.optics.distance_noise_mm),
            hear_own=int(scene.optics.hear_own_pulses),
            seed=self.seed,
        )
        best = float(
            traits.transmit_gain.max() * (traits.receive_gain / traits.threshold_gain).max()
        )
        best *= float(self._medium.power.max()) * (1 + 4 * self._medium.amplitude_noise)
        best *= 1 + window.PULSE_NOISE_REACH * self._medium.pulse_noise
        self._range_mm = reach_mm(curve, best) + 4 * scene.optics.distance_noise_mm
        self._use_lists(allocate_neighbours(count))
        self._controller = overhead.make_controller(scene, count)

    # ---- running ---------------------------------------------------------------------------------

    @property
    def time_s(self) -> float:
        """Simulated time."""
        return self._time / TIME_UNITS_PER_SECOND

    @property
    def robots(self) -> Robots:
        """All robots."""
        return Robots(self)

    def run(
        self,
        seconds: float | None = None,
        on_step: Callable[[Simulation], object] | None = None,
    ) -> None:
        """Advance by ``seconds`` (default: the scene's length), rounded up to whole world steps.

        ``on_step`` is called after each step; if it returns ``False`` the run ends there.
        """
        length = self.scene.scene.seconds if seconds is None else seconds
        if not length >= 0:
            raise UsageError(f"seconds must not be negative: {length!r}")
        end = self._time + round(length * TIME_UNITS_PER_SECOND)
        while self._time < end:
            self._advance()
            if on_step is not None and on_step(self) is False:
                return

    def _advance(self) -> None:
        """Advance all by one world step."""
        self._prepare_step()
        progress = self._plan.progress
        progress[Progress.TIME] = self._time
        progress[Progress.STEP_END] = self._time + self._step_units
        progress[Progress.STEP] = self._step
        progress[Progress.PART] = Part.SHOW
        progress[Progress.WITNESSED] = len(self._witnesses) > 0
        need = self._run_chips(Role.LEAD)
        while need != Need.NOTHING:
            self._give(Need(need))
            need = self._run_chips(Role.LEAD)
        self._time += self._step_units
        self._step += 1
        self._check_room()
        if progress[Progress.DEATHS] > len(self.faults):
            messages = self._note_faults()
            if self.scene.scene.on_fault == "stop_run":
                raise ChipFault(messages[0])

    def _give(self, need: Need) -> None:
        """Do what the compiled part of a step cannot."""
        match need:
            case Need.IMAGES:
                self._give_images()
            case Need.PRINTER:
                self._read_printers()
            case Need.WITNESS:
                self._tell_witnesses()
            case Need.LINKS:
                self._find_links()
            case Need.FAST_LEDS:
                self._stop_fast_leds()
            case _:
                raise SceneError(
                    f"at {self.time_s:.3f} s more bodies are pressed together than there is room"
                    " for; give the scene a larger arena or fewer robots"
                )

    def _check_room(self) -> None:
        """Refuse to go on where pulses found no room, rather than lose them."""
        if any(desk.crowded[0] for desk in self._desks):
            raise SceneError(
                f"at {self.time_s:.3f} s more than {infrared.PENDING} robots in earshot of one"
                " flash in the same microseconds; give them clocks and starts of their own"
                " (spread.clock_percent, spread.start_delay_s), a shorter range or more distance"
            )

    def _stop_fast_leds(self) -> None:
        """Let robots die that flashed faster than light is followed here.

        Which pulses were too fast is a matter of world time, and robots die at the end of a step,
        so it does not depend on windows.
        """
        swarm = self._swarm
        fast = np.flatnonzero((swarm.senders["lost"] > 0) & (swarm.dead == 0))
        if len(fast):
            self._catch_up(fast, self._time + self._step_units)
            swarm.dead[fast] = 1
            swarm.quiet_until[fast] = NEVER
            self._plan.progress[Progress.DEATHS] += len(fast)

    def _run_chips(self, role: Role) -> int:
        """Let this thread and its helpers run chips."""
        if self._pool is not None and role == Role.LEAD:
            self._call_helpers(self._pool)
        return self._take_part(self._desks[0], role)

    def _take_part(self, desk: Desk, role: Role) -> int:
        return int(
            rounds.advance(
                self._swarm,
                self._medium,
                self._links,
                self._controller,
                self._surroundings,
                desk,
                self._plan,
                self._traffic,
                int(role),
            )
        )

    def _call_helpers(self, pool: ThreadPoolExecutor) -> None:
        """Have helpers at hand; those that had nothing to do for long have gone."""
        for number in range(int(self._plan.progress[Progress.HELPERS])):
            if number < len(self._helpers):
                if not self._helpers[number].done():
                    continue
                self._helpers.pop(number).result()
            helper = pool.submit(self._take_part, self._desks[1 + number], Role.HELP)
            self._helpers.insert(number, helper)

    def _dismiss_helpers(self) -> None:
        """Send helpers away, before arrays that they work on are exchanged."""
        self._plan.board[sharing.DISMISSED] = 1
        wait(self._helpers)
        self._helpers.clear()
        self._plan.board[sharing.DISMISSED] = 0

    def _catch_up(self, robots: Sequence[int] | NDArray[np.int64], time: int | None = None) -> None:
        """Bring chips that lag or are ahead to a time; default: that of now."""
        self._plan.todo[: len(robots)] = robots
        self._plan.progress[Progress.COUNT] = len(robots)
        self._plan.progress[Progress.TIME] = self._time if time is None else time
        self._run_chips(Role.CATCH_UP)

    def _take_translations(self) -> None:
        """Give robots the native code that has become ready."""
        for number, translation in list(self._translations.items()):
            if translation.blocks is not NO_BLOCKS:
                self._swarm.blocks[number] = translation.blocks
                del self._translations[number]

    def _prepare_step(self) -> None:
        self._take_translations()
        scene = self.scene
        count = len(self.group)
        if self._plan.progress[Progress.MOVED]:
            overhead.aim(self._controller, scene, self.world.x_mm[:count], self.world.y_mm[:count])
        drift = scene.spread.clock_drift_percent
        if drift > 0:
            turns = self.time_s / scene.spread.clock_drift_period_s + self.traits.drift_phase
            factor = 1 + drift / 100 * np.sin(2 * np.pi * turns)
            periods = np.round(self._periods / factor).astype(np.int64)
            self._catch_up(np.arange(count))
            rounds.set_clock_periods(self._swarm, self._time, periods)

    def _find_links(self) -> None:
        """List who may hear whom where robots are now."""
        count = len(self.group)
        x_mm, y_mm = self.world.x_mm, self.world.y_mm
        lists = find_neighbours(
            x_mm, y_mm, count, self._range_mm + EARSHOT_MARGIN_MM, self._neighbours
        )
        if lists is not self._neighbours:
            self._dismiss_helpers()
            self._use_lists(lists)
        self._surroundings.listed_x_mm[:] = x_mm[:count]
        self._surroundings.listed_y_mm[:] = y_mm[:count]

    def _use_lists(self, lists: Neighbours) -> None:
        self._neighbours = lists
        world = self.world
        self._links = Links(lists.first, lists.index, world.x_mm, world.y_mm, self._range_mm)

    def _give_images(self) -> None:
        """Give each robot that wants to program its flash an image of its own."""
        self._dismiss_helpers()
        count = int(self._plan.progress[Progress.COUNT])
        for robot in self._plan.todo[:count].tolist():
            if self._swarm.outcome[robot] != Outcome.IMAGE:
                continue
            image = len(self._swarm.flash)
            grow = np.zeros((1, FLASH_WORDS), np.uint16)
            self._swarm = self._swarm._replace(
                flash=np.concatenate([self._swarm.flash, grow]),
                code=np.concatenate([self._swarm.code, grow.astype(np.uint32)]),
                flash_before=np.concatenate([self._swarm.flash_before, grow]),
                page_before=np.concatenate([self._swarm.page_before, grow[:, : 2 * PAGE_WORDS]]),
            )
            rounds.give_image(self._swarm, robot, image)

    def _read_printers(self) -> None:
        swarm = self._swarm
        for robot in self._plan.printing[: self._plan.progress[Progress.PRINTED]].tolist():
            row = swarm.emissions[swarm.current[robot], robot]
            self._uart.append((robot, row.bytes[: row.byte_count].tobytes()))

    def _note_faults(self) -> list[str]:
        """Return what happened to chips that have stopped since the last time."""
        known = {robot for robot, _ in self.faults}
        messages = []
        for robot in np.flatnonzero(self._swarm.dead).tolist():
            if robot not in known:
                messages.append(f"robot {robot}: {self._cause_of_death(robot)}")
                self.faults.append((robot, messages[-1]))
        return messages

    def _cause_of_death(self, robot: int) -> str:
        if self._swarm.chips[robot].fault:
            return self._chip(robot)._fault_message()
        seconds = self._swarm.senders[robot].last_pulse / TIME_UNITS_PER_SECOND
        return (
            f"{self._program_of(robot).name}: at {seconds:.3f} s its infrared LED flashes more than"
            f" once in {window.PULSE_PITCH / infrared.MICROSECOND:g} us, as no Kilobot does"
        )

    def command(self, *commands: Command) -> None:
        """Let the overhead controller say something more, now or later."""
        for command in commands:
            if command.at_s < self.time_s:
                raise UsageError(
                    f"a command at {command.at_s:g} s is too late: it is {self.time_s:g} s already"
                )
        earlier = [c for c in self.scene.controller if c.at_s + c.repeat_s + 1.0 > self.time_s]
        path = self.scene.path
        self.scene = self.scene.model_copy(update={"controller": [*earlier, *commands]})
        self.scene._path = path
        self._dismiss_helpers()
        self._controller = overhead.make_controller(self.scene, len(self.group))
        self._plan.progress[Progress.FIRST_PULSE] = 0
        self._plan.progress[Progress.MOVED] = 1  # whom they reach is worked out with the links

    def witness(self, robot: int, notice: Callable[[Witnessed], None]) -> None:
        """Call ``notice`` after every window with what a robot went through; changes nothing."""
        self.check_robot(robot)
        self._attend(robot)
        self._witnesses.append((robot, notice))

    def check_robot(self, robot: int) -> None:
        """Raise an error if there is no robot of this number."""
        if not 0 <= robot < len(self.group):
            raise UsageError(f"there is no robot {robot}: they are 0 to {len(self.group) - 1}")

    def _tell_witnesses(self) -> None:
        swarm = self._swarm
        for robot, notice in self._witnesses:
            if swarm.dead[robot] or swarm.chips[robot].fault:
                continue
            before = swarm.chips[robot : robot + 1].copy().view(np.recarray)
            window.turn_back(swarm, robot, before, _bytes_of(before))
            notice(self._witness(robot, before))

    def _witness(self, robot: int, before: Any) -> Witnessed:
        progress = self._plan.progress
        end = int(progress[Progress.END])
        rows = window.write_tape_again(
            self._swarm,
            self._medium,
            self._links,
            self._controller,
            int(progress[Progress.FIRST_PULSE]),
            int(progress[Progress.LAST_PULSE]),
            self._desks[0],
            robot,
            end,
            np.zeros(1, FRONT_END_DTYPE).view(np.recarray),
        )
        tape = self._desks[0].tape[:rows].copy()
        before.tape_next = 0
        after = self._swarm.chips[robot : robot + 1].copy()
        return Witnessed(
            self._attach(robot, before, tape),
            self._attach(robot, after.view(np.recarray), tape),
            tape,
            end,
        )

    # ---- looking ---------------------------------------------------------------------------------

    @property
    def chips(self) -> Chips:
        """All chips, one record each, as they are now; later steps do not keep them up to date."""
        self._catch_up(np.arange(len(self.group)))
        return self._swarm.chips

    def led_colours(self) -> NDArray[np.int64]:
        """Return the colour every robot shows now: r | g << 2 | b << 4."""
        return self._swarm.boards.colour.astype(np.int64)

    def drain_sent(self) -> NDArray[Any]:
        """Return the frames that ended since the last call."""
        traffic = self._traffic
        rows = int(traffic.counts[0])
        sent = np.zeros(rows, SENT_DTYPE)
        sent["robot"] = traffic.sent[:rows, 0]
        sent["start_s"] = traffic.sent[:rows, 1] / TIME_UNITS_PER_SECOND
        sent["end_s"] = traffic.sent[:rows, 2] / TIME_UNITS_PER_SECOND
        sent["pulses"] = traffic.sent[:rows, 3]
        sent["complete"] = traffic.sent[:rows, 4] == FRAME
        sent["data"] = traffic.sent_data[:rows]
        traffic.counts[0] = 0
        return sent

    def drain_heard(self) -> NDArray[Any]:
        """Return what ideal listeners in the robots' places heard since the last call."""
        traffic = self._traffic
        rows = int(traffic.counts[1])
        heard = np.zeros(rows, HEARD_DTYPE)
        heard["robot"] = traffic.heard[:rows, 0]
        heard["time_s"] = traffic.heard[:rows, 1] / TIME_UNITS_PER_SECOND
        heard["crc_ok"] = traffic.heard[:rows, 2] == MESSAGE
        heard["high_gain"] = traffic.heard[:rows, 3]
        heard["low_gain"] = traffic.heard[:rows, 4]
        heard["data"] = traffic.heard_data[:rows]
        traffic.counts[1] = 0
        return heard

    def drain_uart(self) -> list[tuple[int, bytes]]:
        """Return what robots printed since the last call, in order of time."""
        printed, self._uart = self._uart, []
        return printed

    def _program_of(self, robot: int) -> Program:
        program: Program = self.programs[self._program_index[robot]]
        return program

    def _with_names(self, program: Program) -> Program:
        """Return the program with its variables' names and types."""
        if program.digest not in self._named_programs:
            self._named_programs[program.digest] = with_debug_information(program)
        return self._named_programs[program.digest]

    def _chip(self, robot: int) -> Chip:
        self._attend(robot)
        front = self._swarm.front[robot]
        times, volts = front.carried[: front.carried_count].T
        kinds = np.full(len(times), int(Tape.PULSE))
        carried = np.stack([times, kinds, volts != 0, volts], axis=1)
        row = self._swarm.chips[robot : robot + 1].view(np.recarray)
        chip = self._attach(robot, row, carried)
        weakref.finalize(chip, _leave_alone, self._swarm.eager, robot).atexit = False
        return chip

    def _attend(self, robot: int) -> None:
        """Keep a chip up to date in every window, because somebody looks at it."""
        self._catch_up([robot])
        self._swarm.eager[robot] += 1
        if not self._swarm.dead[robot]:
            self._swarm.quiet_until[robot] = LONG_AGO

    def _attach(self, robot: int, chips: Chips, tape: NDArray[np.int64]) -> Chip:
        image = int(self._swarm.chips[robot].image)
        return Chip.attach(
            self._program_of(robot),
            float(self.traits.clock_hz[robot]),
            chips,
            self._swarm.flash[image],
            self._swarm.code[image],
            tape,
        )

    # ---- digest, saving --------------------------------------------------------------------------

    def digest(self) -> str:
        """Return a digest of all chip, robot and world state: equal if they will behave equally."""
        chips = self.chips.copy()
        front = self._swarm.front.copy()
        swarm = self._swarm._replace(chips=chips, chip_bytes=_bytes_of(chips), front=front)
        rounds.settle_all(swarm, self._desks[0].tape)
        for name in UNSEEN_FIELDS:
            chips[name] = 0
        chips.next[:, Source.TAPE] = 0
        for number in np.flatnonzero(chips.report_count < REPORT_SIZE).tolist():
            chips.reports[number, chips.report_count[number] :] = 0
            chips.report_cycle[number, chips.report_count[number] :] = 0
        for row in front:
            row.pending_since *= row.pending_count > 0
            row.pending_time[row.pending_count :] = 0
            row.pending_counts[row.pending_count :] = 0
            row.carried[row.carried_count :] = 0
        content = hashlib.sha256(str(self._time).encode())
        world = self.world
        for part in (
            chips,
            front,
            self._swarm.senders,
            self._swarm.flash,
            world.x_mm,
            world.y_mm,
            world.heading_rad,
            self.motors.running,
            self.motors.spin_s,
            self.battery.charge_mah,
        ):
            content.update(np.ascontiguousarray(part).tobytes())
        return content.hexdigest()

    def save(self, path: str | Path) -> None:
        """Write everything that is needed to go on later to one file."""
        self._catch_up(np.arange(len(self.group)))
        swarm, world = self._swarm, self.world
        info = {
            "format": STATE_FORMAT,
            "scene": self.scene.model_dump(mode="json"),
            "files": self._files,
            "time": self._time,
            "step": self._step,
            "chip_layout": hashlib.sha256(str(swarm.chips.dtype).encode()).hexdigest(),
        }
        with Path(path).open("wb") as file:
            np.savez_compressed(
                file,
                info=np.frombuffer(json.dumps(info).encode(), np.uint8),
                chips=swarm.chip_bytes,
                front=_bytes_of(swarm.front),
                senders=_bytes_of(swarm.senders),
                listeners=swarm.listener_bytes,
                speakers=_bytes_of(swarm.speakers),
                flash=swarm.flash,
                x_mm=world.x_mm,
                y_mm=world.y_mm,
                heading_rad=world.heading_rad,
                running=self.motors.running,
                spin_s=self.motors.spin_s,
                charge_mah=self.battery.charge_mah,
                volts=self.battery.volts,
            )

    @classmethod
    def load(cls, path: str | Path, threads: int | None = None, **settings: Any) -> Simulation:
        """Go on from a file that ``save`` wrote, as if the run had never been interrupted.

        The files that the scene names must still be what they were: firmware, images, tables.
        """
        try:
            with Path(path).open("rb") as file, np.load(file) as saved:
                parts = {name: saved[name] for name in saved.files}
            info = json.loads(parts.pop("info").tobytes())
        except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise RecordError(f"{path}: not a saved simulation ({error})") from None
        if info.get("format") != STATE_FORMAT:
            raise RecordError(
                f"{path}: saved in format {info.get('format')}, this version reads {STATE_FORMAT}"
            )
        for file, digest in info["files"].items():
            if _digest_of(Path(file)) != digest:
                raise RecordError(
                    f"{path}: {file} has changed or is gone since this was saved;"
                    " put back what it was, or run the scene again"
                )
        try:
            scene = Scene.model_validate(info["scene"], strict=False)
        except ValidationError:
            raise RecordError(
                f"{path}: its scene is not one of this version; run the scene again"
            ) from None
        simulation = cls(scene, threads=threads, **settings)
        layout = hashlib.sha256(str(simulation._swarm.chips.dtype).encode()).hexdigest()
        if layout != info["chip_layout"]:
            raise RecordError(f"{path}: saved by another version of avrswarm; run the scene again")
        simulation._put_back(parts, info)
        return simulation

    def _put_back(self, parts: dict[str, NDArray[Any]], info: dict[str, Any]) -> None:
        flash = parts.pop("flash")
        code = np.zeros((len(flash), FLASH_WORDS), np.uint32)
        for image in range(len(flash)):
            decode_image(flash[image], code[image])
        self._dismiss_helpers()
        skip_idle = self._swarm.chips.skip_idle.copy()
        self._swarm = self._swarm._replace(
            flash=flash,
            code=code,
            flash_before=flash.copy(),
            page_before=np.zeros((len(flash), 2 * PAGE_WORDS), np.uint16),
        )
        swarm = self._swarm
        targets: dict[str, NDArray[Any]] = {
            "chips": swarm.chip_bytes,
            "front": _bytes_of(swarm.front),
            "senders": _bytes_of(swarm.senders),
            "listeners": swarm.listener_bytes,
            "speakers": _bytes_of(swarm.speakers),
            "x_mm": self.world.x_mm,
            "y_mm": self.world.y_mm,
            "heading_rad": self.world.heading_rad,
            "running": self.motors.running,
            "spin_s": self.motors.spin_s,
            "charge_mah": self.battery.charge_mah,
            "volts": self.battery.volts,
        }
        for name, target in targets.items():
            target[...] = parts[name]
        swarm.chips.skip_idle = skip_idle
        look_at_all(swarm.chips, swarm.boards)
        self._surroundings.shown[:] = -1
        swarm.dead[:] = (swarm.chips.fault != 0) | (swarm.senders["lost"] > 0)
        swarm.quiet_until[swarm.dead > 0] = NEVER
        self._plan.progress[Progress.DEATHS] = swarm.dead.sum()
        self._note_faults()
        self._time, self._step = int(info["time"]), int(info["step"])
        self._plan.progress[Progress.MOVED] = 1


def _digest_of(path: Path) -> str | None:
    """Return a digest of a file's content; None if it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def _leave_alone(eager: NDArray[np.int64], robot: int) -> None:
    """Nobody looks at this robot's chip any more."""
    eager[robot] -= 1


def _bytes_of(records: NDArray[Any]) -> NDArray[np.uint8]:
    """Return the memory of an array of records as rows of bytes."""
    plain = records.view(np.ndarray)
    rows: NDArray[np.uint8] = plain.view(np.uint8).reshape(len(plain), plain.dtype.itemsize)
    return rows


__all__ = ["Robot", "Robots", "Simulation", "read_scene"]
