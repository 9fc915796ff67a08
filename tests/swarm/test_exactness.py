"""What changes speed changes no bit: windows, threads, skipping, translation, going on later."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from avrswarm.errors import RecordError, SceneError
from avrswarm.scene.read import read_scene
from avrswarm.scene.shipped import shipped_folder
from avrswarm.swarm.simulation import Simulation
from tests.firmware.bench import compiled

from .scenes import ONE_CLOCK, group, make_scene, run_and_listen, simulate

HEX = {"kind": "hex", "pitch_mm": 45.0}
EARLY_RUN = [{"at_s": 0.1, "command": "run"}]

SCENES = {
    # Robots that walk, bump into each other and talk; clocks that drift.
    "random_walk": lambda: make_scene(
        {
            "firmware": "random_walk",
            "count": 12,
            "placement": {"kind": "hex", "pitch_mm": 36.0},
            "heading_deg": "random",
        },
        spread={"start_delay_s": 0.05, "clock_drift_percent": 0.3},
        controller=EARLY_RUN,
    ),
    # Distances are estimated, random numbers come from ADC noise, motors follow from both.
    "disperse": lambda: make_scene(
        {"firmware": "disperse", "count": 12, "placement": HEX, "heading_deg": "random"},
        spread={"start_delay_s": 0.05, "clock_percent": 1.0},
        optics={"message_loss_percent": 10, "distance_noise_mm": 2},
        motion={"speed_noise_percent": 5, "heading_noise_deg": 5},
        controller=EARLY_RUN,
    ),
    # Two firmwares; planets orbit among a crowd that sends four times as often as usual. Two robots
    # are switched on while others talk, one of them resets, the serial line is in use.
    "orbit": lambda: make_scene(
        group("orbit_star", (0, 0), (150, 0), (80, 80)),
        group("orbit_planet", (0, 60), (150, 60)),
        group("orbit_star", (-60, 0), start_delay_s=0.62),
        group("distance_reporter", (60, -60), start_delay_s=0.71),
        optics={"preset": "long"},
        spread={"start_delay_s": 0.05},
        controller=[
            *EARLY_RUN,
            {"at_s": 0.8, "command": "run"},
            {"at_s": 0.95, "command": "reset", "x_mm": 150, "y_mm": 0, "radius_mm": 20},
            {"at_s": 1.0, "command": "run"},
        ],
    ),
}
SECONDS = {"random_walk": 1.0, "disperse": 1.4, "orbit": 1.4}


@pytest.fixture(scope="module")
def reference():
    """Digest, and state in words, of each scene in the plainest way of running it."""
    results = {}

    def of(name):
        if name not in results:
            sim = simulate(SCENES[name](), window_us=1000, skip_idle=False, engine="interpreter")
            sent, heard = run_and_listen(sim, SECONDS[name])
            results[name] = sim, sim.digest(), sent, heard
        return results[name]

    return of


def in_order(records, time):
    """Records of the same window come in any order."""
    return np.sort(records, order=[time, "robot"]).tobytes()


@pytest.mark.parametrize("name", SCENES)
def test_the_scenes_have_traffic_and_motion(reference, name):
    """Otherwise the other tests here would prove nothing."""
    sim, _, sent, heard = reference(name)
    assert sim.faults == []
    assert len(sent) >= 10
    assert (heard["crc_ok"] == 1).sum() >= 30
    begin = simulate(SCENES[name]()).robots
    moved = (begin.x_mm != sim.robots.x_mm) | (begin.heading_rad != sim.robots.heading_rad)
    assert moved.sum() >= 2


@pytest.mark.parametrize(
    ("threads", "skip_idle", "engine"),
    [
        (1, True, "translated"),
        (2, True, "auto"),
        (1, False, "translated"),
        (2, False, "interpreter"),
    ],
    ids=["skipping", "2 threads, skipping", "plain", "2 threads"],
)
@pytest.mark.parametrize("window_us", [125, 250, 2000, 5000])
@pytest.mark.parametrize("name", SCENES)
def test_digest_does_not_depend_on_how_it_is_computed(
    reference, name, window_us, threads, skip_idle, engine
):
    """Windows of 1000, 2000, 16 000 and 40 000 cycles; robots may rest over many of them."""
    sim = simulate(
        SCENES[name](), window_us=window_us, threads=threads, skip_idle=skip_idle, engine=engine
    )
    sent, heard = run_and_listen(sim, SECONDS[name])
    _, digest, sent_before, heard_before = reference(name)
    assert sim.digest() == digest
    assert in_order(sent, "start_s") == in_order(sent_before, "start_s")
    assert in_order(heard, "time_s") == in_order(heard_before, "time_s")


@pytest.mark.parametrize("name", SCENES)
def test_windows_of_odd_length_give_the_same(reference, name):
    """Lengths that divide nothing: borders fall anywhere in instructions and pulses."""
    sim = simulate(SCENES[name](), window_us=333.3)
    sim.run(SECONDS[name])
    assert sim.digest() == reference(name)[1]


@pytest.mark.parametrize("window_us", [333.3, 5000])
@pytest.mark.parametrize("name", SCENES)
def test_robots_that_are_never_left_alone_come_to_the_same(reference, name, window_us):
    """Chips that lag behind, or run ahead and are taken back, are as if run window by window."""
    sim = simulate(SCENES[name](), window_us=window_us, threads=2)
    sim._swarm.eager[:] = 1
    sim.run(SECONDS[name])
    assert sim.digest() == reference(name)[1]


def test_most_robots_rest():
    """Otherwise the test before would compare nothing: delays run ahead, idle loops lag behind."""
    sim = simulate(make_scene({"firmware": "blink", "count": 6}, controller=EARLY_RUN))
    was_ahead, rested = 0, 0

    def look(sim):
        nonlocal was_ahead, rested
        was_ahead += int(sim._swarm.ahead.sum())
        rested += int((sim._swarm.quiet_until > sim._time).sum())

    sim.run(1.0, on_step=look)
    assert was_ahead > 0.5 * 6 * 250
    assert rested > 0.6 * 6 * 250


@pytest.mark.parametrize("firmware", ["disperse", "blink", "move_to_light", "sync"])
def test_many_robots_with_borders_anywhere(firmware):
    """A window of three cycles, at the end of each step, once never ended."""
    robots = {"firmware": firmware, "count": 60, "placement": HEX, "heading_deg": "random"}
    ways = [
        simulate(make_scene(robots, controller=EARLY_RUN), threads=threads, window_us=window_us)
        for threads, window_us in ((1, 333.3), (2, 2000))
    ]
    ways[1]._swarm.eager[:] = 1
    for sim in ways:
        sim.run(0.8)
    assert ways[0].digest() == ways[1].digest()


@pytest.mark.parametrize("skip_idle", [False, True], ids=["plain", "skipping"])
@pytest.mark.parametrize("name", SCENES)
def test_digests_agree_at_every_step_on_the_way(name, skip_idle):
    """Also at moments in the middle of a message."""
    ways = [
        simulate(SCENES[name](), window_us=125, skip_idle=skip_idle, engine="translated"),
        simulate(SCENES[name](), window_us=2000, skip_idle=False, engine="interpreter"),
    ]
    for sim in ways:
        sim.run(0.5)
    for _ in range(40):
        for sim in ways:
            sim.run(0.004)
        assert ways[0].digest() == ways[1].digest()


@pytest.mark.parametrize("after_s", [0.052, 0.3, 0.744])
@pytest.mark.parametrize("name", SCENES)
def test_saved_and_loaded_is_as_uninterrupted(reference, name, after_s, tmp_path):
    sim = simulate(SCENES[name](), window_us=125)
    sim.run(after_s)
    sim.save(tmp_path / "state.npz")
    again = Simulation.load(tmp_path / "state.npz", threads=1)
    assert again.time_s == sim.time_s
    assert again.digest() == sim.digest()
    again.run(SECONDS[name] - after_s)
    assert again.digest() == reference(name)[1]


@pytest.fixture
def own_firmware(tmp_path, monkeypatch):
    """A scene file in a folder of its own, which names its files by relative paths; and a state."""
    monkeypatch.chdir(tmp_path)
    for name in ("blink.hex", "move.hex"):
        shutil.copy(shipped_folder("firmware") / name[:-4] / name, tmp_path)
    (tmp_path / "places.csv").write_text("x_mm,y_mm\n0,0\n50,0\n")
    (tmp_path / "my.toml").write_text(
        '[[robots]]\nfirmware = "blink.hex"\nplacement = { kind = "file", path = "places.csv" }\n'
    )
    sim = simulate(read_scene("my.toml"), engine="translated")
    sim.run(0.1)
    return sim


def test_a_state_is_loaded_from_any_folder(own_firmware, tmp_path, monkeypatch):
    own_firmware.save("state.npz")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = Simulation.load("../state.npz", threads=1, engine="translated")
    for sim in (own_firmware, again):
        sim.run(0.5)
    assert again.digest() == own_firmware.digest()


@pytest.mark.parametrize("when", ["before saving", "after saving"])
@pytest.mark.parametrize("name", ["blink.hex", "places.csv"])
@pytest.mark.parametrize("what", ["other", "gone"])
def test_a_state_whose_files_are_not_what_they_were_is_refused(own_firmware, name, what, when):
    """Translated code comes from the file: it would not be that of the flash in the state."""
    if when == "after saving":
        own_firmware.save("state.npz")
    if what == "gone":
        Path(name).unlink()
    else:
        Path(name).write_text(Path("move.hex" if name == "blink.hex" else "my.toml").read_text())
    if when == "before saving":
        own_firmware.save("state.npz")
    with pytest.raises(RecordError, match=rf"state.npz: .*{name} has changed .*put back"):
        Simulation.load("state.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x93NUMPY", b"text"])
def test_what_is_not_a_state_is_refused(tmp_path, content):
    path = tmp_path / "state.npz"
    path.write_bytes(content)
    with pytest.raises(RecordError, match="not a saved simulation"):
        Simulation.load(path)


def test_looking_changes_nothing(reference):
    """Digests, colours, chips and records are for looking at."""
    sim = simulate(SCENES["random_walk"]())

    def look(sim):
        sim.digest()
        sim.robots.led.tolist()
        _ = sim.robots[0].chip.pc
        sim.drain_heard()

    sim.run(SECONDS["random_walk"], on_step=look)
    assert sim.digest() == reference("random_walk")[1]


def test_the_seed_decides(reference):
    digests = [reference("random_walk")[1]]
    for seed in (1, 2, 3):
        sim = simulate(SCENES["random_walk"](), seed=seed)
        assert sim.seed == seed
        sim.run(SECONDS["random_walk"])
        digests.append(sim.digest())
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_a_crowd_in_unison_loses_no_light():
    """Thirty-seven robots with one clock, all in earshot: pulses in flight at ends of windows."""
    scene = make_scene(
        {"firmware": "speaker", "count": 37, "placement": {"kind": "hex", "pitch_mm": 34.0}},
        optics={"preset": "ideal", "range_mm": 230},
        spread=ONE_CLOCK,
        controller=EARLY_RUN,
    )
    digests = set()
    for window_us in (333.3, 2000):
        sim = simulate(scene, window_us=window_us)
        sim.run(1.2)
        digests.add(sim.digest())
    assert len(digests) == 1


def test_light_of_a_crowd_in_unison_at_the_border_of_a_window():
    """More than 16 pulses are on their way through a comparator when a window of 125 us ends."""
    scene = make_scene(
        {"firmware": "orbit_star", "count": 25, "placement": {"kind": "grid", "pitch_mm": 49.2556}},
        {"firmware": "listener", "count": 24, "placement": {"kind": "random"}},
        scene={"seed": 612954377},
        spread=ONE_CLOCK,
        optics={"preset": "long"},
        world={"step_ms": 5.0},
        controller=[{"at_s": 0.0936231376468976, "command": "run"}],
    )
    sims = simulate(scene, window_us=1000), simulate(scene, window_us=125)
    for sim in sims:
        sim.run(1.2)
    assert sims[0].digest() == sims[1].digest()


def test_more_light_than_there_is_room_for_is_told():
    """One hundred and twenty-seven robots: rather no result than one that depends on windows."""
    scene = make_scene(
        {"firmware": "speaker", "count": 127, "placement": {"kind": "hex", "pitch_mm": 34.0}},
        optics={"preset": "ideal", "range_mm": 400},
        spread=ONE_CLOCK,
        controller=EARLY_RUN,
    )
    sim = simulate(scene, window_us=125)
    with pytest.raises(SceneError, match=r"more than 48 robots .*spread\.clock_percent"):
        sim.run(1.2)


CHATTERBOX = """
#include <avr/io.h>
#include <kilolib.h>

message_t message;

message_t *message_tx(void) { return &message; }

void setup(void)
{
    message.type = 0x7F;
    for (uint8_t i = 0; i < 9; i++) {
        message.data[i] = 0xFF;
    }
    message.crc = message_crc(&message);
    kilo_tx_period = 1000;
    UCSR0A = _BV(U2X0);
    UBRR0 = 0; /* 1 MBaud: 100 bytes in a millisecond */
    UCSR0B = _BV(TXEN0);
}

void loop(void)
{
    if (UCSR0A & _BV(UDRE0)) {
        static uint8_t next;
        UDR0 = next++;
    }
}

int main(void)
{
    kilo_init();
    kilo_message_tx = message_tx;
    kilo_start(setup, loop);
}
"""


@pytest.mark.needs_avr_gcc
def test_more_than_there_is_room_for_makes_a_window_shorter(tmp_path):
    """Messages of ones, and a serial line at 1 MBaud: 80 pulses and 64 bytes are the limits."""
    scene = make_scene(
        group(compiled(tmp_path, CHATTERBOX).source, (0, 0), (45, 0), (0, 45)), controller=EARLY_RUN
    )
    results = set()
    for window_us, threads in ((125, 1), (2000, 1), (5000, 1), (5000, 2)):
        sim = simulate(scene, window_us=window_us, threads=threads, engine="translated")
        printed = [b"", b"", b""]

        def collect(sim, printed=printed):
            for robot, part in sim.drain_uart():
                printed[robot] += part

        sim.run(0.1, on_step=collect)
        sent = []
        sim.run(0.9, on_step=lambda sim, sent=sent: sent.append((collect(sim), sim.drain_sent())))
        frames = np.concatenate([part for _, part in sent])
        frames = frames[frames["complete"] != 0]
        results.add((sim.digest(), *printed, in_order(frames, "start_s")))
    assert len(results) == 1
    assert len(printed[0]) > 900 * 64  # more than that in every millisecond
    assert printed[0] == bytes(number % 256 for number in range(len(printed[0])))
    assert len(frames) > 10
    border = 0.005 * np.ceil(frames["start_s"] / 0.005)
    before = (border - frames["start_s"]) / (frames["end_s"] - frames["start_s"])
    assert (frames["pulses"] * np.maximum(before, 1 - before)).max() > 90  # in one window


def test_two_messages_in_one_window():
    """The second begins as soon as the first is over, and both end in the same 5 ms."""
    commands = [{"at_s": at_s, "command": "run", "repeat_s": 0} for at_s in (0.0961, 0.1005)]
    scene = make_scene(
        {"firmware": "blink", "count": 5, "placement": HEX}, spread=ONE_CLOCK, controller=commands
    )
    results = set()
    for window_us in (125, 5000):
        sim = simulate(scene, window_us=window_us)
        _, heard = run_and_listen(sim, 0.12)
        assert len(heard) == 10
        assert set(np.floor(heard["time_s"] / 0.005)) == {20}
        results.add((sim.digest(), in_order(heard, "time_s")))
    assert len(results) == 1
