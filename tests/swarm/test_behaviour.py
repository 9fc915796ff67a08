"""What one sees when firmware runs: orbits, gradients, blinking, commands, faults."""

import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from avrswarm.errors import ChipFault
from avrswarm.scene.read import read_scene
from avrswarm.swarm.simulation import Simulation
from tests.program.records import END, data, write_hex
from tests.reference import assemble

from .scenes import ONE_CLOCK, group, make_scene, messages, run_and_listen, simulate

OFF, WHITE, RED, GREEN, YELLOW, MAGENTA = 0, 0b111111, 0b000011, 0b001100, 0b001111, 0b110011
DIM_RED = 0b000001
IDLE = {OFF, GREEN, 0b000100, 0b001000}  # a green flash; its two pins change one after the other


def watch_leds(sim, seconds):
    """Run, and return the colours of all robots after every step, one row each."""
    rows = []
    sim.run(seconds, on_step=lambda sim: rows.append(sim.robots.led))
    return np.array(rows)


# ---- orbit ---------------------------------------------------------------------------------------


def orbit(seconds, *overrides):
    """Distance of planet from star (after 10 s) and laps made."""
    sim = simulate(read_scene("orbit", overrides))
    x, y = [], []

    def look(sim):
        x.append(sim.robots.x_mm)
        y.append(sim.robots.y_mm)

    sim.run(seconds, on_step=look)
    dx, dy = (np.array(a)[:, 1] - np.array(a)[:, 0] for a in (x, y))
    laps = -(np.unwrap(np.arctan2(dy, dx))[-1] - np.pi / 2) / (2 * np.pi)
    settled = round(10 / 0.004)
    return np.hypot(dx, dy)[settled:], laps


def test_a_planet_keeps_60_mm_for_four_laps_without_noise():
    """Clockwise, as in the Kilombo paper, figure 4."""
    distance, laps = orbit(130)
    assert laps > 4
    assert abs(distance.mean() - 60) < 1
    assert distance.std() < 1
    assert distance.min() > 57
    assert distance.max() < 63


def test_a_planet_stays_with_loss_and_noise():
    """20 % loss, 2 mm of distance noise (Kilombo paper, figure 5): it wiggles but stays."""
    noise = ["optics.message_loss_percent=20", "optics.distance_noise_mm=2"]
    distance, laps = orbit(60, *noise)
    assert laps > 0.7
    assert abs(distance.mean() - 60) < 5
    assert distance.min() > 40
    assert distance.max() < 85


# ---- edge following ------------------------------------------------------------------------------


def test_a_robot_goes_round_the_cluster():
    """Once round, never far from 60 mm of the nearest star, and no star is moved."""
    seven = ["robots.0.count=7", "robots.1.placement.points_mm=[[0, 95]]"]
    sim = simulate(read_scene("edge_following", seven))
    stars = np.column_stack([sim.robots.x_mm, sim.robots.y_mm])[:7]
    path = []
    sim.run(60, on_step=lambda sim: path.append((sim.robots[7].x_mm, sim.robots[7].y_mm)))
    path = np.array(path)[round(5 / 0.004) :]
    nearest = np.hypot(*(path[:, None] - stars).transpose(2, 0, 1)).min(axis=1)
    assert nearest.min() > 45
    assert nearest.max() < 75
    assert abs(nearest.mean() - 60) < 3
    x, y = (path - stars.mean(axis=0)).T
    turned = np.unwrap(np.arctan2(y, x))
    assert turned[-1] - turned[0] < -2 * np.pi  # clockwise, more than once round
    assert (np.column_stack([sim.robots.x_mm, sim.robots.y_mm])[:7] == stars).all()


# ---- gradient ------------------------------------------------------------------------------------

NO_PATH = 65535


@pytest.mark.parametrize("seed", [1, 2])
def test_gradient_counts_hops_as_breadth_first_search(seed):
    """On the graph of who was really heard by whom; robots stand anywhere, some out of reach."""
    scene = make_scene(
        {
            "firmware": "gradient",
            "count": 16,
            "placement": {"kind": "random", "width_mm": 330.0, "height_mm": 330.0, "gap_mm": 12.0},
        },
        group("gradient", (400, 400)),
        spread={"clock_percent": 1.0},
    )
    sim = simulate(scene, seed=seed)
    sim.run(3.0)
    sim.drain_heard(), sim.drain_sent()
    sent, heard = run_and_listen(sim, 5.0)
    good = messages(heard)
    # A frame carries no sender: it is the one whose frame ended just before.
    hears = np.zeros((17, 17), int)
    for robot, time_s in zip(good["robot"], good["time_s"], strict=True):
        age = time_s - sent["end_s"]
        (sender,) = sent["robot"][(age > 0) & (age < 1e-5)]
        hears[sender, robot] += 1
    hops = {0: 0}
    wave = [0]
    while wave:
        found = sorted({int(k) for r in wave for k in np.flatnonzero(hears[r] > 3)} - hops.keys())
        hops |= dict.fromkeys(found, hops[wave[0]] + 1)
        wave = found
    assert max(hops.values()) >= 3
    assert 16 not in hops
    counted = [robot.vars["own_gradient"] for robot in sim.robots]
    assert counted == [hops.get(robot, NO_PATH) for robot in range(17)]
    assert (sim.robots.led[[0, 16]] == [WHITE, OFF]).all()


# ---- synchronised blinking -----------------------------------------------------------------------


def test_blinking_converges():
    """Nine robots: when each lights up, as a share of the common period, early and late."""
    scene = make_scene(
        {"firmware": "sync", "count": 9, "placement": {"kind": "grid", "pitch_mm": 60.0}},
        spread={"start_delay_s": 0.4},
        controller=[{"at_s": 0.5, "command": "run"}],
    )
    red = watch_leds(simulate(scene), 36.0) == RED
    rises = [np.flatnonzero(red[1:, k] & ~red[:-1, k]) * 0.004 for k in range(9)]

    def scatter(begin, end):
        """One minus the length of the mean phase vector: 0 in unison, near 1 without order."""
        phases = np.concatenate([r[(r >= begin) & (r < end)] for r in rises]) / 2.0
        return 1 - abs(np.mean(np.exp(2j * np.pi * phases)))

    assert all(len(r) >= 14 for r in rises)
    early, late = scatter(1, 5), scatter(32, 36)
    assert late < 0.02
    assert late < early / 10
    last = np.array([r[r < 35][-1] for r in rises])
    last = (last - last[0] + 1) % 2.0
    assert np.ptp(last) < 0.2


# ---- leaving, following, finding a lamp ----------------------------------------------------------


def places(sim):
    return np.column_stack([sim.robots.x_mm, sim.robots.y_mm])


def test_followers_keep_up_with_their_leader():
    """Each stays in earshot of the one before it, near the 55 to 70 mm that it wants."""
    sim = simulate(read_scene("follow_leader"))
    begin, gaps = places(sim), []
    sim.run(
        60,
        on_step=lambda sim: gaps.append(np.hypot(*np.diff(places(sim), axis=0).T)),
    )
    gaps = np.array(gaps)
    assert (np.hypot(*(places(sim) - begin).T) > 60).all()  # all have come along
    assert gaps.max() < 100
    assert (np.abs(gaps.mean(axis=0) - 62) < 12).all()


def test_a_heap_spreads_out():
    """The nearest neighbour was 40 mm away; who has nobody within 85 mm is content and green."""
    sim = simulate(read_scene("disperse"))

    def nearest():
        x, y = places(sim).T
        apart = np.hypot(x[:, None] - x, y[:, None] - y)
        return np.sort(apart, axis=1)[:, 1]

    assert nearest().mean() == pytest.approx(40)
    sim.run(40)
    halfway = nearest().mean()
    sim.run(50)
    assert 40 < halfway < nearest().mean()
    assert nearest().mean() > 75
    assert (sim.robots.led == GREEN).sum() >= 15


def test_robots_find_the_lamp():
    """From 300 mm and more; those who have come near stop and glow white."""
    sim = simulate(read_scene("move_to_light", ["robots.0.placement.x_mm=0", "objects=[]"]))
    lamp = np.array([300.0, 0.0])
    before = np.hypot(*(places(sim) - lamp).T)
    sim.run(90)
    after = np.hypot(*(places(sim) - lamp).T)
    assert before.min() == 300
    assert (after < 170).all()
    assert (watch_leds(sim, 0.7)[-1] == 0b010101).all()


# ---- obstacles -----------------------------------------------------------------------------------

RADIUS_MM = 16.5


def walk(**sections):
    """Where a robot that walks at random from the origin, fast, was at every step."""
    scene = make_scene(
        group("random_walk", (0, 0)), motion={"speed_mm_s": 40.0}, spread=ONE_CLOCK, **sections
    )
    path = []
    simulate(scene).run(
        20, on_step=lambda sim: path.append((sim.robots[0].x_mm, sim.robots[0].y_mm))
    )
    return np.array(path)


def test_a_robot_cannot_leave_a_polygon_round_it():
    """A frame with a slit: inside it is 100 mm wide, the slit is too narrow for a robot."""
    outer = [[80.0, 5.0], [80.0, 80.0], [-80.0, 80.0], [-80.0, -80.0], [80.0, -80.0], [80.0, -5.0]]
    inner = [[50.0, -5.0], [50.0, -50.0], [-50.0, -50.0], [-50.0, 50.0], [50.0, 50.0], [50.0, 5.0]]
    assert np.abs(walk()).max() > 100
    path = walk(objects=[{"kind": "polygon", "points_mm": outer + inner}])
    assert np.abs(path).max() == pytest.approx(50 - RADIUS_MM, abs=1)  # there, and no farther


def test_a_robot_cannot_leave_the_light_part_of_an_arena_image(tmp_path):
    """A white disc of 60 mm radius on black, one pixel for a millimetre."""
    y, x = np.mgrid[-100:100, -100:100] + 0.5
    floor = np.where(np.hypot(x, y) < 60, 255, 0).astype(np.uint8)
    Image.fromarray(floor).save(tmp_path / "arena.png")
    arena = {"width_mm": 200.0, "height_mm": 200.0}

    def farthest(path):
        return np.hypot(*path.T).max()

    assert farthest(walk(arena=arena)) > 60
    image = str(tmp_path / "arena.png")
    assert farthest(walk(arena={**arena, "image": image})) == pytest.approx(60 - RADIUS_MM, abs=1)


def test_a_robot_is_stopped_by_a_polygon_from_outside():
    """It goes 80 mm straight on; a side is 50 mm before it."""
    ends = []
    corners = [[50.0, -40.0], [90.0, -40.0], [90.0, 40.0], [50.0, 40.0]]
    for objects in ([], [{"kind": "polygon", "points_mm": corners}]):
        scene = make_scene(
            group("move", (0, 0)),
            motion={"speed_mm_s": 40.0},
            spread={**ONE_CLOCK, "motor_percent": 0},
            objects=objects,
        )
        sim = simulate(scene)
        sim.run(2.3)
        ends.append(sim.robots[0].x_mm)
    assert ends == pytest.approx([78, 50 - RADIUS_MM], abs=3)


# ---- clocks --------------------------------------------------------------------------------------


def hears_with_ratio(ratio):
    """How many messages a listener's firmware gets whose clock is ``ratio`` times the speaker's.

    A scene has no key for the clock of one robot (its spread is random, OSCCAL steps are 0.7 %),
    so the drawn traits are replaced before the chips are built from them.
    """
    scene = make_scene(
        group("speaker", (0, 0)),
        group("listener", (50, 0)),
        optics={"preset": "ideal"},
        spread=ONE_CLOCK,
        controller=[{"at_s": 0.1, "command": "run"}],
    )

    class Mistuned(Simulation):
        def _build_chips(self, count, skip_idle):
            # The overhead controller has a crystal: both must understand it as well as can be.
            self.traits.clock_hz[:] = [8e6 / np.sqrt(ratio), 8e6 * np.sqrt(ratio)]
            super()._build_chips(count, skip_idle)

    sim = Mistuned(scene, threads=1)
    rows = []
    sim.run(2.4, on_step=lambda sim: rows.append(sim.robots.led))
    rows = np.array(rows)
    said = (np.diff((rows[:, 0] == MAGENTA).astype(int)) == 1).sum()
    heard = (np.diff((rows[:, 1] == YELLOW).astype(int)) == 1).sum()
    return int(said), int(heard)


@pytest.mark.parametrize("ratio", [0.952, 0.97, 1.0, 1.03, 1.054])
def test_messages_pass_between_clocks_a_few_per_cent_apart(ratio):
    """Hardware reference 1: 0.952 to 1.054."""
    said, heard = hears_with_ratio(ratio)
    assert heard == said >= 3


@pytest.mark.parametrize("ratio", [0.90, 0.949, 1.056, 1.10])
def test_clocks_further_apart_are_deaf_to_each_other(ratio):
    """In between, which way an instruction falls decides: at 0.950 one message in four passes."""
    said, heard = hears_with_ratio(ratio)
    assert said >= 3
    assert heard == 0


# ---- commands ------------------------------------------------------------------------------------


def blinker(*commands, **keys):
    return simulate(
        make_scene(
            group("blink", (0, 0), (100, 0), **keys),
            spread=ONE_CLOCK,
            controller=[{"at_s": 0.05, "command": "run"}, *commands],
        )
    )


def test_pause_and_run():
    """Paused robots blink green for a millisecond; run goes on with the program."""
    sim = blinker({"at_s": 1.2, "command": "pause"}, {"at_s": 3.0, "command": "run"})
    sim.run(1.2)
    sim.run(0.8)
    paused = watch_leds(sim, 0.9)
    assert set(paused.ravel().tolist()) <= IDLE
    sim.run(0.5)
    again = watch_leds(sim, 1.2)
    assert RED in again
    assert 0b110000 in again


def test_sleep_and_wake_up():
    """Asleep, a robot flashes white every 8 s; light at that moment keeps it awake to listen."""
    sim = blinker(
        {"at_s": 1.2, "command": "sleep"}, {"at_s": 5.0, "command": "wakeup", "repeat_s": 6.0}
    )
    sim.run(2.4)
    asleep = watch_leds(sim, 2.0)
    assert not asleep.any()
    assert sim.chips.asleep.all()
    sim.run(11.2 - sim.time_s)
    idle = watch_leds(sim, 1.0)
    assert not sim.chips.asleep.any()
    assert set(idle.ravel().tolist()) <= IDLE


def test_commands_reach_only_a_circle():
    sim = blinker(
        {"at_s": 1.2, "command": "sleep", "x_mm": 100, "y_mm": 0, "radius_mm": 50, "repeat_s": 0.1}
    )
    sim.run(2.5)
    assert (sim.chips.asleep > 0).tolist() == [False, True]


def test_calibration_values_reach_only_a_circle():
    """Values are tried, then saved to the EEPROM; the robot outside the circle keeps its own."""
    circle = {"x_mm": 100, "y_mm": 0, "radius_mm": 50, "repeat_s": 0.05}
    tried = {
        "uid": {"uid": 0x1234},
        "turn_left": {"left": 81},
        "turn_right": {"right": 82},
        "straight": {"left": 83, "right": 84},
        "save": {},
    }
    sim = blinker(
        {"at_s": 0.2, "command": "pause"},
        *(
            {"at_s": 0.5 + 0.4 * k, "command": "calibrate", "mode": mode, **values, **circle}
            for k, (mode, values) in enumerate(tried.items())
        ),
    )
    before = [bytes(robot.chip.eeprom) for robot in sim.robots]
    sim.run(1.28)
    assert sim.robots[1].heading_rad > 0.05  # it tries the value by turning left
    assert sim.robots[0].heading_rad == 0
    sim.run(1.3)
    after = [bytes(robot.chip.eeprom) for robot in sim.robots]
    assert after[0] == before[0]
    expected = bytearray(before[1])
    expected[0x05], expected[0x09], expected[0x0C], expected[0x14] = 81, 82, 83, 84
    expected[0xB0:0xB2] = b"\x34\x12"
    assert after[1] == bytes(expected)


def test_voltage_is_shown_as_a_colour():
    """Above 4.0 V green, 3.8 blue, 3.6 yellow, otherwise red (hardware reference 3.2, 11)."""
    percents = [100, 85, 60, 40, 20, 1]
    scene = make_scene(
        *(
            group("blink", (50 * k, 0), battery_percent=percent)
            for k, percent in enumerate(percents)
        ),
        controller=[{"at_s": 0.1, "command": "voltage", "repeat_s": 0.3}],
    )
    sim = simulate(scene)
    sim.run(1.0)
    volts = sim.battery.volts
    assert (np.abs(volts[:, None] - [4.0, 3.8, 3.6]) > 0.01).all()  # noise decides nowhere
    colours = [GREEN, 0b110000, YELLOW, RED]
    expected = [colours[sum(volt < limit for limit in (4.0, 3.8, 3.6))] for volt in volts]
    assert len(set(expected)) >= 3
    assert sim.robots.led.tolist() == expected


def test_reset_begins_anew():
    """After a reset a robot idles until it is told to run again."""
    sim = blinker({"at_s": 1.2, "command": "reset"})
    sim.run(1.6)
    assert set(watch_leds(sim, 1.2).ravel().tolist()) <= IDLE


@pytest.mark.parametrize("kind", [0x81, 0x82, 0x8B, 0xFF])
def test_command_types_that_mean_nothing_change_nothing(kind):
    """Our library ignores them (the public one switches motors off for good, Q6)."""
    plain, told = (
        simulate(
            make_scene(
                group("move", (0, 0)),
                spread={**ONE_CLOCK, "motor_percent": 0, "motor_values": 0},
                controller=[{"at_s": 0.05, "command": "run"}, *more],
            )
        )
        for more in (
            [],
            [{"at_s": 1.0, "command": "message", "type": kind, "data": [1, 2, 3]}],
        )
    )
    for sim in (plain, told):
        sim.run(3.0)
    assert np.hypot(plain.robots[0].x_mm, plain.robots[0].y_mm) > 10
    assert told.robots[0].x_mm == pytest.approx(plain.robots[0].x_mm, abs=0.5)
    assert told.robots[0].y_mm == pytest.approx(plain.robots[0].y_mm, abs=0.5)


def test_robots_that_nobody_tells_to_run_idle():
    sim = simulate(make_scene(group("blink", (0, 0)), controller=[]))
    assert set(watch_leds(sim, 1.0).ravel().tolist()) <= IDLE


def test_user_messages_from_the_controller_reach_programs():
    sim = simulate(
        make_scene(
            group("listener", (0, 0)),
            controller=[
                {"at_s": 0.05, "command": "run"},
                {"at_s": 1.0, "command": "message", "type": 5, "data": [1], "repeat_s": 0},
            ],
        )
    )
    yellow = watch_leds(sim, 1.6)[:, 0] == YELLOW
    assert 20 < yellow.sum() < 30  # a tenth of a second, in steps of 4 ms
    assert np.flatnonzero(yellow)[0] * 0.004 == pytest.approx(1.004, abs=0.01)


def test_charging_pin():
    """Told to show charging, robots on a charger blink dim red, others stay dark."""
    scene = make_scene(
        group("blink", (0, 0), charging=True),
        group("blink", (100, 0)),
        spread=ONE_CLOCK,
        controller=[{"at_s": 0.1, "command": "charge", "repeat_s": 0.3}],
    )
    sim = simulate(scene, window_us=1000)
    sim.run(0.6)
    charge = sim.battery.charge_mah.copy()
    shown = set()
    for _ in range(300):
        sim.run(0.004)
        shown.add(tuple(sim.robots.led.tolist()))
    assert shown == {(OFF, OFF), (DIM_RED, OFF)}
    assert sim.battery.charge_mah[0] > charge[0]
    assert sim.battery.charge_mah[1] < charge[1]


def test_different_firmware_in_one_scene():
    """A speaker, a listener, a blinker and a mover: each does what it does."""
    scene = make_scene(
        group("speaker", (0, 0)),
        group("listener", (50, 0)),
        group("blink", (0, 50)),
        group("move", (50, 50)),
        controller=[{"at_s": 0.3, "command": "run"}],
    )
    sim = simulate(scene)
    seen = watch_leds(sim, 2.5)
    assert MAGENTA in seen[:, 0]
    assert YELLOW in seen[:, 1]
    assert {RED, 0b110000} <= set(seen[:, 2].tolist())
    assert np.hypot(sim.robots[3].x_mm - 50, sim.robots[3].y_mm - 50) > 5
    assert np.hypot(sim.robots[2].x_mm, sim.robots[2].y_mm - 50) < 1e-9
    names = [Path(robot.program.name).stem for robot in sim.robots]
    assert names == ["speaker", "listener", "blink", "move"]


# ---- faults --------------------------------------------------------------------------------------


@pytest.fixture
def broken(tmp_path):
    """A program that runs 256 loops, then comes upon a word that is no instruction."""
    words = [0x0000, 0x9503, 0xF7E9, 0x0001]  # nop; inc r16; brne -6; undefined
    content = b"".join(word.to_bytes(2, "little") for word in words)
    record = bytes([len(content), 0, 0, 0]) + content
    path = tmp_path / "broken.hex"
    checksum = -sum(record) & 0xFF
    path.write_text(f":{record.hex().upper()}{checksum:02X}\n:00000001FF\n")
    return path


def test_a_robot_that_faults_stops_alone(broken):
    scene = make_scene(
        group("speaker", (-40, 0)), group(broken, (0, 40)), group("listener", (40, 0))
    )
    sim = simulate(scene)
    sent, heard = run_and_listen(sim, 2.0)
    assert [robot for robot, _ in sim.faults] == [1]
    assert "broken" in sim.faults[0][1]
    assert sim.chips.cycle[1] < 2000
    assert sim.chips.cycle[[0, 2]].min() > 1.7 * 7.8e6
    assert (sent["robot"] == 0).sum() >= 2
    assert (messages(heard)["robot"] == 2).sum() == (sent["robot"] == 0).sum()
    others = simulate(scene, window_us=125, threads=2, skip_idle=False)
    others.run(2.0)
    assert others.digest() == sim.digest()


def write_words(folder, words, name):
    content = b"".join(word.to_bytes(2, "little") for word in words)
    return write_hex(folder, data(0, content), END, name=name)


LED_ON = [
    *assemble.ldi(16, 0x04),
    *assemble.out(assemble.DDRD, 16),
    *assemble.out(assemble.PORTD, 16),  # supply of the LED
    *assemble.sbi(assemble.DDRB, 0),
]


@pytest.fixture
def lamp(tmp_path):
    """Firmware that lights its infrared LED every eight cycles, from the first moment on."""
    words = assemble.program(
        LED_ON,
        assemble.sbi(assemble.PINB, 0),  # toggles PB0
        assemble.rjmp(-2),
    )
    return write_words(tmp_path, words, "lamp.hex")


TOO_FAST = r"robot 1: .*lamp\.hex: at 0\.\d+ s its infrared LED flashes more than once in 28 us"


def test_a_robot_that_flashes_faster_than_any_kilobot_stops_alone(lamp, tmp_path):
    """Its neighbours hear it until then, the same whatever windows and threads; and go on."""
    scene = make_scene(
        group("speaker", (-40, 0)),
        group(lamp, (0, 40), start_delay_s=0.7),
        group("listener", (40, 0)),
        spread={"clock_drift_percent": 0.3},
    )
    sim = simulate(scene)
    sent, heard = run_and_listen(sim, 2.0)
    ((robot, text),) = sim.faults
    assert robot == 1
    assert re.match(TOO_FAST, text)
    assert sim.chips.cycle[1] < 0.3 * 8e6  # it stopped soon after it was switched on
    assert (messages(heard)["robot"] == 2).sum() == (sent["robot"] == 0).sum() >= 2
    for window_us, threads, skip_idle in ((125, 2, False), (333.3, 1, True)):
        other = simulate(scene, window_us=window_us, threads=threads, skip_idle=skip_idle)
        other.run(1.0)
        other.save(tmp_path / "state.npz")
        other = Simulation.load(tmp_path / "state.npz", threads=threads)
        assert other.faults == sim.faults
        other.run(1.0)
        assert other.digest() == sim.digest()


def test_a_robot_that_flashes_too_fast_may_stop_the_run(lamp):
    scene = make_scene(
        group("speaker", (-40, 0)), group(lamp, (0, 40)), scene={"on_fault": "stop_run"}
    )
    with pytest.raises(ChipFault, match=TOO_FAST):
        simulate(scene).run(0.5)


@pytest.mark.parametrize(("rounds", "faults"), [(36, 0), (35, 1)], ids=["224 cycles", "218 cycles"])
def test_one_flash_in_28_us_is_not_too_fast(tmp_path, rounds, faults):
    """And bits of messages are 270 cycles apart."""
    words = assemble.program(
        LED_ON,
        assemble.sbi(assemble.PINB, 0),
        assemble.ldi(18, rounds),
        assemble.dec(18),
        assemble.brne(-2),
        assemble.rjmp(-5),
    )
    program = write_words(tmp_path, words, "lamp.hex")
    sim = simulate(make_scene(group(program, (0, 0)), spread=ONE_CLOCK))
    sim.run(0.1)
    assert len(sim.faults) == faults


def test_a_robot_that_faults_with_its_motors_on_stands_still_for_ever(tmp_path):
    """Also after it was saved and loaded."""
    words = assemble.program(
        assemble.ldi(16, 0x08),
        assemble.out(assemble.DDRB, 16),
        assemble.out(assemble.PORTB, 16),  # left motor: full power
        assemble.ldi(16, 0x04),
        assemble.out(assemble.DDRD, 16),
        assemble.out(assemble.PORTD, 16),  # supply of the motors
        assemble.ldi(17, 4),
        assemble.sbiw(24, 1),
        assemble.brne(-2),
        assemble.dec(17),
        assemble.brne(-4),  # four times 65536 times 4 cycles: 0.13 s
        [0x0001],  # no instruction
    )
    program = write_words(tmp_path, words, "runaway.hex")
    sim = simulate(make_scene(group(program, (0, 0)), spread=ONE_CLOCK))
    sim.run(0.2)
    assert [robot for robot, _ in sim.faults] == [0]
    heading = sim.robots[0].heading_rad
    assert heading > 0.05
    sim.save(tmp_path / "state.npz")
    again = Simulation.load(tmp_path / "state.npz", threads=1)
    assert again.faults == sim.faults
    for one in (sim, again):
        one.run(0.2)
        assert one.robots[0].heading_rad == heading
    assert again.digest() == sim.digest()


def test_a_fault_may_stop_the_run(broken):
    scene = make_scene(
        group("speaker", (-40, 0)), group(broken, (0, 40)), scene={"on_fault": "stop_run"}
    )
    sim = simulate(scene)
    with pytest.raises(ChipFault, match=r"robot 1: .*broken.hex: undefined opcode"):
        sim.run(1.0)
