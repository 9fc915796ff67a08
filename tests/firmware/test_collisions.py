"""Two robots begin to talk at nearly the same time (hardware reference, 4.8).

Robot B runs here; A's light comes from a list, B's own echo is added once it is known what B sends.
"""

import pytest

from avrswarm.robot.messages import Message, MessageType, pulse_cycles

from .bench import ACO_HIGH_CYCLES, TICK, Robot

MESSAGE = Message.make(MessageType.NORMAL, bytes(range(9)))
ECHO_DELAY = 3


@pytest.fixture(scope="module")
def duel():
    return Duel()


class Duel:
    def __init__(self):
        self.robot = Robot("speaker").obey(MessageType.RUN).run(16 * TICK)
        self.before = self.robot.chip.snapshot()
        self.earlier = len(self.robot.edges("PB0"))
        self.robot.run(17 * TICK)
        self.start = self.robot.edges("PB0")[self.earlier]

    def __call__(self, delta):
        """A begins `delta` cycles after B: how many pulses B sends, and whether it heard A."""
        theirs = [self.start + delta + cycle for cycle in pulse_cycles(MESSAGE.pack())]
        ours, again = [], None
        while ours != again:
            again = ours
            ours = self.run_with(theirs + [cycle + ECHO_DELAY for cycle in again])
        return len(ours), self.robot.bytes("kilo_rx_message", 12) == MESSAGE.pack()

    def run_with(self, light):
        self.robot.chip.restore(self.before)
        for rise, fall in merged(light):
            self.robot.chip.set_comparator(1, at=rise)
            self.robot.chip.set_comparator(0, at=fall)
        self.robot.run(self.start + 45_000 - self.robot.cycle)
        return self.robot.edges("PB0")[self.earlier :]


def merged(light):
    """Pulses closer than the time the comparator stays high are one."""
    spans = []
    for cycle in sorted(light):
        if spans and cycle <= spans[-1][1]:
            spans[-1][1] = cycle + ACO_HIGH_CYCLES
        else:
            spans.append([cycle, cycle + ACO_HIGH_CYCLES])
    return spans


@pytest.mark.parametrize("delta", [-33_000, -2000, -145, -144, -120, -100, -85, -60, -30, -16, -8])
def test_who_hears_the_other_begin_stays_silent_and_listens(duel, delta):
    """From -144 to -16 the public library sends a pulse, aborts and loses the message."""
    assert duel(delta) == (0, True)


@pytest.mark.parametrize("delta", [-2, 0, 15, 200, 330])
def test_within_a_few_cycles_both_talk(duel, delta):
    assert duel(delta)[0] == len(pulse_cycles(Message.make(0, b"\1").pack()))


@pytest.mark.parametrize("delta", [334, 400, 500])
def test_light_before_the_window_that_lasts_into_it_ends_the_attempt(duel, delta):
    assert duel(delta)[0] == 1


@pytest.mark.parametrize("delta", [540, 900, 1500, 2300, 2390])
def test_light_in_the_window_ends_the_attempt_and_is_understood(duel, delta):
    """The public library loses this message (Q9)."""
    assert duel(delta) == (1, True)


@pytest.mark.parametrize("delta", [2406, 2500])
def test_after_the_window_everything_is_sent(duel, delta):
    assert duel(delta)[0] > 26
