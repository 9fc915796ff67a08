"""Each program does what its header says, as far as one robot on a bench can show it."""

import itertools

import pytest

from avrswarm.robot.eeprom_map import EepromMap
from avrswarm.robot.messages import Message, MessageType

from .bench import (
    BLUE,
    GREEN,
    IDLE_PASS,
    MS,
    OFF,
    RED,
    RUNNING,
    TICK,
    WHITE,
    YELLOW,
    Robot,
)

SETUP_MS = 60  # drawing a number from a battery that never changes takes this long
AMPLITUDES = {  # low and high gain, at about so many mm
    45: (255, 960),
    55: (220, 980),
    75: (176, 800),
    83: (148, 681),
    90: (138, 630),
}


def running(name, eeprom=None):
    robot = Robot(name, eeprom).obey(MessageType.RUN).run(SETUP_MS * MS)
    assert robot.state == RUNNING
    return robot


def tell(robot, data=b"", mm=75, then=20 * MS):
    """A message from a neighbour at some distance."""
    low, high = AMPLITUDES[mm]
    robot.set_counts(low_gain=low, high_gain=high)
    end = robot.hear(Message.make(MessageType.NORMAL, data))
    robot.run(end - robot.cycle + then)
    return robot


def test_blink():
    robot = running("blink")
    robot.wait_for_led(BLUE)
    red = robot.wait_for_led(RED)
    blue = robot.wait_for_led(BLUE)
    assert blue - red == pytest.approx(500 * MS, rel=0.002)
    assert robot.wait_for_led(RED) - blue == pytest.approx(500 * MS, rel=0.002)


@pytest.mark.parametrize("name", ["move", "move_nonblocking"])
def test_moves_forward_left_and_right(name):
    robot = running(name)
    seen = []
    for _ in range(400):
        robot.run(20 * MS)
        if not seen or seen[-1] != (robot.led, robot.motors):
            seen.append((robot.led, robot.motors))
    for step in [(GREEN, (65, 62)), (RED, (73, 0)), (BLUE, (0, 68))]:
        assert step in seen


def test_nonblocking_movement_can_be_paused_at_once():
    robot = running("move_nonblocking").run(300 * MS)
    robot.obey(MessageType.WAKEUP, then=1 * MS)
    assert robot.motors == (None, None)
    assert robot.led == GREEN  # the idle blink has begun


def test_speaker_flashes_for_every_message():
    robot = running("speaker")
    for _ in range(3):
        flash = robot.wait_for_led((3, 0, 3))
        sent = robot.edges("PB0")[-1]
        assert 0 < flash - sent < 1000
        robot.wait_for_led(OFF)


def test_listener_flashes_for_every_message():
    robot = running("listener")
    assert robot.run(500 * MS).led == OFF
    for _ in range(3):
        assert tell(robot, b"\x07").led == YELLOW
        assert robot.run(100 * MS).led == OFF


def gradient_message(value):
    return value.to_bytes(2, "little")


def test_gradient_seed():
    robot = running("gradient", EepromMap(uid=0)).run(20 * TICK)
    assert robot.led == WHITE
    assert Message.unpack(robot.frames()[-1][1]).data[:2] == b"\0\0"


@pytest.mark.parametrize(
    ("heard", "color"), list(enumerate([RED, YELLOW, GREEN, (0, 3, 3), BLUE, (3, 0, 3), RED]))
)
def test_gradient_hops_are_colours(heard, color):
    robot = tell(running("gradient", EepromMap(uid=5)), gradient_message(heard))
    assert robot.led == color
    robot.run(20 * TICK)
    assert int.from_bytes(Message.unpack(robot.frames()[-1][1]).data[:2], "little") == heard + 1


def test_gradient_is_forgotten_after_two_seconds():
    robot = tell(running("gradient", EepromMap(uid=5)), gradient_message(2))
    assert robot.run(1900 * MS).led == GREEN
    assert robot.run(300 * MS).led == OFF
    tell(robot, gradient_message(4))
    assert robot.led == BLUE
    tell(robot, gradient_message(1))
    assert robot.led == YELLOW
    tell(robot, gradient_message(4))
    assert robot.led == YELLOW


def test_star_speaks_often():
    robot = running("orbit_star", EepromMap(uid=0x0203)).run(40 * TICK)
    starts = [start for start, _ in robot.frames()]
    assert starts[-1] - starts[-2] == pytest.approx(4 * TICK, abs=4)
    assert Message.unpack(robot.frames()[-1][1]).data[:2] == b"\x03\x02"


@pytest.mark.parametrize("name", ["orbit_planet", "edge_following"])
def test_planets_turn_left_when_close_and_right_when_far(name):
    robot = running(name)
    assert tell(robot, b"\x09\x00", mm=75).motors == (0, 68)
    assert robot.led == (0, 1, 0)
    assert tell(robot, b"\x09\x00", mm=55).motors == (73, 0)
    assert robot.led == (1, 0, 0)
    assert robot.run(2500 * MS).motors == (0, 0)
    assert robot.led == (0, 0, 1)


def test_edge_follower_minds_the_closest():
    robot = running("edge_following")
    tell(robot, b"\x01\x00", mm=75)
    assert tell(robot, b"\x02\x00", mm=45).motors == (73, 0)
    assert tell(robot, b"\x01\x00", mm=75).motors == (73, 0)
    assert tell(robot, b"\x02\x00", mm=90).motors == (0, 68)


def test_leader_walks_in_steps():
    robot = running("follow_leader", EepromMap(uid=0)).run(100 * MS)
    assert robot.motors == (65, 62)
    assert robot.run(1100 * MS).motors == (0, 0)
    assert robot.run(4000 * MS).motors == (65, 62)


def test_follower_zigzags_after_the_robot_before_it():
    robot = running("follow_leader", EepromMap(uid=4))
    assert tell(robot, b"\x07\x00", mm=90).motors == (0, 0)  # not its robot
    assert tell(robot, b"\x03\x00", mm=90).motors == (73, 0)
    assert tell(robot, b"\x03\x00", mm=75).motors == (73, 0)  # closer: keep on
    assert tell(robot, b"\x03\x00", mm=90).motors == (0, 68)  # farther: the other side
    assert tell(robot, b"\x03\x00", mm=45).motors == (0, 0)


def test_sync_follows_a_clock_that_is_ahead():
    robot = running("sync")
    first = robot.wait_for_led(RED)
    robot.wait_for_led(OFF)
    second = robot.wait_for_led(RED)
    assert second - first == pytest.approx(61 * TICK, abs=TICK)
    robot.wait_for_led(OFF)
    tell(robot, bytes([20]), then=0)
    third = robot.wait_for_led(RED)
    robot.wait_for_led(OFF)
    assert robot.wait_for_led(RED) - third == pytest.approx(53 * TICK, abs=3 * TICK)


def test_disperse_stands_when_nobody_is_close():
    robot = running("disperse").run(2500 * MS)
    assert (robot.led, robot.motors) == (GREEN, (0, 0))
    for _ in range(3):
        tell(robot, b"\x02", mm=55, then=600 * MS)
    assert robot.led == RED
    assert robot.motors not in [(0, 0), (None, None)]


def test_move_to_light_changes_sides_when_it_gets_darker():
    robot = running("move_to_light")
    robot.set_counts(light=200)
    turns = []
    for light in (210, 220, 150, 160, 100):
        robot.chip.run_until(symbol="average_light", max_cycles=6_000_000)
        robot.set_counts(light=light)
        robot.run(120 * MS)
        turns.append(robot.motors)
    left, right = (73, 0), (0, 68)
    assert turns == [left, left, right, right, left]
    robot.set_counts(light=1010)
    robot.run(1000 * MS)
    assert (robot.led, robot.motors) == ((1, 1, 1), (0, 0))


def test_random_walk_says_its_steps_and_shows_messages():
    robot = running("random_walk", EepromMap(uid=77))
    robot.run(300 * TICK)
    last = Message.unpack(robot.frames()[-1][1])
    assert last.is_intact
    assert last.data[0] == 77
    assert last.data[2] >= 2
    assert tell(robot, b"\1").led == YELLOW
    robot.run(150 * MS)
    assert robot.led in [(0, 0, 1), (0, 1, 1)]


def test_distance_reporter_prints_a_line_per_message():
    robot = running("distance_reporter")
    tell(robot, b"\x34\x12", mm=75)
    tell(robot, b"\x02\x00", mm=90, then=100 * MS)
    assert robot.chip.uart.decode().splitlines() == [
        "sender low_gain high_gain distance_mm",
        "4660 176 800 70",
        "2 138 630 90",
    ]


def test_distance_reporter_flashes_tens_and_ones():
    robot = running("distance_reporter")
    tell(robot, b"\x02", mm=90, then=0)
    flashes, before = [], OFF
    for _ in range(250):
        robot.run(20 * MS)
        if robot.led not in (before, OFF):
            flashes.append(robot.led)
        before = robot.led
    assert flashes == [RED] * 9 + [(0, 1, 0)]


def test_timing_probe_brackets_calls():
    robot = running("timing_probe")
    robot.run(600 * MS)
    ups, downs = robot.edges("PB4"), robot.edges("PB4", 0)
    widths = [down - up for up, down in zip(ups, downs, strict=False)]
    first = next(i for i, width in enumerate(widths) if width == 2)
    nothing, one, ten, hundred, far, middle, near, light, crc = widths[first : first + 9]
    assert nothing == 2
    assert one == pytest.approx(8006, abs=20)
    assert ten == pytest.approx(80_060, abs=20) or ten > 80_080  # an interrupt inside
    assert hundred == pytest.approx(800_600, abs=40_000)
    assert max(far, near) < 1100
    assert middle < 2300
    assert light < 200
    assert crc < 198
    end = robot.hear(Message.make(0))
    robot.run(end - robot.cycle + 5000)
    (up,), (down,) = robot.edges("PB5"), robot.edges("PB5", 0)
    assert end < up < down < end + 2600


LDS, LDS_MASK = 0x9000, 0xFE0F


@pytest.mark.parametrize(
    "name",
    [
        "disperse", "distance_reporter", "edge_following", "follow_leader", "gradient", "hop_sync",
        "move_nonblocking", "orbit_planet", "random_walk", "sync",
    ],
)  # fmt: skip
def test_ticks_are_read_with_interrupts_off(name):
    """A tick between two of the four bytes would make the time jump by 256 ticks."""
    robot = running(name)
    ticks = robot.program.symbols.find("kilo_ticks").address
    tick_interrupt = robot.program.symbols.resolve("__vector_14")
    places = [
        2 * i
        for i, (opcode, address) in enumerate(itertools.pairwise(robot.program.flash.tolist()))
        if opcode & LDS_MASK == LDS
        and ticks <= address < ticks + 4
        and not tick_interrupt <= 2 * i < tick_interrupt + 64
    ]
    assert len(places) >= 4
    robot.hear(Message.make(MessageType.NORMAL))
    snapshot = robot.chip.snapshot()
    reached = 0
    for place in places:
        robot.chip.restore(snapshot)
        if robot.chip.run_until(pc=place, max_cycles=3000 * MS) == "breakpoint":
            assert robot.chip.sreg & 0x80 == 0, hex(place)
            reached += 1
    assert reached >= 4


def pause_and_run(robot):
    robot.obey(MessageType.WAKEUP)
    assert robot.motors == (None, None)
    return robot.obey(MessageType.RUN)


@pytest.mark.parametrize("name", ["orbit_planet", "edge_following"])
@pytest.mark.parametrize(("mm", "motors"), [(75, (0, 68)), (55, (73, 0))])
def test_planets_walk_on_after_a_pause(name, mm, motors):
    robot = running(name)
    assert tell(robot, b"\x09\x00", mm=mm).motors == motors
    assert tell(pause_and_run(robot), b"\x09\x00", mm=mm).motors == motors


def test_leader_and_follower_walk_on_after_a_pause():
    leader = running("follow_leader", EepromMap(uid=0))
    assert leader.motors == (65, 62)
    assert pause_and_run(leader).run(30 * MS).motors == (65, 62)
    follower = running("follow_leader", EepromMap(uid=4))
    assert tell(follower, b"\x03\x00", mm=90).motors == (73, 0)
    assert tell(pause_and_run(follower), b"\x03\x00", mm=83).motors == (73, 0)


def test_disperse_walks_on_after_a_pause():
    robot = running("disperse")
    for _ in range(30):
        tell(robot, b"\x02", mm=45, then=300 * MS)
        if robot.motors == (65, 62):
            break
    assert robot.motors == (65, 62)
    pause_and_run(robot)
    for _ in range(5):
        tell(robot, b"\x02", mm=75, then=300 * MS)  # farther than before, so forward was right
    assert robot.led == RED
    assert robot.motors != (0, 0)


@pytest.mark.parametrize("name", ["move_nonblocking", "random_walk"])
def test_stretches_begin_anew_after_a_pause(name):
    robot = running(name).run(200 * MS)
    assert robot.motors == (65, 62)
    pause_and_run(robot).run(30 * MS)
    assert robot.motors in [(65, 62), (73, 0), (0, 68)]


@pytest.mark.parametrize("name", ["sync", "disperse", "random_walk"])
def test_programs_that_draw_numbers_start_without_noise_too(name):
    """rand_hard gives up after 128 tries per bit when the battery reading never changes."""
    assert running(name).run(2 * IDLE_PASS).state == RUNNING


def test_rand_soft_gives_the_published_numbers():
    robot = Robot("random_walk").run(5000)
    numbers = [robot.call("rand_soft", byte=True)[0] for _ in range(10)]
    assert numbers == [253, 21, 184, 123, 167, 154, 73, 0, 2, 16]


def test_delay_takes_8006_cycles_per_millisecond():
    robot = Robot("blink").run(5000)
    one, ten = (robot.call("delay", ms)[1] for ms in (1, 10))
    assert ten - one == 9 * 8006
    assert one - 8006 < 30
    assert robot.call("delay", 0)[1] < 20
