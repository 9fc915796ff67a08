"""Who spoils whose message (hardware reference 4.8; our library's timings: firmware/README.md)."""

import numpy as np
import pytest

from avrswarm.program import load_program
from avrswarm.robot.messages import Message
from avrswarm.scene.shipped import shipped_folder

from .scenes import ONE_CLOCK, RUN, group, make_scene, messages, run_and_listen, simulate

CYCLE_S = 1 / 8_000_000
PERIOD_S = 16 * 262_144 * CYCLE_S
"""Between two messages of one robot: 16 ticks."""


# ---- hidden terminals ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hidden():
    """Speakers 160 mm apart that hear nothing of each other, started at once; who heard what."""
    scene = make_scene(
        group("speaker", (-80, 0)),
        group("listener", (0, 0)),
        group("speaker", (80, 0)),
        group("listener", (-120, 60), (120, 60)),
        optics={"preset": "ideal"},
        spread=ONE_CLOCK,
    )
    return run_and_listen(simulate(scene), 3.0)


def test_hidden_terminals_both_send_everything(hidden):
    sent, _ = hidden
    assert sent["complete"].all()
    counts = [(sent["robot"] == robot).sum() for robot in range(5)]
    assert counts[0] == counts[2] >= 4
    assert counts[1] == counts[3] == counts[4] == 0


def test_hidden_terminals_collide_at_the_middle_robot_only(hidden):
    sent, heard = hidden
    good = messages(heard)
    assert (good["robot"] == 1).sum() == 0
    assert (good["robot"] == 0).sum() == (good["robot"] == 2).sum() == 0
    for outer, speaker in [(3, 0), (4, 2)]:
        got = good[good["robot"] == outer]
        assert len(got) == (sent["robot"] == speaker).sum()
        assert (got["data"][:, 0] == speaker).all()


def test_hidden_terminals_at_different_times_do_not_collide():
    """The same places, but one robot's ticks come 10 ms later than the other's."""
    scene = make_scene(
        group("speaker", (-80, 0)),
        group("listener", (0, 0)),
        group("speaker", (80, 0), start_delay_s=0.01),
        optics={"preset": "ideal"},
        spread=ONE_CLOCK,
    )
    sent, heard = run_and_listen(simulate(scene), 3.0)
    assert len(messages(heard)) == len(sent) >= 8


def test_the_middle_robot_itself_hears_nothing():
    """As above, by what its firmware shows: a listener flashes yellow for each message."""
    yellow = {}
    for delay in (0.0, 0.01):
        scene = make_scene(
            group("speaker", (-80, 0)),
            group("listener", (0, 0)),
            group("speaker", (80, 0), start_delay_s=delay),
            optics={"preset": "ideal"},
            spread=ONE_CLOCK,
        )
        sim = simulate(scene)
        seen = []
        sim.run(2.0, on_step=lambda sim, seen=seen: seen.append(sim.robots[1].led == 0b001111))
        yellow[delay] = sum(seen)
    assert yellow[0.0] == 0
    assert yellow[0.01] > 50


def test_light_from_beyond_the_range_spoils_nothing():
    """The other speaker, 101 mm from the listener and hidden from the first, is too weak for it."""
    for apart_us in (0, 10, 20, 28, 31, 33):
        scene = make_scene(
            group("speaker", (-40, 0)),
            group("listener", (0, 0)),
            group("speaker", (101.0, 0), start_delay_s=apart_us * 1e-6),
            optics={"preset": "ideal"},
            spread=ONE_CLOCK,
        )
        sent, heard = run_and_listen(simulate(scene), 2.0)
        assert (messages(heard)["robot"] == 1).sum() == (sent["robot"] == 0).sum() >= 2


# ---- in unison -----------------------------------------------------------------------------------


def in_unison(spread, seconds):
    scene = make_scene(
        group("speaker", (-20, 0), (20, 0)),
        group("listener", (0, 40)),
        optics={"preset": "ideal"},
        spread=spread,
    )
    return run_and_listen(simulate(scene), seconds)


def test_identical_clocks_and_phases_collide_for_ever():
    """Q4: every 16 ticks, without jitter. Both believe that they were heard."""
    sent, heard = in_unison(ONE_CLOCK, 12.0)
    starts = [sent["start_s"][sent["robot"] == robot] for robot in (0, 1)]
    assert len(starts[0]) == len(starts[1]) >= 20
    assert (starts[0] == starts[1]).all()
    assert np.allclose(np.diff(starts[0]), PERIOD_S, atol=1e-9)
    assert sent["complete"].all()
    assert len(messages(heard)) == 0


def test_spread_ends_collisions():
    sent, heard = in_unison({"clock_percent": 0.5, "start_delay_s": 0.25}, 6.0)
    at_listener = messages(heard)
    at_listener = at_listener[at_listener["robot"] == 2]
    assert sent["complete"].sum() >= 18
    assert len(at_listener) == sent["complete"].sum()


def test_different_clocks_alone_end_collisions():
    """Switched on together, clocks 0.5 % apart: after the first period ticks are far apart."""
    sent, heard = in_unison({"clock_percent": 0.5, "start_delay_s": 0}, 6.0)
    at_listener = messages(heard)
    assert (at_listener["robot"] == 2).sum() >= sent["complete"].sum() - 2 >= 16


# ---- carrier sense -------------------------------------------------------------------------------

# The reference sweeps with ideal light. Here it takes time: LED edge to comparator edge 9 cycles at
# 40 mm and 53 at the limit of range, so borders lie that much beside those of the bench.


def duels(offsets, apart_mm=40.0):
    """Pairs of speakers, the second switched on so many cycles after the first, and a listener.

    Returns for each pair what comes of the first try: frames sent (in the order of robots), and who
    of the first, the second and the listener got one. Pairs are far from each other, all in one
    simulation.
    """
    columns = 24
    middles = [(600.0 * (k % columns), 600.0 * (k // columns)) for k in range(len(offsets))]
    robots = []
    for (x, y), cycles in zip(middles, offsets, strict=True):
        first, second = max(-cycles, 0) * CYCLE_S, max(cycles, 0) * CYCLE_S
        robots += [
            group("speaker", (x - apart_mm / 2, y), start_delay_s=first),
            group("speaker", (x + apart_mm / 2, y), start_delay_s=second),
            group("listener", (x, y + 40)),
        ]
    scene = make_scene(
        *robots,
        arena={"shape": "open"},
        optics={"preset": "ideal"},
        spread=ONE_CLOCK,
        controller=[{**RUN, "at_s": 0.05, "repeat_s": 0}],
    )
    sent, heard = run_and_listen(simulate(scene), 0.62)
    got = messages(heard)
    outcomes = []
    for pair in range(len(offsets)):
        theirs = sent[sent["robot"] // 3 == pair]
        start = theirs["start_s"].min()
        theirs = theirs[theirs["start_s"] < start + 0.02]
        ears = got["robot"][(got["robot"] // 3 == pair) & (got["time_s"] < start + 0.02)] % 3
        frames = zip((theirs["robot"] % 3).tolist(), theirs["complete"].tolist(), strict=True)
        outcomes.append((sorted(frames), sorted(ears.tolist())))
    return outcomes


BOTH_TALK = [(0, 1), (1, 1)], []
SECOND_LISTENS = [(0, 1)], [1, 2]
FIRST_LISTENS = [(1, 1)], [0, 2]


def test_two_robots_talk_at_once_only_within_fifteen_cycles():
    """Five cycles from the look at the comparator to the own pulse, ten for the light.

    Every offset from -200 to 200 cycles. The public library has the later one abort from 16 to 144
    and lose the message; ours looks once more, stays silent and hears all.
    """
    offsets = range(-200, 201)
    expected = [
        FIRST_LISTENS if cycles < -15 else SECOND_LISTENS if cycles > 15 else BOTH_TALK
        for cycles in offsets
    ]
    assert duels(offsets) == expected


@pytest.mark.parametrize("border", [333, 533, 2405, 2706, 33_600])
def test_later_than_that_the_later_one_listens_and_hears_all(border):
    """Single cycles round what else is a border in 4.8, or in a frame, from both sides."""
    offsets = range(border - 24, border + 24)
    assert duels(offsets) == 48 * [SECOND_LISTENS]
    assert duels([-cycles for cycles in offsets]) == 48 * [FIRST_LISTENS]


def test_weak_light_widens_the_gap():
    """At the limit of range light takes 43 cycles to cross the threshold."""
    outcomes = duels(range(90), apart_mm=99.9)
    assert outcomes == 49 * [BOTH_TALK] + 41 * [SECOND_LISTENS]


YELLOW = 0b001111


def one_way(offsets):
    """Pairs of robots, the second brighter, and so far away that it hears nothing of the first.

    It begins so many cycles after the first, whatever that one does: the table of 4.8 between two
    robots that run the same firmware. Returns, by pair, what the first one does at its first try,
    and whether its library gets the message of the second.
    """
    first, second = [], []
    for pair, cycles in enumerate(offsets):
        x, y = 600.0 * (pair % 24), 600.0 * (pair // 24)
        delay = {"start_delay_s": max(-cycles, 0) * CYCLE_S}
        first.append(group("speaker", (x, y), **delay))
        delay = {"start_delay_s": max(cycles, 0) * CYCLE_S}
        second.append(group("speaker", (x + 104, y), **delay, eeprom={"tx_mask": 0xC7}))
    scene = make_scene(
        *first,
        *second,
        arena={"shape": "open"},
        optics={"preset": "ideal", "model": "inverse_square"},
        spread=ONE_CLOCK,
        controller=[{**RUN, "at_s": 0.05, "repeat_s": 0}],
    )
    sim = simulate(scene)
    sim.run(0.62)
    sent = np.sort(sim.drain_sent(), order="start_s")
    sent = sent[sent["start_s"] < sent["start_s"][0] + 0.02]
    count = len(offsets)
    assert sorted(sent["robot"][sent["robot"] >= count]) == list(range(count, 2 * count))
    program = load_program(shipped_folder("firmware") / "speaker" / "speaker.elf")
    inbox = program.symbols.find("kilo_rx_message").address
    inboxes = sim.chips.memory[:, inbox : inbox + 12]
    found = []
    for pair in range(count):
        tries = sent[sent["robot"] == pair]
        did = "talks" if len(tries) and tries["complete"][0] else "aborts"
        theirs = Message.make(0, (count + pair).to_bytes(2, "little"))
        hears = "hears" if inboxes[pair].tobytes() == theirs.pack() else ""
        assert did == "talks" or len(tries) == 0 or tries["pulses"][0] == 1
        found.append((did if len(tries) else "waits", hears))
    return found


def test_borders_between_two_robots_are_sharp_to_the_cycle():
    """Every row of the table of 4.8, with our library's timings, for light near its limit.

    It comes 30 cycles later than the controller's light below, and keeps the comparator high for
    118 cycles less. The public library aborts at -144, and loses the message where ours hears it.
    """
    borders = {
        -33_600: (("waits", "hears"), ("waits", "hears")),
        -144: (("waits", "hears"), ("waits", "hears")),
        -46: (("waits", "hears"), ("talks", "")),
        377: (("talks", ""), ("aborts", "")),
        486: (("aborts", ""), ("aborts", "hears")),
        2363: (("aborts", "hears"), ("talks", "")),
    }
    offsets = [border + k for border in borders for k in range(-24, 24)]
    expected = [side for pair in borders.values() for side in pair for _ in range(24)]
    wrong = {
        offset: (found, wanted)
        for offset, found, wanted in zip(offsets, one_way(offsets), expected, strict=True)
        if found != wanted
    }
    assert wrong == {}


class Interruption:
    """The overhead controller, which never listens, begins so many cycles after a robot.

    The robot is one that talks and shows by a yellow flash that it got a message.
    """

    def __init__(self):
        sent, _ = self.run([])
        self.start_s = float(sent["start_s"][0])
        self.pulses = int(sent["pulses"][0])

    def __call__(self, cycles):
        """Return how many pulses the robot sent at its first try, and whether it heard."""
        message = {"command": "message", "type": 0, "data": list(range(9)), "repeat_s": 0}
        sent, flashed = self.run([{**message, "at_s": self.start_s + cycles * CYCLE_S}])
        sent = sent[np.abs(sent["start_s"] - self.start_s) < 0.004]
        return int(sent["pulses"].sum()), flashed

    def run(self, commands):
        scene = make_scene(
            group("random_walk", (0, 0)),
            optics={"preset": "ideal"},
            spread=ONE_CLOCK,
            controller=[{**RUN, "at_s": 0.05, "repeat_s": 0}, *commands],
        )
        sim = simulate(scene)
        seen = []
        sim.run(0.65, on_step=lambda sim: seen.append(sim.robots[0].led == YELLOW))
        return sim.drain_sent(), any(seen)


@pytest.fixture(scope="module")
def interruption():
    return Interruption()


@pytest.mark.parametrize("cycles", [-33_000, -2000, -145, -144, -60, -20, -17])
def test_a_robot_that_hears_light_before_its_first_pulse_stays_silent(interruption, cycles):
    assert interruption(cycles) == (0, True)


@pytest.mark.parametrize("cycles", [-16, -8, 0, 15, 100, 200, 280])
def test_a_robot_is_blind_from_its_first_pulse_to_its_window(interruption, cycles):
    assert interruption(cycles) == (interruption.pulses, False)


@pytest.mark.parametrize("cycles", [300, 334, 400, 500])
def test_light_that_lasts_into_the_window_ends_the_attempt(interruption, cycles):
    assert interruption(cycles) == (1, False)


@pytest.mark.parametrize("cycles", [520, 540, 900, 1500, 2300, 2390])
def test_light_that_begins_in_the_window_ends_the_attempt_and_is_understood(interruption, cycles):
    assert interruption(cycles) == (1, True)


@pytest.mark.parametrize("cycles", [2396, 2406, 2500, 10_000, 30_000])
def test_after_the_window_the_message_is_sent_to_its_end(interruption, cycles):
    assert interruption(cycles) == (interruption.pulses, False)


@pytest.mark.parametrize(
    ("border", "before", "after"),
    [
        (-16, "listens", "talks"),
        (289, "talks", "aborts"),
        (516, "aborts", "aborts and hears"),
        (2393, "aborts and hears", "talks"),
    ],
)
def test_borders_are_sharp_to_the_cycle(interruption, border, before, after):
    """The table of 4.8 for our library: light begins so many cycles after the robot's own."""
    outcomes = {
        "listens": (0, True),
        "talks": (interruption.pulses, False),
        "aborts": (1, False),
        "aborts and hears": (1, True),
    }
    swept = [interruption(cycles) for cycles in range(border - 8, border + 8)]
    assert swept == 8 * [outcomes[before]] + 8 * [outcomes[after]]
