"""The overhead controller: packets in by wire, frames out on PD3 (hardware reference, 8)."""

import itertools

import pytest

from avrswarm.robot import controller_packets as cp
from avrswarm.robot.messages import Message, MessageType, pulse_cycles

from .bench import MS, Robot, split_frames

READY = 2_010 * MS
PACKET_CYCLES = round(132 * 10 * 8_000_000 / 38_400)


class Controller(Robot):
    def __init__(self, run=READY):
        super().__init__("ohc")
        self.chip.watch_pins("PD3", "PB1")
        self.run(run)

    def tell(self, content, wait_ms=0):
        end = self.chip.uart_send(content)
        self.run(end - self.cycle + wait_ms * MS)
        return self

    def sent(self):
        return split_frames(self.edges("PD3"))


@pytest.fixture
def ohc():
    return Controller()


def test_five_blinks_at_power_on(ohc):
    ups, downs = ohc.edges("PB1"), ohc.edges("PB1", 0)
    assert len(ups) == 5
    assert all(
        down - up == pytest.approx(200 * MS, rel=0.001) for up, down in zip(ups, downs, strict=True)
    )


@pytest.mark.parametrize("noise", [0, 77, 300])
def test_of_packets_that_come_during_the_blinks_the_last_is_served(noise):
    """Far more than a serial buffer holds, so it has to be emptied meanwhile."""
    ohc = Controller(run=1 * MS)
    early = [cp.forward(MessageType.SLEEP), cp.forward(MessageType.WAKEUP)] * 3
    ohc.chip.uart_send(b"\xa3" * noise + b"".join(early) + cp.forward(MessageType.RUN))
    assert ohc.run(READY - ohc.cycle).sent() == []
    frames = {frame for _, frame in ohc.run(50 * MS).sent()[:-1]}  # the last may be on its way
    assert frames == {Message.make(MessageType.RUN).pack()}


def test_a_command_is_repeated_every_10_4_ms_until_stopped(ohc):
    ohc.tell(cp.forward(MessageType.RUN), wait_ms=100)
    frames = ohc.sent()
    assert len(frames) == 10
    assert {frame for _, frame in frames} == {Message.make(MessageType.RUN).pack()}
    periods = {later - earlier for (earlier, _), (later, _) in itertools.pairwise(frames)}
    assert all(period / MS == pytest.approx(10.41, abs=0.05) for period in periods)
    ohc.tell(cp.stop(), wait_ms=20)
    count = len(ohc.sent())
    assert len(ohc.run(100 * MS).sent()) == count


def test_frames_are_exact_even_while_serial_data_arrive(ohc):
    """The public controller bends its frames here: each byte costs it an interrupt."""
    ohc.tell(cp.forward(MessageType.NORMAL, b"\x5a\xff\x00\x01\x80\x7f\xfe\x55\xaa"))
    ohc.tell(cp.forward(MessageType.WAKEUP), wait_ms=30)
    rises, falls = ohc.edges("PD3"), ohc.edges("PD3", 0)
    assert {fall - rise for rise, fall in zip(rises, falls, strict=True)} == {9}
    frames = ohc.sent()[:-1]  # the last may still be on its way
    for start, frame in frames:
        pulses = [cycle - start for cycle in rises if start <= cycle < start + 35_000]
        assert pulses == pulse_cycles(frame)
    kinds = [Message.unpack(frame).type for _, frame in frames]
    assert kinds[0] == MessageType.NORMAL
    assert kinds[-1] == MessageType.WAKEUP  # no byte of the second packet was lost


def test_single_message(ohc):
    ohc.tell(cp.forward(MessageType.SLEEP, once=True), wait_ms=50)
    assert [frame for _, frame in ohc.sent()] == [Message.make(MessageType.SLEEP).pack()]


def test_raw_message_keeps_its_checksum(ohc):
    message = Message(b"\x11" * 9, 0x42, 0xDEAD)
    ohc.tell(cp.forward_raw(message), wait_ms=15)
    assert ohc.sent()[0][1] == message.pack()


def test_led_toggle(ohc):
    before = ohc.chip.pin("PB1")
    assert ohc.tell(cp.led_toggle(), wait_ms=1).chip.pin("PB1") != before
    assert ohc.tell(cp.led_toggle(), wait_ms=1).chip.pin("PB1") == before


def test_a_page_goes_out_as_22_messages(ohc):
    page = bytes(range(128, 256))
    ohc.tell(cp.boot_page(17, page), wait_ms=130)
    frames = ohc.sent()
    assert [frame for _, frame in frames] == [m.pack() for m in cp.page_messages(17, page)]
    gaps = [later - earlier - 34_968 for (earlier, _), (later, _) in itertools.pairwise(frames)]
    assert min(gaps) >= 570  # receivers need that
    assert max(gaps) < 3000
    assert frames[-1][0] - frames[0][0] < 100 * MS


def pages_sent(ohc, count, pitch):
    """Numbers of the pages that go out complete when packets come so many cycles apart."""
    pages = [bytes([0x50 + i]) * 128 for i in range(count)]
    for i, page in enumerate(pages):
        ohc.chip.uart_send(cp.boot_page(i, page), at=ohc.cycle)
        ohc.run(pitch)
    ohc.run(260 * MS)
    sent = [frame for _, frame in ohc.sent()]
    numbers = [Message.unpack(frame).data[0] for frame in sent[::22]]
    assert sent == [m.pack() for i in numbers for m in cp.page_messages(i, pages[i])]
    return numbers


def test_a_page_may_follow_another_without_a_pause(ohc):
    assert pages_sent(ohc, 2, pitch=PACKET_CYCLES) == [0, 1]


def test_of_pages_that_come_while_one_goes_out_the_last_is_kept(ohc):
    """There is room for one packet; a PC leaves more than 130 ms between pages."""
    assert pages_sent(ohc, 3, pitch=PACKET_CYCLES) == [0, 2]


def test_pages_130_ms_apart_all_go_out(ohc):
    assert pages_sent(ohc, 6, pitch=130 * MS) == [0, 1, 2, 3, 4, 5]


def test_positions(ohc):
    positions = [cp.Position(7, 120, -340, 90), cp.Position(8, 1, 2, 3)]
    ohc.tell(cp.gps_frame(positions), wait_ms=30)
    expected = cp.messages(cp.unpack(cp.gps_frame(positions)))
    assert [frame for _, frame in ohc.sent()] == [m.pack() for m in expected]


def test_it_falls_into_step_after_noise(ohc):
    ohc.tell(b"\x55\x02\x00" * 20 + cp.forward(MessageType.RUN, once=True), wait_ms=20)
    ohc.tell(cp.forward(MessageType.RUN, once=True), wait_ms=20)
    assert Message.make(MessageType.RUN).pack() in [frame for _, frame in ohc.sent()]


def test_damaged_packets_are_ignored(ohc):
    packet = bytearray(cp.forward(MessageType.RUN))
    packet[50] ^= 4
    assert ohc.tell(bytes(packet), wait_ms=30).sent() == []


def test_robots_understand_the_controller(ohc):
    ohc.tell(cp.forward(MessageType.RUN), wait_ms=6)
    start = ohc.sent()[0][0]
    robot = Robot("move").run(5000)
    robot.light([10_000 + cycle - start for cycle in ohc.edges("PD3") if cycle < start + 35_000])
    robot.run(230 * MS)
    assert robot.motors == (65, 62)
